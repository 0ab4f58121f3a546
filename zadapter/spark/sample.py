"""Sampling of the key columns, at a fraction of the cost of the rewrite."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.base.key_types import has_zone
from zadapter.base.names import NameParts, join, quote
from zadapter.base.ranks import rank
from zadapter.spark.compat.spark_api import to_arrow, valid_text
from zadapter.spark.jvm.spark_classes import select_columns
from zadapter.table.file_stats import column, spread

SEED = 7
ROWS_A_FILE = 400
"""Sampled rows per file to be written: enough for eight row groups."""
MIN_ROWS, MAX_ROWS = 40_000, 1_000_000
"""Minimum and maximum number of rows of one sample."""
SHARED_ROWS = 500_000
"""Maximum number of rows of a sample that several jobs share, and of all that are kept."""
SHARE_OF_FILES = 4
"""One in this many files is read if all files overlap."""
LONGEST = 256
"""Maximum characters or bytes of a sampled value."""
MIN_FILES = 8
"""Up to this number of files, all files are read."""
_LONG = (T.StringType, T.BinaryType)


def sample_size(files: int) -> int:
    """Return how many rows to sample to cut a table into *files* files."""
    return int(min(MAX_ROWS, max(MIN_ROWS, ROWS_A_FILE * files)))


def files_to_read(files: pa.Table, keys: Sequence[NameParts]) -> pa.Table:
    """Choose files whose rows represent all files, by their stats.

    If every two files overlap in every key column, a few evenly spread files represent the table.
    If they do not overlap, as in a table sorted by a key, or if stats are unknown, all files are
    read.
    """
    if files.num_rows <= MIN_FILES or not all(_alike(files, parts) for parts in keys):
        return files
    return spread(files, max(MIN_FILES, -(-files.num_rows // SHARE_OF_FILES)))


def _alike(files: pa.Table, parts: NameParts) -> bool:
    stats = column(files, parts)
    if stats is None:
        return False
    low, high = pc.struct_field(stats, "min"), pc.struct_field(stats, "max")
    ranks = rank(pa.concat_arrays([low, high])).ranks
    lows, highs = ranks[: files.num_rows], ranks[files.num_rows :]
    return bool((lows > 0).all() and (highs > 0).all() and lows.max() <= highs.min())


def sample(rows: DataFrame, columns: Sequence[NameParts], fraction: float) -> pa.Table:
    """Sample rows of *columns*, each with probability *fraction*, with a fixed seed.

    Returns:
        One column for each of *columns*, named by its text; timestamps with time zone are in UTC.
    """
    names = [join(parts) for parts in columns]
    picked = select_columns(rows, [quote(parts) for parts in columns], names)
    if fraction < 1:
        picked = picked.sample(withReplacement=False, fraction=fraction, seed=SEED)
    long = [field for field in picked.schema if isinstance(field.dataType, _LONG)]
    if long:
        picked = picked.withColumns({field.name: _truncate(field) for field in long})
    return _in_utc(to_arrow(picked))


def _truncate(field: T.StructField) -> Column:
    """Truncate long values, to save memory on the driver; a cut can be any value."""
    cut = F.substring(F.col(quote((field.name,))), 1, LONGEST)
    return valid_text(cut) if isinstance(field.dataType, T.StringType) else cut


def _in_utc(table: pa.Table) -> pa.Table:
    fields = [
        field.with_type(pa.timestamp("us", "UTC")) if has_zone(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields)).combine_chunks()
