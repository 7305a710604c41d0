"""X that need not fit in memory: memory-mapped arrays, sparse matrices, Zarr, Arrow and Parquet.

Columns are what is streamed: a source hands out a few at a time, as rows of an array, and nothing ever asks it for
all of them at once.
"""

from ngp.data.sources.base import ColumnSource, FewColumns, StackedRows, between, in_memory, read_columns, refuse_gaps
from ngp.data.sources.kinds import as_columns, refuse_sources
from ngp.data.sources.tables import open_columns

__all__ = [
    "ColumnSource",
    "FewColumns",
    "StackedRows",
    "as_columns",
    "between",
    "in_memory",
    "open_columns",
    "read_columns",
    "refuse_gaps",
    "refuse_sources",
]
