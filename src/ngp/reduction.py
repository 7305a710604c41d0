"""What all selectors of the package do with a table once they know which columns to keep."""

from __future__ import annotations

from typing import Any, cast

import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils._dataframe import is_pandas_df, is_polars_df
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import _check_feature_names, check_is_fitted

from ngp._types import BoolArray
from ngp.columns import briefly_refused_gaps

__all__ = ["TableSelector"]


class TableSelector(SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """A selector whose `support_` says which columns of an array or a data frame are kept."""

    def _get_support_mask(self) -> BoolArray:
        check_is_fitted(self, "support_")
        mask: BoolArray = self.support_
        return mask

    def transform(self, X: npt.ArrayLike) -> Any:
        """Reduce X to the selected columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            All columns, as in `fit`.

        Returns
        -------
        array or data frame of shape (n_samples, n_selected_columns)
            A data frame where `set_output` asks for one; its columns keep their types where X is of the same kind.
        """
        check_is_fitted(self, "support_")
        output, table = _get_output_config("transform", estimator=self)["dense"], cast(Any, X)
        if output == "polars" and is_polars_df(X):
            _check_feature_names(self, X, reset=False)
            return table[:, self.get_support(indices=True).tolist()]
        if output == "default" and is_pandas_df(X) and (table.dtypes == "category").any():
            table = table.astype(object)  # scikit-learn fails at booleans beside categories
        with briefly_refused_gaps():
            return super().transform(table)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.input_tags.categorical = True
        return tags
