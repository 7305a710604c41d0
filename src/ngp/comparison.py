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
from itertools import chain
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib.externals.loky import ProcessPoolExecutor
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import SelectorMixin
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_random_state, check_X_y
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from ngp._types import AnyArray, BoolArray, IntArray
from ngp.baselines import Baseline, packages, registry
from ngp.baselines.base import PredictorEstimator, require
from ngp.data.encoding import ColumnEncoder, briefly_refused_gaps
from ngp.data.folds import make_rounds
from ngp.data.problem import code_targets, detect_task
from ngp.data.sources import refuse_sources
from ngp.kernels.parallel import one_blas_thread
from ngp.predictors.estimator import resolve_scoring
from ngp.selector import NeuralGreedyPursuit

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["METHODS", "compare", "summarise"]

# Compared by default: quick ones of every kind.
METHODS = ("all", "ngp", "lasso-cv", "random-forest", "mutual-information", "mrmr")
# Columns of the table of folds that are no scores.
FACTS = ("method", "fold", "status", "n_features", "n_selected", "seconds", "selected", "warnings")
CLOSE = 2  # standard errors that a difference must exceed

# The (method, fold) pairs of a comparison, and the rows of those that are done.
Callback = Callable[[Sequence[tuple[str, int]], Sequence[dict[str, Any]]], Any]


def compare(
    X: Any,
    y: Any,
    methods: Any = None,
    *,
    n_features_to_select: int | float | None = None,
    cv: Any = 5,
    downstream: Any = None,
    scoring: str | Callable[..., float] | None = None,
    task: str = "auto",
    max_time: float | None = None,
    per_fold: bool = False,
    callback: Callback | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    random_state: int | np.random.RandomState | None = None,
) -> DataFrame:
    """Compare methods of feature selection by the predictions from the features that they select.

    In each fold every method selects on the training rows. Then the same predictors are trained on the selected
    columns of these rows, and scored on the other rows. The row of a method that fails or exceeds its time says so.
    Ctrl-C ends the comparison with what is there.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Numbers; a pandas or polars data frame may have category columns too.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Targets.
    methods : None, name, selector, list of those, or mapping of labels to those, default=None
        Names are ``"ngp"``, ``"all"`` (no selection, for reference) and the keys of `ngp.baselines.registry`. Any
        scikit-learn selector can be given, that is, any object with ``fit`` and ``get_support``. None takes
        ``["all", "ngp", "lasso-cv", "random-forest", "mutual-information", "mrmr"]``, which are quick; one whose
        package is missing is left out, and its row says so.
    n_features_to_select : int, float or None, default=None
        Number or share of the features to be selected by the methods that are given by name, and by selectors whose
        ``n_features_to_select`` or ``max_features`` is None. With None each method follows its own rule.
    cv : int, float, "loo", splitter or splits, default=5
        Folds, as in `ngp.NeuralGreedyPursuit`; the same for all methods.
    downstream : None, name, estimator, list of those, or mapping of labels to those, default=None
        Predictors that are trained on the selected columns: ``"logistic"`` (logistic regression, for classes) or
        ``"ridge"`` (ridge regression, for numbers), ``"random-forest"`` and ``"ssfn"`` (a network) are known by name,
        and any scikit-learn estimator can be given. By default these three. If nothing was selected, a constant is
        predicted.
    scoring : str, callable or None, default=None
        A scikit-learn scorer; None is the accuracy for classes and R² for numbers.
    task : {"auto", "regression", "classification"}, default="auto"
        Kind of targets.
    max_time : float or None, default=None
        Seconds for each method in total. The methods then run in another process, which is killed when the time is
        over. Without a limit they run in this process.
    per_fold : bool, default=False
        Whether to return a row for each method and fold, from which `ngp.comparison.summarise` makes the other table.
    callback : callable or None, default=None
        Called at the beginning and after every fold of a method with the list of all pairs (method, fold) and the
        list of the rows that are done.
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
        - a column per downstream predictor, and the same with ``_se``: mean and standard error over the folds;
        - ``seconds``: time of the selection, mean over the folds;
        - ``agreement``: similarity of the selections of the folds, corrected for chance: 1 if they are all the
          same, about 0 if they are random [1]_; missing if there is no choice, as for ``"all"``;
        - ``within_error``: the predictors by which the method is the best or within error of the best: the mean of
          their differences in the folds is at most twice its standard error;
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
    >>> table = compare(X, y, ["ngp", "lasso"], n_features_to_select=3, cv=3, downstream="ssfn", random_state=0)
    >>> table[["status", "ssfn", "ssfn_se", "agreement", "selected"]].round(3)
           status  ssfn  ssfn_se  agreement   selected
    method
    ngp        ok   1.0      0.0        1.0  [0, 1, 2]
    lasso      ok   1.0      0.0        1.0  [0, 1, 2]
    """
    require("pandas", "ngp.compare")
    settings = {"n_features_to_select": n_features_to_select, "task": task, "n_jobs": n_jobs}
    validate_parameter_constraints(CONSTRAINTS, settings | {"max_time": max_time}, "compare")
    X, y, task, encoder = _checked_data(X, y, task)
    if isinstance(n_features_to_select, Integral) and n_features_to_select > encoder.n_features_in_:
        raise ValueError(
            f"n_features_to_select={n_features_to_select} is more than the {encoder.n_features_in_} features of X: "
            f"give at most {encoder.n_features_in_}."
        )
    seed = random_state if isinstance(random_state, Integral) else check_random_state(random_state).randint(2**31 - 1)
    settings |= {"task": task, "random_state": int(seed)}
    trial = _make_trial(X, y, encoder, cv, downstream, scoring, settings)
    left_out = {} if methods is not None else {name: lacks for name in METHODS if (lacks := _lacks(name))}
    methods = [name for name in METHODS if name not in left_out] if methods is None else methods
    selectors = _labelled("methods", methods, lambda given: _make_selector(given, settings, trial.n_features))
    plan = [(label, fold) for label in selectors for fold in range(len(trial.folds))]
    rows: list[dict[str, Any]] = []
    see = callback or (_print_last if verbose else lambda plan, rows: None)
    see(plan, rows)
    try:
        results = chain.from_iterable(_run_folds(trial, selector, max_time) for selector in selectors.values())
        for (method, fold), result in zip(plan, results, strict=True):
            rows.append({"method": method, "fold": fold, **result})
            see(plan, rows)
    except KeyboardInterrupt:
        if len(rows) < len(trial.folds):
            raise
        rows += [{"method": method, "fold": fold, "status": "interrupted"} for method, fold in plan[len(rows) :]]
    rows += [{"method": name, "fold": 0, "status": f"left out: {lacks}"} for name, lacks in left_out.items()]
    folds = _table(rows, trial)
    return folds if per_fold else summarise(folds)


CONSTRAINTS: dict[str, list[Any]] = {
    **{name: Baseline._parameter_constraints[name] for name in ("n_features_to_select", "task", "n_jobs")},
    "max_time": [Interval(Real, 0, None, closed="neither"), None],
}


def _table(rows: list[dict[str, Any]], trial: _Trial) -> DataFrame:
    """The table with a row per method and fold."""
    from pandas import DataFrame

    folds = DataFrame(rows, columns=[*FACTS[:5], *trial.predictors, *FACTS[5:]])
    folds = folds.assign(n_features=trial.n_features).astype(
        dict.fromkeys(["n_selected", *trial.predictors, "seconds"], float)
    )
    folds.attrs["scoring"] = trial.scoring  # for the axis of the plot
    return folds


def summarise(folds: DataFrame) -> DataFrame:
    """Make the table with a row per method from the one with a row per method and fold."""
    from pandas import DataFrame

    scores = [column for column in folds.columns if column not in FACTS]
    close = {name: _close_to_best(folds, name) for name in scores}
    rows = {}
    for label, part in folds.groupby("method", sort=False):
        chosen = part["selected"].dropna().tolist()
        row = {"status": _common_status(part["status"].tolist()), "n_selected": part["n_selected"].mean()}
        for name in scores:
            row |= {name: part[name].mean(skipna=False), f"{name}_se": part[name].sem(skipna=False)}
        row["seconds"] = part["seconds"].mean()
        row["agreement"] = _agreement(chosen, part["n_features"].iloc[0])
        row["within_error"] = [name for name in scores if label in close[name]]
        often = Counter(feature for features in chosen for feature in features)
        row["selected"] = [feature for feature, times in often.most_common() if times > len(chosen) / 2]
        row["warnings"] = _distinct(text for texts in part["warnings"].dropna() for text in texts)
        rows[label] = row
    table = DataFrame.from_dict(rows, orient="index").rename_axis("method")
    table.attrs.update(folds.attrs)
    return table


def _close_to_best(folds: DataFrame, name: str) -> set[Any]:
    """The methods whose scores are the best on average, or differ from those by no more than their error."""
    scores = folds.pivot(index="fold", columns="method", values=name).dropna(axis=1)
    if scores.empty:
        return set()
    less = scores.rsub(scores[scores.mean().idxmax()], axis=0)  # fold by fold: some folds are difficult for all
    return set(scores.columns[(less.mean() <= CLOSE * less.sem() + 1e-12) | (less == 0).all()])


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


def _lacks(name: str) -> str:
    """What a method needs and isn't installed, and how to install it."""
    try:
        require(packages.get(name, "sklearn"), name)
    except ImportError as error:
        return str(error)
    return ""


def _make_selector(given: Any, settings: dict[str, Any], n_features: int) -> Any:
    """Make a selector from a name, with those settings that it has, or from a configured one."""
    if isinstance(given, str):
        known: dict[str, Any] = {"all": AllFeatures, "ngp": NeuralGreedyPursuit, **registry}
        if given not in known:
            raise ValueError(f"methods has {given!r}, which is unknown: use one of {', '.join(known)}.")
        if lacks := _lacks(given):
            raise ImportError(lacks)
        accepted = inspect.signature(known[given]).parameters
        return known[given](**{name: value for name, value in settings.items() if name in accepted})
    if isinstance(given, type) or not (hasattr(given, "fit") and hasattr(given, "get_support")):
        raise TypeError(f"methods has {given!r}, which is no selector: give names, or objects with get_support.")
    selector, number = clone(given), settings["n_features_to_select"]
    parameters = selector.get_params()
    if parameters.get("n_features_to_select", 0) is None:
        selector.set_params(n_features_to_select=number)
    elif number is not None and parameters.get("max_features", 0) is None:  # of SelectFromModel: no share
        selector.set_params(max_features=number if isinstance(number, Integral) else max(1, round(number * n_features)))
    return selector


def _known_predictors(settings: dict[str, Any]) -> dict[str, Any]:
    """The predictors that have names: a linear one, trees and a network."""
    common = {"n_jobs": settings["n_jobs"], "random_state": settings["random_state"]}
    network = PredictorEstimator("ssfn", task=settings["task"], random_state=settings["random_state"])
    if settings["task"] == "classification":
        linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        return {"logistic": linear, "random-forest": RandomForestClassifier(**common), "ssfn": network}
    linear = make_pipeline(StandardScaler(), RidgeCV(alphas=np.logspace(-3, 3, 13)))
    return {"ridge": linear, "random-forest": RandomForestRegressor(**common), "ssfn": network}


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
    classes, known = settings["task"] == "classification", _known_predictors(settings)

    def make(given: Any) -> Any:
        if isinstance(given, str) and given in known:
            return known[given]
        if not isinstance(given, str | type) and hasattr(given, "fit") and hasattr(given, "predict"):
            return given
        raise ValueError(
            f"downstream has {given!r}, which is no predictor of {'classes' if classes else 'numbers'}: use "
            f"{', '.join(known)} or estimators."
        )

    predictors = _labelled("downstream", list(known) if downstream is None else downstream, make)
    taken = {*FACTS, "agreement", "within_error", *(f"{label}_se" for label in predictors)}
    if clash := taken.intersection(predictors):
        raise ValueError(f"downstream has the label {clash.pop()!r}, which is a column of the table: choose another.")
    if scoring is None:
        scoring = "accuracy" if classes else "r2"
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
        scored={},
    )


def _print_last(plan: Sequence[tuple[str, int]], rows: Sequence[dict[str, Any]]) -> None:
    """Print the last row as a line."""
    if not rows:
        return
    row = rows[-1]
    text = f"[ngp] {row['method']:<16} fold {row['fold'] + 1} of {plan[-1][1] + 1}"
    if row["status"] == "ok":
        scores = "".join(f"  {name} {value:.3f}" for name, value in row.items() if name not in FACTS)
        print(f"{text}  {row['n_selected']} selected  {row['seconds']:.1f} s{scores}")
    else:
        print(f"{text}  {row['status']}")


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
    scored: dict[tuple[int, ...], dict[str, Any]]  # scores by fold and columns: several methods may select the same


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
            columns = _select(trial, clone(selector), trial.folds[fold][0], row)
            if (same := (fold, *columns)) not in trial.scored:
                trial.scored[same] = _score(trial, *trial.folds[fold], columns)
            row |= trial.scored[same]
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


def _select(trial: _Trial, selector: Any, train: IntArray, row: dict[str, Any]) -> IntArray:
    """The columns that a method selects, which are noted in the row."""
    X = _safe_indexing(trial.X, train)
    start = time.perf_counter()
    selector.fit(X, trial.y[train])
    row["seconds"] = time.perf_counter() - start
    if "interrupted" in str(getattr(selector, "stop_reason_", "")):
        raise KeyboardInterrupt  # a pursuit keeps what it has found, but part of a selection compares with nothing
    columns: IntArray = selector.get_support(indices=True)
    row["n_selected"] = len(columns)
    row["selected"] = columns.tolist() if trial.names is None else [trial.names[i] for i in columns]
    return columns


def _score(trial: _Trial, train: IntArray, test: IntArray, columns: IntArray) -> dict[str, Any]:
    """The scores of all predictors that are trained on these columns, and the status if one fails."""
    inputs, test_inputs = _encoded(_safe_indexing(trial.X, train), _safe_indexing(trial.X, test), columns)
    scores: dict[str, Any] = {}
    failed = []
    for label, predictor in trial.predictors.items():
        try:
            if not len(columns):
                predictor = DummyClassifier(strategy="prior") if trial.classes else DummyRegressor()
            with one_blas_thread:  # threads that wait for each other take longer
                scores[label] = trial.scorer(clone(predictor).fit(inputs, trial.y[train]), test_inputs, trial.y[test])
        except Exception as error:
            failed.append(f"{label}: {_first_line(error)}")
    return scores | ({"status": "; ".join(failed)} if failed else {})


def _encoded(X: Any, X_test: Any, columns: IntArray) -> tuple[Any, Any]:
    """Selected columns as numbers, for training and for the test."""
    if not len(columns):  # a data frame without columns may have lost its rows too
        return np.empty((X.shape[0], 0)), np.empty((X_test.shape[0], 0))
    chosen, test = _safe_indexing(X, columns, axis=1), _safe_indexing(X_test, columns, axis=1)
    encoder = ColumnEncoder().fit(chosen)
    return encoder.transform(chosen), encoder.transform(test)
