"""AddFile actions of large checkpoints, read by Arrow from a local disk.

Fields are those of the protocol; a checkpoint may have more, such as parsed stats.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from zadapter_delta.jvm import Add, format_line

AT_ONCE = 1 << 16
"""Actions that are in memory at a time."""

ODD = r"^[/.]|:|//|/\."
"""Parts of paths that Delta may write otherwise (``DeltaLog.getCanonicalPathUdf``)."""

_TEXTS = pa.map_(pa.string(), pa.string())
_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _TEXTS),
        ("size", pa.int64()),
        ("stats", pa.string()),
        ("tags", _TEXTS),
        ("deletionVector", _VECTOR),
        ("clusteringProvider", pa.string()),
    ]
)

Select = Callable[[pa.StringArray], pa.BooleanArray]


class Checkpoint:
    """The files of a classic checkpoint."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths

    def read(self) -> Iterator[pa.StructArray]:
        """Yield all actions, some at a time.

        Raises:
            ValueError: The checkpoint lacks some of the actions, or their stats as JSON, or Delta
                would write a path otherwise.
        """
        for path in self._paths:
            with pq.ParquetFile(path) as file:
                yield from read_adds(file)

    def find(self, select: Select) -> Iterator[pa.StructArray]:
        """Yield the actions whose paths are selected.

        Raises:
            ValueError: As :meth:`read` raises it.
        """
        for path in self._paths:
            with pq.ParquetFile(path) as file:
                groups = [
                    number
                    for number in range(file.num_row_groups)
                    if _selects(file.read_row_group(number, ["add.path"]), select)
                ]
                for adds in read_adds(file, groups) if groups else ():
                    yield adds.filter(select(pc.struct_field(adds, "path")))


def _selects(rows: pa.Table, select: Select) -> bool:
    paths = pc.struct_field(rows["add"], "path").drop_null()
    return any(pc.any(select(chunk)).as_py() for chunk in paths.chunks)


def read_adds(
    file: pq.ParquetFile, groups: Sequence[int] | None = None
) -> Iterator[pa.StructArray]:
    """Yield the AddFile actions of a checkpoint's file, or of some of its row groups.

    Raises:
        ValueError: The file does not have all of them, as those with sidecars, lacks stats as JSON,
            or Delta would write a path otherwise.
    """
    schema = file.schema_arrow
    names = [field.name for field in schema.field("add").type]
    # values of other types than text cannot always be objects of Python
    stated = [f"add.{name}" for name in names if not name.endswith("_parsed")]
    others = [name for name in ("sidecar", "checkpointMetadata") if name in schema.names]
    for rows in file.iter_batches(AT_ONCE, row_groups=groups, columns=[*stated, *others]):
        if any(rows[name].null_count < rows.num_rows for name in others):
            raise ValueError("the checkpoint has files elsewhere")
        adds = rows["add"].drop_null()
        if "stats_parsed" in names and ("stats" not in names or adds.field("stats").null_count):
            raise ValueError("the checkpoint lacks stats as JSON")
        if pc.any(pc.match_substring_regex(pc.struct_field(adds, "path"), ODD)).as_py():
            raise ValueError("Delta may write a path otherwise")
        yield adds


def format_lines(adds: pa.StructArray) -> list[str]:
    """Return actions as lines of the log."""
    return [format_line(_without_nulls(add)) for add in adds.to_pylist()]


def _without_nulls(add: Add) -> Add:
    """Return the fields of an action that have a value; Arrow's maps are lists of pairs."""
    return {
        name: dict(value) if isinstance(value, list) else value
        for name, value in add.items()
        if value is not None
    }


def to_structs(adds: Sequence[Add]) -> pa.StructArray:
    """Return actions as :func:`read_adds` yields them, with the fields that a file table has."""
    maps = ("partitionValues", "tags")
    typed = [add | {name: list((add.get(name) or {}).items()) for name in maps} for add in adds]
    return pa.array(typed, _ADD)
