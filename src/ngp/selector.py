"""`NeuralGreedyPursuit`, the scikit-learn face of the package."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from numbers import Integral, Real
from os import PathLike
from pathlib import Path as FilePath
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import _fit_context
from sklearn.callback import with_callbacks
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from threadpoolctl import threadpool_limits

from ngp.data.losses import LOSSES
from ngp.data.problem import Problem, check_columns
from ngp.fitted import FittedSelector
from ngp.greedy.checkpoint import Checkpoint, identity_of
from ngp.greedy.estimate import Estimate, estimate_fit
from ngp.greedy.loop import pursue
from ngp.greedy.monitor import Monitor, logger
from ngp.greedy.path import Path, Step, finished
from ngp.greedy.stability import Stability, selections_on_halves
from ngp.greedy.stopping import NO_CANDIDATE_LEFT, StopRule
from ngp.kernels.parallel import keep_workers
from ngp.predictors.base import Constant, Scorer
from ngp.predictors.committee import PREDICTORS
from ngp.preparation import Prepared, prepare, stop_rule

__all__ = ["NeuralGreedyPursuit"]

# Parameters that don't change the result, or that the data, the folds, the groups and the seed stand for.
NOT_DEFINING = frozenset(
    {"checkpoint", "callback", "verbose", "n_jobs", "max_time", "max_fits", "n_resamples"}
    | {"groups", "fixed", "cv", "random_state"}
)


class NeuralGreedyPursuit(FittedSelector):
    """Select features one by one, each by retraining a predictor for every candidate.

    Start with no features; in each step retrain the predictor for every candidate together with those already
    selected, add the one with the lowest validation loss, and go on until enough are in or nothing pays any more.
    The order of selection ranks the features by importance.

    Parameters
    ----------
    predictor : {"ssfn", "mlp", "cnn", "kernel"}, predictor, estimator, list or callable, default="ssfn"
        What is retrained: a name, a configured object of `ngp.predictors`, any scikit-learn estimator (only its
        clones are fitted), a list of those (the best one wins a step), or a callable that is given the number of a
        step, from 1, and returns its predictor.
    n_features_to_select : int, float or None, default=None
        Number of features (of groups, where `groups` are given; `fixed` columns count), or a share of the columns.
        Alone, exactly so many are selected. None leaves it to `tol` or `stop`.
    tol : float or None, default=None
        The paper's threshold: stop when a step lowers the loss by less than this share of the new loss, and take
        that step back.
    stop : {"auto", "plateau"}, StopRule or None, default=None
        A rule of `ngp.greedy.stopping` instead of `tol`. ``"auto"``, which is also what None means if neither a number
        nor `tol` is given, stops when steps gain no more than the best of as many useless candidates may gain by
        chance; this takes several times as long as the steps themselves. ``"plateau"`` goes on until the loss has not
        improved for three steps, then keeps the smallest selection within a standard error of the best.
    groups : None, labels, list of lists, mapping or Groups, default=None
        Columns that enter together; category columns of a data frame always do. Costs of columns or groups are part of
        the groups (see `ngp.data.groups.make_groups`): with them, the largest improvement per cost wins a step.
    fixed : sequence of columns or None, default=None
        Columns, as indices or names, that are in from the start.
    cv : int, float, "loo", splitter, splits or (X, y), default=5
        How candidates are judged: a number of random folds, a hold-out share, leave-one-out, any scikit-learn
        splitter, pairs of row numbers, or an explicit validation set.
    loss : {"auto", "squared_error", "cross_entropy", "hinge"}, default="auto"
        The validation loss; ``"auto"`` is the squared error (of coded targets for classes), or the cross-entropy
        where there are classes and the predictor is an MLP or a CNN, or the hinge loss for a scikit-learn classifier
        without ``predict_proba``.
    task : {"auto", "regression", "classification"}, default="auto"
        What y is. ``"auto"`` takes text, booleans and up to 20 whole numbers, each twice on average, for classes.
    floating : bool, default=False
        Whether to take back wrong picks: after each addition what no longer pays is dropped, and in the end features
        are exchanged, one for one or one for several, as long as that lowers the loss (see `ngp.greedy.floating`).
    look_ahead : int, default=1
        How many features are added in mind to find the best one to begin with: with 2, pairs are scored, so that
        features that only work together are found. At most 5 (see `ngp.greedy.look_ahead`).
    beam_width : int or None, default=None
        For `look_ahead`: how many of the best smaller sets are extended by all candidates. None tries all sets, or
        as many as 50,000 trainings a step allow.
    screen : int, "auto" or None, default=None
        For very many columns: in each step a cheap pass ranks the candidates, and only so many of the best are scored
        exactly (``"auto"``: ten times the root of their number). It can miss what None, scoring all of them, finds.
    n_resamples : int, default=0
        On how many random halves of the rows to select again (an even number), to see how stable the selection is
        (`stability_`; see `ngp.greedy.stability`). It takes about half as long as so many fits. Where `max_time` or
        `max_fits` is used up, there are fewer.
    max_time : float or None, default=None
        Seconds after which no further step begins.
    max_fits : int or None, default=None
        Number of scored candidates after which no further step begins.
    n_jobs : int or None, default=None
        Parallel tasks, as everywhere in scikit-learn. The result doesn't depend on it.
    device : {"auto", "cpu", "cuda", "mps"}, default="auto"
        Where candidates are scored; ``"auto"`` takes a GPU if there is one (and, for an SSFN, if a step takes long
        enough). Losses differ by rounding. On a Dask or Ray cluster, ``"cuda"`` is the GPU that each worker sees.
    checkpoint : path or None, default=None
        A file that is kept up to date after every step. A fit that was killed goes on with it, to the same result;
        a checkpoint of other data, parameters or another version is refused.
    callback : callable or None, default=None
        Called with each `Step` as it is made; if it returns True, the pursuit ends. Callbacks of scikit-learn (see
        `set_callbacks`) are told of the steps, too.
    verbose : int, default=0
        Whether to print a line for each step. Python's logger ``ngp`` gets the same lines at the level INFO.
    random_state : int, RandomState or None, default=None
        Seed of folds and random layers.

    Attributes
    ----------
    support_ : bool array of shape (`n_features_in_`,)
        The selected columns.
    order_ : int array
        Selected columns (groups, where given), most important first; `fixed` columns have no rank.
    path_ : tuple of Step
        All steps, from the start (the constant prediction, or the fixed columns) to the last one tried.
    losses_ : float array of shape (n_steps, n_groups)
        Loss of every candidate in every step; NaN where not tried.
    feature_importances_ : float array of shape (`n_features_in_`,)
        Share of the constant prediction's loss that a column took away when added (columns of a group share alike).
    constant_loss_ : float
        Validation loss of the constant prediction.
    stop_reason_ : str
        Why the pursuit ended.
    partial_ : bool
        Whether it was cut short by `max_time`, `max_fits`, Ctrl-C or a callback.
    stability_ : Stability
        How often each candidate was selected on halves of the rows; only with `n_resamples`.
    task_ : str
        "regression" or "classification".
    classes_ : array
        The classes, for classification.
    predictor_ : FittedPredictor
        The predictor, trained on the selected columns of all rows.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "predictor": [
            StrOptions(set(PREDICTORS)),
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
        "stop": [StrOptions({"auto", "plateau"}), HasMethods("check"), None],
        "fixed": ["array-like", None],
        "cv": [object],
        "loss": [StrOptions({"auto", *LOSSES})],
        "task": [StrOptions({"auto", "regression", "classification"})],
        "floating": ["boolean"],
        "look_ahead": [Interval(Integral, 1, 5, closed="both")],
        "beam_width": [Interval(Integral, 1, None, closed="left"), None],
        "screen": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"}), None],
        "n_resamples": [Interval(Integral, 0, None, closed="left")],
        "max_time": [Interval(Real, 0, None, closed="neither"), None],
        "max_fits": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "device": [StrOptions({"auto", "cpu", "cuda", "mps"})],
        "checkpoint": [str, PathLike, None],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        predictor: Any = "ssfn",
        *,
        n_features_to_select: int | float | None = None,
        tol: float | None = None,
        stop: Literal["auto", "plateau"] | StopRule | None = None,
        groups: Any = None,
        fixed: Sequence[int] | Sequence[str] | None = None,
        cv: Any = 5,
        loss: str = "auto",
        task: str = "auto",
        floating: bool = False,
        look_ahead: int = 1,
        beam_width: int | None = None,
        screen: int | Literal["auto"] | None = None,
        n_resamples: int = 0,
        max_time: float | None = None,
        max_fits: int | None = None,
        n_jobs: int | None = None,
        device: str = "auto",
        checkpoint: str | PathLike[str] | None = None,
        callback: Callable[[Step], object] | None = None,
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
        self.look_ahead = look_ahead
        self.beam_width = beam_width
        self.screen = screen
        self.n_resamples = n_resamples
        self.max_time = max_time
        self.max_fits = max_fits
        self.n_jobs = n_jobs
        self.device = device
        self.checkpoint = checkpoint
        self.callback = callback
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
        """Select features and train the predictor on them.

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
            Groups of samples, for splitters that keep such together.

        Returns
        -------
        NeuralGreedyPursuit
            The selector itself, fitted.
        """
        saved = Checkpoint.read(self._checkpoint_path) if self._checkpoint_path else None
        seed = saved.seed if saved and self.random_state is None else None
        prepared = prepare(self, X, y, sample_weight, cv_groups, seed)
        check_columns(prepared.problem, prepared.fixed)
        # The small matrix products of the pursuit gain nothing from BLAS threads and pay for their waiting.
        with threadpool_limits(1, user_api="blas"), keep_workers():
            self._select(prepared, saved)
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

        A few candidates are scored, which takes some two seconds, or as long as one unit of work where that is more.

        Parameters
        ----------
        X, y, sample_weight, cv_groups : array-like
            As for `fit`.

        Returns
        -------
        Estimate
            Its attributes are ``seconds``, ``memory`` and more; printed, it says them in words.
        """
        return estimate_fit(self, X, y, sample_weight, cv_groups)

    @property
    def _checkpoint_path(self) -> FilePath | None:
        return None if self.checkpoint is None else FilePath(self.checkpoint)

    def _select(self, prepared: Prepared, saved: Checkpoint | None) -> None:
        self.__dict__.pop("stability_", None)  # of an earlier fit, before anybody hears of this one
        problem, _, fixed, seed = prepared
        search, rule = prepared.search(self), stop_rule(self, problem, fixed)
        file, identity = self._checkpoint_path, {}
        if file:
            identity = identity_of(problem, fixed, {**self._defining_parameters(), "random_state": seed})
        if file and saved:
            saved.check(file, identity)
            logger.info("going on after %d steps that were found in %s", len(saved.steps) - 1, file)
        context = self._init_callback_context(max_subtasks=None).call_on_fit_task_begin(estimator=self)
        attributes = partial(self._attributes_after, problem, search.scorer)
        path = pursue(
            search,
            rule,
            fixed=fixed,
            n_fixed=len(self.fixed_),
            floating=self.floating,
            chance=prepared.chance(self, rule),
            made=saved.steps if saved else (),
            observer=Monitor(self, context, attributes, file, identity, seed),
        )
        self._finish(problem, search.scorer, path)
        self._say_if_fewer(path)
        if self.n_resamples:
            select = partial(self._pursue_on, prepared)
            selections = selections_on_halves(problem, self.n_resamples, seed, select, rule, path)
            if selections:
                self.stability_ = Stability(selections, problem.groups.n_groups, problem.n_candidates(fixed))
        context.call_on_fit_task_end(estimator=self)

    def _pursue_on(self, prepared: Prepared, rule: StopRule, problem: Problem) -> Path:
        """Select on some of the rows."""
        part = prepared._replace(problem=problem)
        return pursue(
            part.search(self),
            rule,
            fixed=part.fixed,
            n_fixed=len(self.fixed_),
            floating=self.floating,
            chance=part.chance(self, rule),
        )

    def _defining_parameters(self) -> dict[str, Any]:
        """Parameters that have a say in the result, but for those that the data, folds and groups stand for."""
        return {name: value for name, value in self.get_params(deep=False).items() if name not in NOT_DEFINING}

    def _finish(self, problem: Problem, scorer: Scorer, path: Path) -> None:
        """Set the fitted attributes, the predictor among them."""
        self._store(problem, scorer, path)
        if len(path.columns):
            self.predictor_ = scorer.at(max(1, len(path.kept))).fit(path.columns)
        else:
            warnings.warn(f"Nothing was selected ({path.reason}): the prediction is constant.", stacklevel=6)
            self.predictor_ = Constant.of(problem)

    def _say_if_fewer(self, path: Path) -> None:
        """Warn where there are fewer features than asked for, since groups share columns."""
        wanted, found = self.n_features_to_select, len(path.kept) + len(self.fixed_)
        if isinstance(wanted, Integral) and path.reason == NO_CANDIDATE_LEFT and found < wanted:
            message = f"Only {found} of {wanted} features were selected: the others share all their columns with them."
            warnings.warn(message, stacklevel=6)

    def _attributes_after(self, problem: Problem, scorer: Scorer, steps: Sequence[Step]) -> dict[str, Any]:
        """Fitted attributes, as if the pursuit had ended with some steps."""
        ended = copy(self)
        ended._finish(problem, scorer, finished(steps, "the pursuit goes on", partial=True))
        return {name: value for name, value in vars(ended).items() if name.endswith("_") and name[0] != "_"}
