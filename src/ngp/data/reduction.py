"""What all selectors of the package do with a table once they know which columns to keep."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._dataframe import is_pandas_df, is_polars_df
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names, _check_n_features, check_is_fitted

from ngp._types import BoolArray
from ngp.data.encoding import briefly_refused_gaps
from ngp.data.sources import ColumnSource, FewColumns, as_columns, refuse_gaps

__all__ = ["TableSelector"]


class TableSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """A selector whose `support_` says which columns of an array or a data frame are kept."""

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self, "support_")
        mask: BoolArray = self.support_
        return mask

    def transform(self, X: npt.ArrayLike) -> Any:
        """Reduce X to the selected columns."""
        check_is_fitted(self, "support_")
        if issparse(X):
            return self._selected_sparse(X)
        if (few := self._few_columns(X)) is not None:
            return few.values
        output, table = _get_output_config("transform", estimator=self)["dense"], cast(Any, X)
        if output == "polars" and is_polars_df(X):
            _check_feature_names(self, X, reset=False)
            _check_n_features(self, X, reset=False)
            return table[:, self.get_support(indices=True).tolist()]
        if output == "default" and is_pandas_df(X) and (table.dtypes == "category").any():
            table = table.astype(object)  # scikit-learn fails at booleans beside categories
        with briefly_refused_gaps():
            return super().transform(table)

    def _few_columns(self, X: Any) -> FewColumns | None:
        """The selected columns of an X that need not fit in memory; no other ones are read. None for other kinds."""
        places = self.get_support(indices=True)
        if issparse(X):
            return FewColumns(self._selected_sparse(X).toarray(), places, X.shape[1])
        X = as_columns(X)
        if not isinstance(X, ColumnSource):
            return None
        _check_n_features(self, X, reset=False)
        expected = getattr(self, "feature_names_in_", None)
        if X.names is not None and expected is not None and X.names != expected.tolist():
            first = next(pair for pair in zip(X.names, expected, strict=True) if pair[0] != pair[1])
            raise ValueError(f"X has the column {first[0]!r} where fit saw {first[1]!r}: pass the same columns.")
        values = X.read(places)
        refuse_gaps(np.asarray(np.isfinite(values).all(axis=1)), places, X.names)
        return FewColumns(values.T, places, X.shape[1])

    def _selected_sparse(self, X: Any) -> Any:
        """The selected columns of a sparse matrix, by rows."""
        _check_n_features(self, X, reset=False)
        places = self.get_support(indices=True)
        chosen = (X if X.format in ("csr", "csc") else X.tocsr())[:, places].tocsr()
        finite = np.ones(len(places), dtype=bool)
        finite[chosen.indices[~np.isfinite(chosen.data)]] = False
        refuse_gaps(finite, places, None)
        return chosen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.categorical = True
        return tags
