"""`NeuralGreedyPursuit`, `NGPClassifier` and `NGPRegressor`, the scikit-learn face of the package."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from math import nan
from numbers import Integral, Real
from os import PathLike
from pathlib import Path as FilePath
from time import perf_counter
from typing import Any, ClassVar, Literal, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt
from scipy.stats import false_discovery_control
from sklearn.base import ClassifierMixin, RegressorMixin, _fit_context
from sklearn.callback import CallbackSupportMixin, with_callbacks
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_array, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import _check_feature_names, _check_sample_weight, check_is_fitted, validate_data

from ngp._formatting import nearest_in_words, step_line
from ngp._progress import StatusLine, phase
from ngp._types import AnyArray, FloatArray, IntArray
from ngp.data.encoding import TableSelector, briefly_refused_gaps, check_training_data, checked_cv
from ngp.data.groups import column_numbers, make_groups, ranks_of_columns
from ngp.data.losses import LOSSES, labels, probabilities
from ngp.data.problem import Problem, make_problem, warn_of_constant_features
from ngp.greedy.candidates import Search
from ngp.greedy.chance import chance_losses
from ngp.greedy.checkpoint import Checkpoint, Saving, identity_of
from ngp.greedy.estimate import Estimate, estimate_pursuit
from ngp.greedy.evidence import importances, known_groups, p_values, rows_needed
from ngp.greedy.loop import pursue
from ngp.greedy.path import Path, Step, finished, suspect
from ngp.greedy.screening import Screening
from ngp.greedy.significance import SignificanceTest
from ngp.greedy.stability import Stability, selections_on_halves
from ngp.greedy.stopping import (
    NO_CANDIDATE_LEFT,
    Cut,
    FirstOf,
    MaxColumns,
    MaxFeatures,
    MaxTime,
    Plateau,
    RelativeImprovement,
    Significance,
    StopRule,
)
from ngp.io import refuse_other_suffixes
from ngp.kernels.parallel import keep_workers, one_blas_thread
from ngp.predictors.base import Constant, FittedPredictor, Predictor, Scorer
from ngp.predictors.committee import PREDICTORS, bind_predictor, settled

__all__ = ["NGPClassifier", "NGPRegressor", "NeuralGreedyPursuit"]

logger = logging.getLogger("ngp")
logger.addHandler(logging.NullHandler())

# Parameters that don't change the result, or that the data, the folds, the groups and the seed stand for.
NOT_DEFINING = frozenset(
    {"checkpoint", "verbose", "n_jobs", "max_time", "groups", "fixed", "cv", "random_state", "p_values"}
)
GOES_ON = "the pursuit goes on"
MOST_TESTED = 60  # selected features that get p-values by themselves


class NeuralGreedyPursuit(CallbackSupportMixin, TableSelector):  # type: ignore[misc]
    """Select features one by one, each by retraining a predictor for every candidate.

    Start with no features; in each step retrain the predictor for every candidate together with those already
    selected, add the one with the lowest validation loss, and go on until enough are in or nothing pays any more.
    The order of selection ranks the features by importance. It selects, for regressions and classes, and doesn't
    predict: `NGPRegressor` and `NGPClassifier` do both.

    Parameters
    ----------
    predictor : {"auto", "ssfn", "mlp", "cnn", "kernel"}, predictor, estimator, list or callable, default="auto"
        What is retrained: a name, a configured object of `ngp.predictors`, any scikit-learn estimator (only its
        clones are fitted), a list of those (the best one wins a step), or a callable that is given the number of a
        step, from 1, and returns its predictor. ``"auto"`` is an SSFN, or a kernel on a small table: up to 1000 rows,
        the cube of their number times that of the candidates up to 6 · 10⁹.
    n_features_to_select : int, float or None, default=None
        Number of features (of groups, where `groups` are given; `fixed` columns count), or a share of the columns.
        Alone, exactly so many are selected. None leaves it to `tol` or `stop`.
    tol : float or None, default=None
        The paper's threshold: stop when a step lowers the loss by less than this share of the new loss, and take
        that step back.
    stop : {"auto", "plateau"}, StopRule or None, default=None
        A rule of `ngp.greedy.stopping` instead of `tol`. With ``"auto"``, which is also what None means if neither a
        number nor `tol` is given, the selection ends where no candidate, and no pair of them, is significant. With
        ``"plateau"`` it is the smallest one whose loss is within a standard error of the lowest. Both come from one
        path, which goes on until both are known.
    groups : None, labels, list of lists, mapping or Groups, default=None
        Columns that enter together; category columns of a data frame always do. Costs of columns or groups are part of
        the groups (see `ngp.data.groups.make_groups`): with them, the largest improvement per cost wins a step.
    fixed : sequence of columns or None, default=None
        Columns, as indices or names, that are in from the start.
    cv : "auto", int, float, "loo", splitter, splits or (X, y), default="auto"
        How candidates are judged: a number of random folds, a hold-out share, leave-one-out, any scikit-learn
        splitter, pairs of row numbers, or an explicit validation set. ``"auto"`` is leave-one-out for a kernel on a
        small table, and otherwise five folds.
    loss : {"auto", "squared_error", "cross_entropy", "hinge"}, default="auto"
        The validation loss; ``"auto"`` is the squared error (of coded targets for classes), or the cross-entropy
        where there are classes and the predictor is an MLP or a CNN, or the hinge loss for a scikit-learn classifier
        without ``predict_proba``.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is. ``"auto"`` takes text, booleans and up to 20 whole numbers, each twice on average, for classes.
    floating : bool, default=False
        Whether to take back wrong picks: after each addition what no longer pays is dropped, and in the end features
        are exchanged, one for one or one for several, as long as that lowers the loss (see `ngp.greedy.floating`).
    screen : int, "auto" or None, default=None
        For very many columns: in each step a cheap pass ranks the candidates, and only so many of the best are scored
        exactly (``"auto"``: ten times the root of their number). It can miss what None, scoring all of them, finds.
    p_values : {"selected", "all"} or None, default="selected"
        Which features get a p-value in the end (see `p_values_`): up to 60 selected ones, all candidates, or none.
    max_time : float or None, default=None
        Seconds after which no further step begins; each run that goes on with a checkpoint has as many of its own.
        The final predictor then has the settings of the last step: what is best for it isn't searched for. (`cut`
        trains one with the usual search.)
    n_jobs : int or None, default=None
        Parallel tasks, as everywhere in scikit-learn. The result doesn't depend on it.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where candidates are scored; ``"auto"`` takes a GPU if there is one (and, for an SSFN, if a step takes long
        enough). Losses differ by rounding. On a Dask or Ray cluster, ``"cuda"`` is the GPU that each worker sees.
    checkpoint : path or None, default=None
        A file that is kept up to date after every step. A fit that was killed goes on with it, to the same result;
        a checkpoint of other data, parameters or another version is refused.
    verbose : int, default=0
        Whether to print a line for each step and, in a terminal or a notebook, how far the step is. Python's logger
        ``ngp`` gets a line for each step, too, at the level INFO.
    random_state : int, RandomState or None, default=None
        Seed of folds and random layers. With a kernel and leave-one-out, nothing depends on it.

    Attributes
    ----------
    support_ : bool array of shape (`n_features_in_`,)
        The selected columns.
    order_ : int array
        Selected columns (groups, where given), most important first; `fixed` columns have no rank.
    ranking_ : int array of shape (`n_features_in_`,)
        Rank of each column: 1, 2, … in the order of selection, which columns of a group share; fixed columns have
        rank 1, too. After them come the others by their loss in the step after the selection, or else in the last one
        in which they were candidates; what never was a candidate comes last.
    path_ : Path
        All steps, from the start (the constant prediction, or the fixed columns) to the last one tried: a sequence of
        `ngp.greedy.path.Step`, and a data frame by ``path_.to_frame()``.
    cuts_ : dict
        Number of features at each cut that the stop rule knows on the path. With the default rule it is
        ``"significant"``, after the last significant step, and ``"best"``, the smallest selection whose loss is within
        a standard error of the lowest (see `cut`); empty if something else ended it.
    losses_ : float array of shape (n_steps, n_groups)
        Loss of every candidate in every step; NaN where not tried.
    feature_importances_ : float array of shape (`n_features_in_`,)
        Share of the constant prediction's loss that a column took away when added (columns of a group share alike).
    importances_, importance_errors_ : float arrays of shape (n_groups,)
        By how much the loss rises without a selected feature, the predictor trained again, as a share of the constant
        prediction's loss, and the standard error of that; NaN for others, and after a partial run.
    p_values_ : float array of shape (n_groups,)
        p-value of each selected feature given the others that are selected, times the number of candidates it was
        chosen from; with ``p_values="all"`` also that of each other candidate given the selection. NaN if not computed.
        If nothing was selected, also that of the candidate that came nearest, `path_[1].group`.
    rows_needed_ : float
        If nothing was selected, about how many rows it would take for that candidate to be significant; otherwise NaN.
    constant_loss_ : float
        Validation loss of the constant prediction.
    all_columns_score_ : float
        Accuracy or R² of all columns together, as `Step.score` has them for each step; NaN after a partial run, and if
        it would take long: for more than 1000 columns, or 4 million numbers.
    stop_reason_ : str
        Why the pursuit ended.
    partial_ : bool
        Whether it was cut short by a budget, Ctrl-C or a callback.
    stability_ : Stability
        How often each candidate is selected on halves of the rows; set by `measure_stability`.
    chance_ : float array of shape (n_steps, 2)
        Range of the loss that each step would have led to by chance; set by `measure_chance` and `report`.
    task_ : str
        "regression" or "classification".
    classes_ : array
        The classes, for classification.
    groups_ : Groups
        The candidates.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : array of str
        Their names, where X has some.

    Examples
    --------
    >>> from ngp import NeuralGreedyPursuit
    >>> from ngp.datasets import make_gravitation
    >>> X, y, truth = make_gravitation(300, random_state=0)
    >>> selector = NeuralGreedyPursuit(random_state=0).fit(X, y)
    >>> sorted(selector.order_.tolist()), truth.tolist()
    ([0, 1, 2], [0, 1, 2])
    >>> selector.transform(X).shape
    (300, 3)
    """

    _predicts: ClassVar[bool] = False  # whether a predictor is trained on what is selected
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "predictor": [
            StrOptions({"auto", *PREDICTORS}),
            HasMethods("bind"),
            HasMethods(["fit", "predict"]),
            list,
            tuple,
            callable,
        ],
        "n_features_to_select": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Real, 0, 1, closed="right"),
            None,
        ],
        "tol": [Interval(Real, 0, None, closed="left"), None],
        "stop": [StrOptions({"auto", "plateau"}), StopRule, None],
        "fixed": ["array-like", None],
        "cv": [object],
        "loss": [StrOptions({"auto", *LOSSES})],
        "task": [StrOptions({"auto", "regression", "classification"})],
        "floating": ["boolean"],
        "screen": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "p_values": [StrOptions({"selected", "all"}), None],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "n_jobs": [Integral, None],
        "device": [StrOptions({"auto", "cpu", "cuda", "mps"})],
        "checkpoint": [str, PathLike, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        predictor: Any = "auto",
        *,
        n_features_to_select: int | float | None = None,
        tol: float | None = None,
        stop: Literal["auto", "plateau"] | StopRule | None = None,
        groups: Any = None,
        fixed: Sequence[int] | Sequence[str] | None = None,
        cv: Any = "auto",
        loss: str = "auto",
        task: str = "auto",
        floating: bool = False,
        screen: int | Literal["auto"] | None = None,
        p_values: Literal["selected", "all"] | None = "selected",
        max_time: float | None = None,
        n_jobs: int | None = None,
        device: str = "auto",
        checkpoint: str | PathLike[str] | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.predictor = predictor
        self.n_features_to_select = n_features_to_select
        self.tol = tol
        self.stop = stop
        self.groups = groups
        self.fixed = fixed
        self.cv = cv
        self.loss = loss
        self.task = task
        self.floating = floating
        self.screen = screen
        self.p_values = p_values
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.device = device
        self.checkpoint = checkpoint
        self.verbose = verbose
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    @with_callbacks
    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        cv_groups: npt.ArrayLike | None = None,
    ) -> Self:
        """Select features.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; a pandas or polars data frame may hold category columns too. X need not fit in memory: see
            ``docs/large-data.md`` for memory-mapped, sparse, Zarr, Arrow and Parquet data.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the samples, in training and in validation.
        cv_groups : array-like of shape (n_samples,), optional
            Groups of samples, for splitters that keep such together. With scikit-learn's metadata routing,
            ``set_fit_request(cv_groups="groups")`` takes them from what is passed as ``groups``.

        Returns
        -------
        object
            The selector itself, fitted. If that fails, it stays as it was.
        """
        with _as_before_if_it_fails(self):
            begin, file = perf_counter(), None if self.checkpoint is None else FilePath(self.checkpoint)
            saved = Checkpoint.read(file) if file else None
            seed = saved.seed if saved and self.random_state is None else None
            task = _prepare(self, X, y, sample_weight, cv_groups, seed)
            warn_of_constant_features(task.problem, task.fixed)
            for name in ("stability_", "chance_"):  # of an earlier fit
                self.__dict__.pop(name, None)
            self.all_columns_score_ = nan
            # The small matrix products of the pursuit gain nothing from BLAS threads and pay for their waiting.
            line = StatusLine(bool(self.verbose))
            with one_blas_thread, keep_workers(), line.shown():
                search, identity = task.search(), {}
                if file:
                    defining = {name: v for name, v in self.get_params(deep=False).items() if name not in NOT_DEFINING}
                    defining |= {"task": self.task, "random_state": task.seed}
                    identity = identity_of(task.problem, task.fixed, defining)
                if file and saved:
                    saved.check(file, identity, task.problem)
                    logger.info("going on after %d steps that were found in %s", len(saved.steps) - 1, file)
                context = self._init_callback_context(max_subtasks=None).call_on_fit_task_begin(estimator=self)
                save = Saving(file, identity, task.seed) if file else None
                attributes = partial(self._attributes_after, task.problem, search.scorer)
                monitor = _Monitor(self, context, attributes, save, line)
                path = task.pursue(search, saved.steps if saved else (), monitor)
                late = path.partial and self.max_time is not None and perf_counter() - begin >= self.max_time
                try:
                    self._finish(task.problem, search.scorer, path, late)
                except KeyboardInterrupt:
                    self._keep_selection(task.problem, search.scorer, path)
                if not path.partial:
                    with suppress(KeyboardInterrupt):  # the selection is there, and needs neither comparison nor proof
                        self.all_columns_score_ = search.score_of_all()
                        self._prove(task, search, path)
                self._warn_of_few(path)
                if leak := suspect(path.steps, self.task_):
                    warnings.warn(leak, stacklevel=5)
                context.call_on_fit_task_end(estimator=self)
        return self

    @_fit_context(prefer_skip_nested_validation=True)
    def estimate(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        cv_groups: npt.ArrayLike | None = None,
    ) -> Estimate:
        """Predict how long `fit` would take, and how much memory; nothing is fitted.

        A few candidates are scored, which takes a small part of the time of the fit. If the data decide how many steps
        there are, as many as usual are assumed, and the range is wide.

        Parameters
        ----------
        X, y, sample_weight, cv_groups : array-like
            As for `fit`.

        Returns
        -------
        Estimate
            Its attributes are ``seconds``, a range, ``memory`` and more; printed, it says them in words.
        """
        begin = perf_counter()
        task = _prepare(self._unchanged_copy(), X, y, sample_weight, cv_groups)
        warn_of_constant_features(task.problem, task.fixed)
        with one_blas_thread, keep_workers():
            return estimate_pursuit(
                task.search(),
                task.rule,
                task.fixed,
                task.n_fixed,
                self.floating,
                perf_counter() - begin,
                self._predicts,
                self.max_time,
            )

    def measure_stability(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        cv_groups: npt.ArrayLike | None = None,
        *,
        n_halves: int = 50,
    ) -> Stability:
        """Select again on random halves of the rows, to see how stable the selection is.

        It takes about half as long as `n_halves` fits.

        Parameters
        ----------
        X, y, sample_weight, cv_groups : array-like
            As for `fit`.
        n_halves : int, default=50
            Number of halves, an even number since they come in complementary pairs.

        Returns
        -------
        Stability
            How often each candidate is selected; it is kept as `stability_`.

        Examples
        --------
        >>> from ngp import NeuralGreedyPursuit
        >>> from ngp.datasets import make_ohm
        >>> X, y, truth = make_ohm(100, random_state=0)
        >>> selector = NeuralGreedyPursuit(n_features_to_select=2, random_state=0).fit(X, y)
        >>> selector.measure_stability(X, y, n_halves=4).stable()
        array([0, 1])
        """
        check_is_fitted(self)
        if not isinstance(n_halves, Integral) or n_halves < 2 or n_halves % 2:
            raise ValueError(f"n_halves={n_halves!r} must be an even number of at least 2, since halves come in pairs.")
        task = self._prepared_again(X, y, sample_weight, cv_groups)
        with one_blas_thread, keep_workers():
            selections = selections_on_halves(
                task.problem, n_halves, task.seed, lambda half: task.pursue(task.search().on(half))
            )
        n_candidates = task.problem.n_candidates(task.fixed)
        self.stability_ = Stability(selections, task.problem.groups.n_groups, n_candidates)
        return self.stability_

    def measure_chance(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        cv_groups: npt.ArrayLike | None = None,
    ) -> FloatArray:
        """Estimate which loss each step would have led to by chance, had all its candidates been useless.

        In each step, the predictor is trained with 40 candidates whose rows are permuted. What the best of all
        candidates would gain is extrapolated from them.

        Parameters
        ----------
        X, y, sample_weight, cv_groups : array-like
            As for `fit`.

        Returns
        -------
        float array of shape (n_steps, 2)
            For each step of `path_`, the range of the loss in about 8 of 10 cases; NaN for steps that add nothing. It
            is kept as `chance_`, and shown as a band by `plot_path` and in reports.

        Examples
        --------
        >>> from ngp import NeuralGreedyPursuit
        >>> from ngp.datasets import make_ohm
        >>> X, y, truth = make_ohm(100, random_state=0)
        >>> selector = NeuralGreedyPursuit(n_features_to_select=2, random_state=0).fit(X, y)
        >>> low, high = selector.measure_chance(X, y)[1]
        >>> bool(selector.path_[1].loss < low < high)
        True
        """
        check_is_fitted(self)
        task = self._prepared_again(X, y, sample_weight, cv_groups)
        with one_blas_thread, keep_workers(), phase("estimating chance"):
            self.chance_ = chance_losses(task.search(), self.path_, self._seed)
        return self.chance_

    def _unchanged_copy(self) -> Self:
        """A selector with the same parameters and attributes, so that nothing changes this one."""
        other = copy(self)
        for name in ("random_state", "_sklearn_output_config"):  # a generator would go on; of `set_output`
            if name in vars(self):
                setattr(other, name, deepcopy(vars(self)[name]))
        return other

    def _prepared_again(self, X: Any, y: Any, sample_weight: Any, cv_groups: Any) -> _Task:
        """The task of the fit for a copy, which has its path: it must be of the same candidates."""
        task = _prepare(self._unchanged_copy(), X, y, sample_weight, cv_groups, self._seed)
        other = task.selector
        if not other.encoder_.is_like(self.encoder_):
            raise ValueError("X has other columns or categories than in fit: give the X of fit, or one like it.")
        if not (other.groups_.is_like(self.groups_) and np.array_equal(other.fixed_, self.fixed_)):
            raise ValueError("groups or fixed are others than in fit: set them to what they were, or fit again.")
        return task

    def _keep_selection(self, problem: Problem, scorer: Scorer, path: Path) -> None:
        """Set the fitted attributes after an interruption of `_finish`, without a predictor."""
        self.__dict__.pop("predictor_", None)  # of an earlier fit
        reason = f"{path.reason}; interrupted while the final predictor was trained"
        NeuralGreedyPursuit._finish(self, problem, scorer, replace(path, reason=reason, partial=True))
        warnings.warn(
            "Interrupted while the final predictor was trained: the selection is kept, but it can't predict; fit again "
            "for that (with a checkpoint, nothing else is repeated).",
            stacklevel=4,
        )

    def cut(self, k: int | str) -> Self:
        """Cut the path at another number of features, without a new search.

        Parameters
        ----------
        k : int or str
            Number of features (groups; fixed columns count), as long as the path has such a selection: of several it
            is the current one or the one with the lowest loss. Or a key of `cuts_`, such as ``"best"``.

        Returns
        -------
        object
            Another fitted selector with the same parameters and the same steps; this one stays as it is. It has no
            `stability_`.

        Examples
        --------
        >>> from ngp import NeuralGreedyPursuit
        >>> from ngp.datasets import make_ohm
        >>> X, y, truth = make_ohm(100, random_state=0)
        >>> selector = NeuralGreedyPursuit(random_state=0).fit(X, y)
        >>> selector.order_, selector.cut(1).order_
        (array([1, 0]), array([1]))
        """
        check_is_fitted(self)
        other = self._unchanged_copy()
        other.__dict__.pop("stability_", None)  # of another selection
        other._store(self.path_.cut(k))
        return other

    def significant(self, fdr: float = 0.1, *, method: Literal["bh", "by"] = "bh") -> IntArray:
        """Find the features that are significant at a false discovery rate.

        Parameters
        ----------
        fdr : float, default=0.1
            Share of false ones among them that is accepted, on average.
        method : {"bh", "by"}, default="bh"
            Benjamini and Hochberg's procedure, or Benjamini and Yekutieli's, which holds however p-values depend on
            each other and finds less.

        Returns
        -------
        int array
            Features (groups, where given) whose p-values are known and significant together, the lowest first.

        Examples
        --------
        >>> from ngp import NeuralGreedyPursuit
        >>> from ngp.datasets import make_ohm
        >>> X, y, truth = make_ohm(100, random_state=0)
        >>> NeuralGreedyPursuit(p_values="all", random_state=0).fit(X, y).significant(0.05)
        array([1, 0])
        """
        check_is_fitted(self)
        if not isinstance(fdr, Real) or not 0 < fdr < 1:
            raise ValueError(f"fdr={fdr!r} must be a share between 0 and 1: use 0.1.")
        if method not in ("bh", "by"):
            raise ValueError(f"method={method!r} must be 'bh' or 'by'.")
        known = np.flatnonzero(~np.isnan(self.p_values_))
        order = known[np.argsort(self.p_values_[known], kind="stable")]
        found: IntArray = order[false_discovery_control(self.p_values_[order], method=method) <= fdr]
        return found

    def summary(self, fdr: float = 0.1) -> Any:
        """Put what is known of the features in a table: a pandas data frame with a row for each.

        Parameters
        ----------
        fdr : float, default=0.1
            False discovery rate of the column ``significant`` (see `significant`).

        Returns
        -------
        pandas DataFrame
            Of all selected features and those with a p-value: ``rank`` in the order of selection, ``importance`` with
            its standard error, ``p_value`` and ``significant``. Its index holds their names.
        """
        from pandas import DataFrame, Index, array

        check_is_fitted(self)
        groups, n_selected = known_groups(self.order_, self.p_values_), len(self.order_)
        ranks = [rank if rank <= n_selected else None for rank in range(1, 1 + len(groups))]
        return DataFrame(
            {
                "rank": array(ranks, dtype="Int64"),
                "importance": self.importances_[groups],
                "standard_error": self.importance_errors_[groups],
                "p_value": self.p_values_[groups],
                "significant": np.isin(groups, self.significant(fdr)),
            },
            index=Index([str(self.groups_.names[group]) for group in groups], name="feature"),
        )

    def _prove(self, task: _Task, search: Search, path: Path) -> None:
        """Set importances and p-values of what is selected."""
        with phase("measuring importances"):
            found = importances(search, path) / (self.constant_loss_ or 1.0)
            self.importances_, self.importance_errors_ = found.T
        if self.p_values == "all" or (self.p_values == "selected" and len(path.kept) <= MOST_TESTED):
            test = SignificanceTest(task.problem, Significance().level, n_jobs=self.n_jobs)
            self.p_values_ = p_values(test, path, self.p_values == "all")
            if len(path) > 1 and not path.kept and path[1].p_value >= 0:
                self.rows_needed_ = rows_needed(test, path)

    def _finish(self, problem: Problem, scorer: Scorer, path: Path, late: bool = False) -> None:
        """Set the fitted attributes."""
        self.task_ = "regression" if problem.classes is None else "classification"
        self.__dict__.pop("classes_", None)
        if problem.classes is not None:
            self.classes_ = problem.classes
        self.constant_loss_ = float(scorer.at(1).constant_losses(problem).means[0])
        self._store(path)

    def _store(self, path: Path) -> None:
        """Set what a path says about the columns."""
        n_groups, constant = self.groups_.n_groups, self.constant_loss_
        self.importances_, self.importance_errors_, self.p_values_ = np.full((3, n_groups), np.nan)
        self.rows_needed_ = nan
        self.path_, self.stop_reason_, self.partial_ = path, path.reason, path.partial
        self.cuts_ = {name: path[number].n_selected for name, number in path.cuts.items()}
        self.order_ = np.array([step.group for step in path.kept], dtype=np.intp)
        self.losses_ = np.array([step.losses for step in path[1:]]).reshape(-1, n_groups)
        self.ranking_ = ranks_of_columns(path.ranks(n_groups), self.groups_, self.fixed_, self.n_features_in_)
        blocks = self.encoder_.feature_groups_
        origin = np.arange(self.n_features_in_)  # the column that an encoded one stands for
        if blocks is not None:
            origin = np.repeat(origin, [len(block) for block in blocks])
        self.support_ = np.zeros(self.n_features_in_, dtype=bool)
        self.feature_importances_ = np.zeros(self.n_features_in_)
        for step in (path[0], *path.kept):
            columns = np.unique(origin[step.columns])
            self.support_[columns] = True
            if len(columns) and constant > 0:
                drop = constant - step.loss if step.action == "start" else step.drop
                self.feature_importances_[columns] = max(drop, 0.0) / constant / len(columns)

    def _warn_of_few(self, path: Path) -> None:
        """Warn if nothing was selected, or less than was asked for, since groups share columns."""
        wanted, found = self.n_features_to_select, len(path.kept) + len(self.fixed_)
        if not found:
            effect = ": the prediction is constant" if self._predicts else ""
            nearest = nearest_in_words(path, self.p_values_, self.rows_needed_)
            warnings.warn(f"Nothing was selected ({path.reason}){effect}.{nearest and f' {nearest}'}", stacklevel=5)
        elif isinstance(wanted, Integral) and path.reason == NO_CANDIDATE_LEFT and found < wanted:
            message = f"Only {found} of {wanted} features were selected: the others share all their columns with them."
            warnings.warn(message, stacklevel=5)

    def _attributes_after(self, problem: Problem, scorer: Scorer, steps: Sequence[Step]) -> dict[str, Any]:
        """Fitted attributes, as if the pursuit had ended with some steps."""
        ended = copy(self)
        ended._finish(problem, scorer, finished(steps, GOES_ON, partial=True))
        return {name: value for name, value in vars(ended).items() if name.endswith("_") and name[0] != "_"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = self.task != "classification"
        return tags

    def report(
        self,
        path: str | PathLike[str],
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        *,
        target: str = "y",
        held_out: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        image_shape: Sequence[int] | None = None,
        sample_weight: npt.ArrayLike | None = None,
        cv_groups: npt.ArrayLike | None = None,
    ) -> None:
        """Write a report as one HTML file (see `ngp.report.write_report`); it needs what was given to `fit`."""
        from ngp.report import write_report
        from ngp.report.result import Result

        refuse_other_suffixes(path, "a report", (".html", ".htm"))
        if not hasattr(self, "chance_"):
            self.measure_chance(X, y, sample_weight, cv_groups)
        write_report(Result.of(self, X, y, target=target, held_out=held_out, image_shape=image_shape), path)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted selector to a file, without pickle (see `ngp.io.save`)."""
        from ngp.io import save

        save(cast(Any, self), path)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Read a fitted selector from a file that `save` has written (see `ngp.io.load`)."""
        from ngp.io import load

        selector = load(path)
        if not isinstance(selector, cls):
            found = type(selector).__name__
            raise TypeError(f"{path} holds {found}, and this is {cls.__name__}.load: use {found}.load or ngp.io.load.")
        return selector

    def plot_path(self, *, ax: Any = None) -> Any:
        """Plot the validation loss against the number of selected features (see `ngp.report.plot_path`)."""
        from ngp.report import plot_path

        return plot_path(self, ax=ax)


class _SelectingPredictor(NeuralGreedyPursuit):
    """A selector that trains the predictor on what it has selected, for the task of its class."""

    _task: ClassVar[str]
    _predicts = True

    def __init__(
        self,
        predictor: Any = "auto",
        *,
        n_features_to_select: int | float | None = None,
        tol: float | None = None,
        stop: Literal["auto", "plateau"] | StopRule | None = None,
        groups: Any = None,
        fixed: Sequence[int] | Sequence[str] | None = None,
        cv: Any = "auto",
        loss: str = "auto",
        floating: bool = False,
        screen: int | Literal["auto"] | None = None,
        p_values: Literal["selected", "all"] | None = "selected",
        max_time: float | None = None,
        n_jobs: int | None = None,
        device: str = "auto",
        checkpoint: str | PathLike[str] | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            predictor,
            n_features_to_select=n_features_to_select,
            tol=tol,
            stop=stop,
            groups=groups,
            fixed=fixed,
            cv=cv,
            loss=loss,
            task=self._task,
            floating=floating,
            screen=screen,
            p_values=p_values,
            max_time=max_time,
            n_jobs=n_jobs,
            device=device,
            checkpoint=checkpoint,
            verbose=verbose,
            random_state=random_state,
        )

    def cut(
        self,
        k: int | str,
        X: npt.ArrayLike | None = None,
        y: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        cv_groups: npt.ArrayLike | None = None,
    ) -> Self:
        """Cut the path at another number of features, and train the predictor on them.

        Parameters
        ----------
        k : int or str
            Number of features or key of `cuts_`, as in `NeuralGreedyPursuit.cut`.
        X, y, sample_weight, cv_groups : array-like
            As for `fit`, of which no data are kept: X and y are needed.

        Returns
        -------
        object
            Another fitted selector; this one stays as it is.
        """
        check_is_fitted(self)
        path = self.path_.cut(k)
        if X is None or y is None:
            raise ValueError(
                f"{type(self).__name__}.cut trains the predictor again, and the data of fit aren't kept: give X and y."
            )
        task = self._prepared_again(X, y, sample_weight, cv_groups)
        other = cast(Self, task.selector)
        other.__dict__.pop("stability_", None)
        with one_blas_thread, keep_workers():
            search = task.search()
            other._finish(task.problem, search.scorer, path)
            other._prove(task, search, path)
        return other

    def _finish(self, problem: Problem, scorer: Scorer, path: Path, late: bool = False) -> None:
        super()._finish(problem, scorer, path)
        self.predictor_: FittedPredictor = Constant.of(problem)
        if len(path.columns):
            with phase("training the final predictor"):
                final = scorer.at(max(1, len(path.kept)))
                if late:
                    final = final.without_search([path[0], *path.kept][-1].ridge)
                self.predictor_ = final.fit(path.columns)

    def _predict_coded(self, X: npt.ArrayLike) -> FloatArray:
        check_is_fitted(self)
        if not hasattr(self, "predictor_"):
            raise NotFittedError("The training of the final predictor was interrupted: call fit again to predict.")
        data: Any
        with briefly_refused_gaps():
            if self.encoder_.feature_groups_ is None:
                data = self._few_columns(X)
                if data is None:
                    data = validate_data(self, X, reset=False)
            else:
                _check_feature_names(self, X, reset=False)
                data = check_array(self.encoder_.transform(X), estimator=self, input_name="X")
        coded: FloatArray = self.predictor_.predict(data)
        return coded


class NGPClassifier(ClassifierMixin, _SelectingPredictor):  # type: ignore[misc]
    """Select features for the prediction of classes, and predict from them.

    The predictor is trained on the selected columns of all rows. Parameters and attributes are those of
    `NeuralGreedyPursuit`, without `task`; `score` is the accuracy.

    Attributes
    ----------
    predictor_ : FittedPredictor
        The predictor, trained on the selected columns of all rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from ngp import NGPClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> cross_val_score(NGPClassifier(n_features_to_select=2, random_state=0), X, y, cv=3).round(2)
    array([0.98, 0.94, 0.98])
    """

    _task = "classification"

    def predict(self, X: npt.ArrayLike) -> AnyArray:
        """Predict classes from the selected columns."""
        return labels(self._predict_coded(X), self.classes_)

    def predict_proba(self, X: npt.ArrayLike) -> FloatArray:
        """Estimate the probability of each class."""
        return probabilities(self._predict_coded(X))

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the accuracy of `predict`."""
        return float(super().score(X, y, sample_weight))


class NGPRegressor(RegressorMixin, _SelectingPredictor):  # type: ignore[misc]
    """Select features for the prediction of numbers, and predict from them.

    The predictor is trained on the selected columns of all rows. Parameters and attributes are those of
    `NeuralGreedyPursuit`, without `task`; `score` is R².

    Attributes
    ----------
    predictor_ : FittedPredictor
        The predictor, trained on the selected columns of all rows.

    Examples
    --------
    >>> from ngp import NGPRegressor
    >>> from ngp.datasets import make_gravitation
    >>> X, y, truth = make_gravitation(300, random_state=0)
    >>> selector = NGPRegressor(random_state=0).fit(X[:200], y[:200])
    >>> sorted(selector.order_.tolist()), round(selector.score(X[200:], y[200:]), 2)
    ([0, 1, 2], 1.0)
    """

    _task = "regression"

    def predict(self, X: npt.ArrayLike) -> AnyArray:
        """Predict values from the selected columns."""
        coded = self._predict_coded(X)
        return coded[:, 0] if self._single_output else coded

    def score(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return R² of `predict`."""
        return float(super().score(X, y, sample_weight))


@contextmanager
def _as_before_if_it_fails(selector: NeuralGreedyPursuit) -> Iterator[None]:
    """Fit all of a selector or nothing: it never holds parts of two fits."""
    before = dict(vars(selector))
    try:
        yield
    except BaseException:
        for name in vars(selector).keys() - before.keys():
            if name.endswith("_"):  # others are scikit-learn's
                delattr(selector, name)
        selector.__dict__.update(before)
        raise


class _Task(NamedTuple):
    """What a selector has to do."""

    selector: NeuralGreedyPursuit
    problem: Problem  # the data and the candidates
    predictor: Predictor  # what is retrained
    rule: StopRule  # says when to stop
    fixed: IntArray  # columns of the problem that are selected from the start
    seed: int  # of folds and random layers

    @property
    def n_fixed(self) -> int:
        """Number of fixed columns of X, which may be encoded as several."""
        return len(self.selector.fixed_)

    def search(self) -> Search:
        """What finds the best candidate of a step."""
        selector = self.selector
        bind = partial(
            bind_predictor, self.predictor, random_state=self.seed, n_jobs=selector.n_jobs, device=selector.device
        )
        return Search(
            self.problem,
            bind,
            None if selector.screen is None else Screening(selector.screen, self.seed, selector.n_jobs),
            self.predictor.name,
            self.predictor.scoring,
        )

    def pursue(self, search: Search, made: Sequence[Step] = (), observer: _Monitor | None = None) -> Path:
        """Run the pursuit."""
        return pursue(
            search,
            self.rule,
            fixed=self.fixed,
            n_fixed=self.n_fixed,
            floating=self.selector.floating,
            n_jobs=self.selector.n_jobs,
            made=made,
            observer=observer,
        )


def _prepare(
    selector: NeuralGreedyPursuit,
    X: npt.ArrayLike,
    y: npt.ArrayLike,
    sample_weight: npt.ArrayLike | None,
    cv_groups: npt.ArrayLike | None,
    seed: int | None = None,
) -> _Task:
    """Check what `fit` is given, and make a task of it."""
    predictor, _ = settled(selector.predictor, selector.cv, n_rows=1, n_candidates=1)
    if predictor.scoring is not None and selector.loss != "auto":
        raise ValueError(
            f"loss={selector.loss!r} and scoring={predictor.scoring!r} exclude each other: give only one of them."
        )
    data, targets = check_training_data(selector, X, y)
    selector._single_output = targets.ndim == 1
    weights = None
    if sample_weight is not None:
        weights = _check_sample_weight(sample_weight, data, dtype=np.float64, ensure_non_negative=True)
    if seed is None:
        seed = check_random_state(selector.random_state).randint(np.iinfo(np.int32).max)
    selector._seed = seed
    names, n_features = selector.encoder_.feature_names_, selector.n_features_in_
    groups = make_groups(selector.groups, n_features, names)
    fixed = column_numbers("fixed", () if selector.fixed is None else selector.fixed, n_features, names)
    blocks = selector.encoder_.feature_groups_
    selector.groups_, selector.fixed_ = groups, fixed
    if blocks is not None:
        groups = groups.expand(blocks)
        fixed = np.concatenate([fixed[:0], *(blocks[column] for column in fixed)])
    given_cv = 5 if cv_groups is not None and isinstance(selector.cv, str) and selector.cv == "auto" else selector.cv
    n_candidates, n_rows = groups.n_groups, data.shape[0] if weights is None else int(np.count_nonzero(weights))
    predictor, cv = settled(selector.predictor, given_cv, n_rows=n_rows, n_candidates=n_candidates)
    problem = make_problem(
        data,
        targets,
        groups=groups,
        task=selector.task,
        cv=checked_cv(selector, cv),
        loss=selector.loss,
        classification_loss=predictor.classification_loss,
        sample_weight=weights,
        cv_groups=None if cv_groups is None else np.asarray(cv_groups),
        random_state=seed,
    )
    selector.task_ = "regression" if problem.classes is None else "classification"
    if not problem.varies.any():
        raise ValueError("X has only constant columns: there is nothing to select from.")
    return _Task(selector, problem, predictor, _stop_rule(selector, problem, fixed), fixed, seed)


def _stop_rule(selector: NeuralGreedyPursuit, problem: Problem, fixed: IntArray) -> StopRule:
    """What the parameters of a selector say about the end of a pursuit."""
    number, n_fixed = selector.n_features_to_select, len(selector.fixed_)
    limits: list[StopRule] = []
    level = Significance().level if selector.tol is None and selector.stop is None else None
    if isinstance(number, Integral):
        most = problem.n_candidates(fixed) + n_fixed
        if number > most:
            raise ValueError(
                f"n_features_to_select={number} is more than the {most} features that vary: give at most {most}."
            )
        if number < n_fixed:
            raise ValueError(f"n_features_to_select={number} is less than the {n_fixed} fixed columns: give more.")
        limits.append(MaxFeatures(int(number), level))
    elif number is not None and selector.groups_.are_columns:
        limits.append(MaxFeatures(max(1, round(float(number) * selector.n_features_in_)), level))
    elif number is not None:
        limits.append(MaxColumns(max(1, round(float(number) * problem.n_columns)), level))
    rules = [*limits, *_what_pays(selector.tol, selector.stop, bool(limits), problem)]
    if selector.max_time is not None:
        rules.append(MaxTime(selector.max_time))
    return rules[0] if len(rules) == 1 else FirstOf(rules)


def _what_pays(tol: float | None, stop: str | StopRule | None, limited: bool, problem: Problem) -> list[StopRule]:
    """The rule that says when a step no longer pays; none where there is a limit and nothing else is asked for."""
    if stop is not None and tol is not None:
        raise ValueError(f"tol={tol} and stop={stop!r} are two rules for one thing: give one of them.")
    if tol is not None:
        return [RelativeImprovement(tol)]
    if stop is None and limited:
        return []
    if isinstance(stop, StopRule):
        return [stop]
    # A single part of the validation says nothing about its own error.
    plateau = Plateau(standard_errors=1.0 if np.count_nonzero(problem.part_weights) > 1 else 0.0)
    return [Cut([plateau, Significance()] if stop == "plateau" else [Significance(), plateau])]


class _Monitor:
    """Sees the steps of a fit (see `ngp.greedy.loop.Observer`): saves, logs and prints them, and tells callbacks.

    A step is saved before anybody hears of it, so that no callback can lose it.
    """

    def __init__(
        self,
        selector: NeuralGreedyPursuit,
        context: Any,
        attributes: Callable[[Sequence[Step]], dict[str, Any]],
        save: Callable[[Sequence[Step]], None] | None,
        lines: StatusLine,
    ) -> None:
        self._selector, self._context, self._attributes, self._save = selector, context, attributes, save
        self._task: Any = None
        self._lines = lines

    def begin(self) -> None:
        """Tell scikit-learn's callbacks that a step begins."""
        self._task = self._context.subcontext(task_name="step").call_on_fit_task_begin(estimator=self._selector)

    def end(self, steps: Sequence[Step], n_new: int) -> bool:
        """Save the steps, tell all who listen, and say whether a callback wants to stop."""
        if self._save:
            self._save(steps)
        self._selector.path_ = made = Path(tuple(steps), GOES_ON, partial=True)
        for step in steps[-n_new:]:
            line = step_line(step, steps, self._selector.task_)
            logger.info(line)
            self._lines.end(f"[ngp] {line}")
        if self._task is None:  # the start is no task of its own
            return False
        task, self._task = self._task, None
        asked = task.call_on_fit_task_end(
            estimator=self._selector, reconstruction_attributes=lambda: self._attributes(made)
        )
        return bool(asked)
