"""Methods side by side on the same folds: `compare`."""

from __future__ import annotations

import inspect
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import RidgeClassifierCV, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_random_state, check_X_y

from ngp._types import AnyArray, BoolArray, IntArray
from ngp.baselines import registry
from ngp.baselines.base import PredictorEstimator, require
from ngp.data.encoding import ColumnEncoder, briefly_refused_gaps
from ngp.data.folds import make_rounds
from ngp.data.problem import code_targets, detect_task
from ngp.data.sources import refuse_sources
from ngp.predictors.estimator import resolve_scoring
from ngp.selector import NeuralGreedyPursuit

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["compare", "summarise"]

# Columns of the table of folds that are no scores.
FACTS = ("method", "fold", "status", "n_features", "n_selected", "seconds", "selected", "warnings")
DOWNSTREAM = ("ridge", "random-forest", "ssfn")


def compare(
    X: Any,
    y: Any,
    methods: Any = None,
    *,
    k: int | float | None = None,
    cv: Any = 5,
    downstream: Any = ("own", *DOWNSTREAM),
    scoring: str | Callable[..., float] | None = None,
    task: str = "auto",
    max_time: float | None = None,
    per_fold: bool = False,
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: int | np.random.RandomState | None = None,
) -> DataFrame:
    """Compare methods of feature selection by the predictions from the features that they select.

    In each fold every method selects on the training rows. Then the same predictors are trained on the selected
    columns of these rows, and scored on the other rows. The row of a method that fails or exceeds its time says so.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Numbers; a pandas or polars data frame may have category columns too.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    methods : None, name, selector, list of those, or mapping of labels to those, default=None
        Names are ``"ngp"``, ``"all"`` (no selection, for reference) and the keys of `ngp.baselines.registry`; None
        takes all of them. Any scikit-learn selector can be given, that is, any object with ``fit`` and
        ``get_support``.
    k : int, float or None, default=None
        Number or share of the features to be selected by the methods that are given by name, and by selectors whose
        ``n_features_to_select`` or ``max_features`` is None. With None each method follows its own rule.
    cv : int, float, "loo", splitter or splits, default=5
        Folds, as in `ngp.NeuralGreedyPursuit`; the same for all methods.
    downstream : name, estimator, list of those, or mapping of labels to those
        Predictors that are trained on the selected columns: ``"own"`` is the method's own predictor, if it has one;
        ``"ridge"``, ``"random-forest"`` and ``"ssfn"`` are known by name, and any scikit-learn estimator can be given.
        By default these four. If nothing was selected, a constant is predicted.
    scoring : str, callable or None, default=None
        A scikit-learn scorer; None is the accuracy for classes and R² for numbers.
    task : {"auto", "regression", "classification"}, default="auto"
        Kind of targets.
    max_time : float or None, default=None
        Seconds for each method in total. The methods then run in another process, which is killed when the time is
        over. Without a limit they run in this process.
    per_fold : bool, default=False
        Whether to return a row for each method and fold, from which `ngp.comparison.summarise` makes the other table.
    n_jobs : int or None, default=None
        Passed to the methods and predictors that are given by name. Methods run one after the other, so that their
        times can be compared.
    verbose : int, default=0
        Whether to print a line for each method and fold.
    random_state : int, RandomState or None, default=None
        Seed of the folds, and of the methods and predictors that are given by name.

    Returns
    -------
    pandas DataFrame
        One row per method, in the order given, with the columns

        - ``status``: "ok" or an error; a method that failed in a fold has no mean scores, because they would come from
          other folds than those of the other methods;
        - ``n_selected``: number of features, mean over the folds;
        - a column per downstream predictor, and the same with ``_std``: mean and standard deviation over the folds;
        - ``seconds``: time of the selection, mean over the folds;
        - ``agreement``: similarity of the selections of the folds, corrected for chance: 1 if they are all the
          same, about 0 if they are random [1]_; missing if there is no choice, as for ``"all"``;
        - ``selected``: the features that more than half of the folds select, as names or column numbers;
        - ``warnings``: warnings of the methods and predictors.

    References
    ----------
    .. [1] S. Nogueira, K. Sechidis, G. Brown, "On the Stability of Feature Selection Algorithms", Journal of Machine
       Learning Research 18(174), 2018.

    Examples
    --------
    >>> from ngp import compare
    >>> from ngp.datasets import make_gravitation
    >>> X, y, truth = make_gravitation(200, random_state=0)
    >>> table = compare(X, y, ["ngp", "lasso"], k=3, cv=3, downstream=["own", "ridge"], random_state=0)
    >>> table[["status", "own", "own_std", "ridge", "ridge_std", "agreement", "selected"]].round(3)
           status    own  own_std  ridge  ridge_std  agreement   selected
    method
    ngp        ok  1.000    0.000    0.9      0.007        1.0  [0, 1, 2]
    lasso      ok  0.899    0.007    0.9      0.007        1.0  [0, 1, 2]
    """
    require("pandas", "ngp.compare")
    from pandas import DataFrame

    X, y, task, encoder = _checked_data(X, y, task)
    _check_numbers(k, max_time, encoder.n_features_in_)
    seed = random_state if isinstance(random_state, Integral) else check_random_state(random_state).randint(2**31 - 1)
    settings = {"n_features_to_select": k, "task": task, "n_jobs": n_jobs, "random_state": int(seed)}
    trial = _make_trial(X, y, encoder, cv, downstream, scoring, settings)
    methods = list(_known_methods()) if methods is None else methods
    selectors = _labelled("methods", methods, lambda given: _make_selector(given, settings, trial.n_features))
    rows = []
    for label, selector in selectors.items():
        for fold, found in enumerate(_run_folds(trial, selector, max_time)):
            rows.append({"method": label, "fold": fold, "n_features": trial.n_features, **found})
            if verbose:
                _print_row(rows[-1], len(trial.folds), trial.predictors)
    folds = DataFrame(rows, columns=[*FACTS[:5], *trial.predictors, *FACTS[5:]])
    folds = folds.astype(dict.fromkeys(["n_selected", *trial.predictors, "seconds"], float))
    folds.attrs["scoring"] = trial.scoring  # for the axis of the plot
    return folds if per_fold else summarise(folds)


def summarise(folds: DataFrame) -> DataFrame:
    """Make the table with a row per method from the one with a row per method and fold."""
    from pandas import DataFrame

    scores = [column for column in folds.columns if column not in FACTS]
    rows = {}
    for label, part in folds.groupby("method", sort=False):
        chosen = part["selected"].dropna().tolist()
        row = {"status": _common_status(part["status"].tolist()), "n_selected": part["n_selected"].mean()}
        for name in scores:
            row |= {name: part[name].mean(skipna=False), f"{name}_std": part[name].std(skipna=False)}
        row["seconds"] = part["seconds"].mean()
        row["agreement"] = _agreement(chosen, part["n_features"].iloc[0])
        often = Counter(feature for features in chosen for feature in features)
        row["selected"] = [feature for feature, times in often.most_common() if times > len(chosen) / 2]
        row["warnings"] = _distinct(text for texts in part["warnings"].dropna() for text in texts)
        rows[label] = row
    table = DataFrame.from_dict(rows, orient="index").rename_axis("method")
    table.attrs.update(folds.attrs)
    return table


def _common_status(statuses: Sequence[str]) -> str:
    bad = [status for status in statuses if status != "ok"]
    if not bad or len(bad) == len(statuses):
        return statuses[0]
    return f"{bad[0]} ({len(bad)} of {len(statuses)} folds missing)"


def _agreement(selections: Sequence[Sequence[Any]], n_features: int) -> float:
    """Nogueira's stability: one minus the variance of the selections over that of random ones of the same size."""
    n_selected = sum(map(len, selections))
    if len(selections) < 2 or n_selected in (0, len(selections) * n_features):
        return float("nan")
    shares = np.array(list(Counter(feature for chosen in selections for feature in chosen).values())) / len(selections)
    variance = (shares * (1 - shares)).sum() / n_features * len(selections) / (len(selections) - 1)
    share = n_selected / len(selections) / n_features
    return float(1 - variance / (share * (1 - share)))


class AllFeatures(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """No selection, for reference."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Count the features."""
        self.n_features_in_ = X.shape[1]
        return self

    def _get_support_mask(self) -> BoolArray:
        return np.ones(self.n_features_in_, dtype=bool)


def _known_methods() -> dict[str, Any]:
    return {"all": AllFeatures, "ngp": NeuralGreedyPursuit, **registry}


def _make_selector(given: Any, settings: dict[str, Any], n_features: int) -> Any:
    """Make a selector from a name, with those settings that it has, or from a configured one."""
    if isinstance(given, str):
        known = _known_methods()
        if given not in known:
            raise ValueError(f"methods has {given!r}, which is unknown: use one of {', '.join(known)}.")
        accepted = inspect.signature(known[given]).parameters
        return known[given](**{name: value for name, value in settings.items() if name in accepted})
    if isinstance(given, type) or not (hasattr(given, "fit") and hasattr(given, "get_support")):
        raise TypeError(f"methods has {given!r}, which is no selector: give names, or objects with get_support.")
    selector, k = clone(given), settings["n_features_to_select"]
    parameters = selector.get_params()
    if parameters.get("n_features_to_select", 0) is None:
        selector.set_params(n_features_to_select=k)
    elif k is not None and parameters.get("max_features", 0) is None:  # of SelectFromModel, for instance: no share
        selector.set_params(max_features=k if isinstance(k, Integral) else max(1, round(k * n_features)))
    return selector


def _make_predictor(given: Any, settings: dict[str, Any]) -> Any:
    """Make an estimator from a name or take a configured one; ``"own"`` stays as it is."""
    classes, seed = settings["task"] == "classification", settings["random_state"]
    if isinstance(given, str):
        if given == "own":
            return given
        if given == "ridge":
            ridge = (RidgeClassifierCV if classes else RidgeCV)(alphas=np.logspace(-3, 3, 13))
            return make_pipeline(StandardScaler(), ridge)
        if given == "random-forest":
            forest = RandomForestClassifier if classes else RandomForestRegressor
            return forest(n_jobs=settings["n_jobs"], random_state=seed)
        if given == "ssfn":
            return PredictorEstimator("ssfn", task=settings["task"], random_state=seed)
    elif not isinstance(given, type) and hasattr(given, "fit") and hasattr(given, "predict"):
        return given
    raise ValueError(
        f"downstream has {given!r}, which is no predictor: use own, {', '.join(DOWNSTREAM)} or estimators."
    )


def _labelled(parameter: str, given: Any, make: Callable[[Any], Any]) -> dict[str, Any]:
    """Make a method or a predictor of each member of what the user gave, by its label: name, class, or key."""
    if isinstance(given, str) or hasattr(given, "fit"):
        given = [given]
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Iterable):
        pairs = [(each if isinstance(each, str) else type(each).__name__, each) for each in given]
    else:
        raise TypeError(f"{parameter}={given!r} is neither a list nor a mapping: give one of them.")
    if not pairs:
        raise ValueError(f"{parameter} is empty: give at least one.")
    made = {}
    for label, each in pairs:
        if label in made:
            raise ValueError(f"{parameter} has two of the name {label!r}: give a mapping with labels of your own.")
        made[label] = make(each)
    return made


def _checked_data(X: Any, y: Any, task: str) -> tuple[Any, AnyArray, str, ColumnEncoder]:
    """X as an array or a data frame, y as classes or as floats, the task, and the columns of X."""
    if task not in ("auto", "regression", "classification"):
        raise ValueError(f"task={task!r} is unknown: use 'auto', 'regression' or 'classification'.")
    refuse_sources(X, "ngp.compare")
    X = X if hasattr(X, "columns") else np.asarray(X)
    encoder = ColumnEncoder().fit(X)
    with briefly_refused_gaps():
        _, y = check_X_y(encoder.transform(X), y, multi_output=True, ensure_min_samples=2)
    task = detect_task(y) if task == "auto" else task
    targets, classes = code_targets(y, task)
    y = targets if classes is None else y
    return X, y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y, task, encoder


def _make_trial(
    X: Any, y: AnyArray, encoder: ColumnEncoder, cv: Any, downstream: Any, scoring: Any, settings: dict[str, Any]
) -> _Trial:
    classes = settings["task"] == "classification"
    if scoring is None:
        scoring = "accuracy" if classes else "r2"
    predictors = _labelled("downstream", downstream, lambda given: _make_predictor(given, settings))
    taken = {*FACTS, "agreement", *(f"{label}_std" for label in predictors)}
    if clash := taken.intersection(predictors):
        raise ValueError(f"downstream has the label {clash.pop()!r}, which is a column of the table: choose another.")
    rounds = make_rounds(cv, X, y, classification=classes, random_state=settings["random_state"])
    return _Trial(
        X=X,
        y=y,
        names=encoder.feature_names_,
        n_features=encoder.n_features_in_,
        folds=[(np.sort(part.training(f)), part.validation(f)) for part in rounds for f in range(part.n_folds)],
        classes=classes,
        scoring=scoring if isinstance(scoring, str) else getattr(scoring, "__name__", "score"),
        scorer=resolve_scoring(scoring),
        predictors=predictors,
    )


def _check_numbers(k: Any, max_time: Any, n_features: int) -> None:
    whole = isinstance(k, Integral) and not isinstance(k, bool)
    share = isinstance(k, Real) and not isinstance(k, Integral)
    if not (k is None or (whole and k >= 1) or (share and 0 < float(k) <= 1)):
        raise ValueError(f"k={k!r} is no number of features: give a whole number, a share up to 1.0, or None.")
    if whole and k > n_features:
        raise ValueError(f"k={k} is more than the {n_features} features of X: give at most {n_features}.")
    if max_time is not None and not (isinstance(max_time, Real) and float(max_time) > 0):
        raise ValueError(f"max_time={max_time!r} is no time limit: give seconds above 0, or None.")


def _print_row(row: dict[str, Any], n_folds: int, predictors: Iterable[str]) -> None:
    text = f"[ngp] {row['method']:<16} fold {row['fold'] + 1} of {n_folds}"
    if row["status"] != "ok":
        print(f"{text}  {row['status']}")
        return
    scores = "".join(f"  {name} {row[name]:.3f}" for name in predictors if row.get(name) is not None)
    print(f"{text}  {row['n_selected']} selected  {row['seconds']:.1f} s{scores}")


@dataclass(frozen=True, eq=False)
class _Trial:
    """Data, folds and predictors that all methods of a comparison share."""

    X: Any  # all rows and columns
    y: AnyArray  # targets of all rows
    names: list[str] | None  # names of the columns
    n_features: int  # number of columns
    folds: list[tuple[IntArray, IntArray]]  # training rows and test rows
    classes: bool  # whether y has classes
    scoring: str  # name of the scorer
    scorer: Callable[..., float]  # a scikit-learn scorer, ``scorer(estimator, X, y)``
    predictors: dict[str, Any]  # estimators to be trained on the selected columns, by label


def _run_folds(trial: _Trial, selector: Any, max_time: float | None) -> Iterator[dict[str, Any]]:
    """Run a method in this process or, if its time is limited, in another one that can be killed."""
    if max_time is None:
        yield from (_run_fold(trial, selector, fold) for fold in range(len(trial.folds)))
        return
    process, left, end = ProcessPoolExecutor(max_workers=1), max_time, ""
    try:
        process.submit(_first_line, "").result()  # the start of the process takes none of the method's time
        for fold in range(len(trial.folds)):
            if end:
                yield {"status": end}
                continue
            start = time.perf_counter()
            try:
                row = process.submit(_run_fold, trial, selector, fold).result(timeout=left)
            except TimeoutError:
                end = f"out of time: killed after {max_time:g} s"
            except BrokenProcessPool:
                end = "crashed: its process died"
            except Exception as error:  # what can't be sent to another process
                row = {"status": _first_line(error)}
            left -= time.perf_counter() - start
            yield {"status": end} if end else row
    finally:
        process.shutdown(kill_workers=True)


def _run_fold(trial: _Trial, selector: Any, fold: int) -> dict[str, Any]:
    """Select on the training rows of a fold, and score predictors on the test rows."""
    row: dict[str, Any] = {"status": "ok"}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            _select_and_score(trial, clone(selector), *trial.folds[fold], row)
        except Exception as error:
            row["status"] = _first_line(error)
    row["warnings"] = _distinct(_first_line(warning.message) for warning in caught)
    return row


def _first_line(error: Any) -> str:
    """Type and first line of the message of an error or a warning."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _distinct(messages: Iterable[str]) -> list[str]:
    """Messages that differ in more than their numbers."""
    found: dict[str, str] = {}
    for message in messages:
        found.setdefault(re.sub(r"\d[\d.,e+-]*", "", message), message)
    return list(found.values())


def _select_and_score(trial: _Trial, selector: Any, train: IntArray, test: IntArray, row: dict[str, Any]) -> None:
    X, y = _safe_indexing(trial.X, train), trial.y[train]
    start = time.perf_counter()
    selector.fit(X, y)
    row["seconds"] = time.perf_counter() - start
    columns = selector.get_support(indices=True)
    row["n_selected"] = len(columns)
    row["selected"] = columns.tolist() if trial.names is None else [trial.names[i] for i in columns]
    X_test, y_test = _safe_indexing(trial.X, test), trial.y[test]
    inputs, test_inputs = _encoded(X, X_test, columns)
    failed = []
    for label, predictor in trial.predictors.items():
        try:
            if isinstance(predictor, str) and not hasattr(selector, "own_estimator"):
                if hasattr(selector, "predict"):  # it predicts by itself
                    row[label] = trial.scorer(selector, X_test, y_test)
            elif (estimator := _estimator(trial, selector, predictor, len(columns))) is not None:
                row[label] = trial.scorer(estimator.fit(inputs, y), test_inputs, y_test)
        except Exception as error:
            failed.append(f"{label}: {_first_line(error)}")
    if failed:
        row["status"] = "; ".join(failed)


def _encoded(X: Any, X_test: Any, columns: IntArray) -> tuple[Any, Any]:
    """Selected columns as numbers, for training and for the test."""
    if not len(columns):  # a data frame without columns may have lost its rows too
        return np.empty((X.shape[0], 0)), np.empty((X_test.shape[0], 0))
    chosen, test = _safe_indexing(X, columns, axis=1), _safe_indexing(X_test, columns, axis=1)
    encoder = ColumnEncoder().fit(chosen)
    return encoder.transform(chosen), encoder.transform(test)


def _estimator(trial: _Trial, selector: Any, predictor: Any, n_columns: int) -> Any:
    """The estimator to be trained on the selected columns; a constant if there are none."""
    estimator = selector.own_estimator() if isinstance(predictor, str) else clone(predictor)
    if estimator is None or n_columns:
        return estimator
    return DummyClassifier(strategy="prior") if trial.classes else DummyRegressor()
