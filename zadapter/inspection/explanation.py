"""The value that ``explain`` returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.quantities import show_count
from zadapter.base.secrets import mask_fields
from zadapter.inspection.conjuncts import ConjunctFacts
from zadapter.inspection.reads import FileTotals, GroupsRead
from zadapter.report.facts import SHOWN, Facts, Listing, describe_table
from zadapter.report.pictures.figures import clusters
from zadapter.table.column_bounds import Mask

if TYPE_CHECKING:
    from matplotlib.figure import Figure

READS_MORE = "the bounds exclude the file, the engine's plan does not"
READS_LESS = "the engine's plan excludes the file, bounds alone do not"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Files for which the engine's plan differs from what the bounds allow."""

    files: int
    what: str
    part: str
    """The part of the condition that rules the files out by their bounds; empty for none."""
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRead:
    """What Spark plans to read of the table."""

    name: str
    """Operator of Spark's plan that reads the files."""
    read: FileTotals | None
    """The files. None: the plan does not contain them."""
    differences: tuple[Difference, ...] = ()
    note: str = ""
    """Why the plan does not contain the files, or what it does not show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation(Facts):
    """Which files a condition reads, and why."""

    table: str
    format: str
    version: int | None
    """The version that was read; None: a folder that is not registered as a table."""
    where: str
    totals: FileTotals
    kept: FileTotals
    parts: tuple[ConjunctFacts, ...]
    """The parts of the condition as Spark simplifies it; all of them must hold."""
    row_groups: GroupsRead | None
    """None: no footers were read."""
    engine: EngineRead
    boxes: pa.Table = field(repr=False, compare=False)
    """The file table, with stats of the condition's columns."""
    files: pa.Table = field(repr=False, compare=False)
    """Each file: ``path``, ``size``, ``rows``, ``kept``, ``why``, the ``part`` of the condition
    that rules it out, its ``column``, ``low`` and ``high``, and whether Spark plans to read it
    (``engine``; null: unknown)."""

    def __post_init__(self) -> None:
        mask_fields(self)

    @property
    def skipped(self) -> int:
        """Number of files that the bounds exclude."""
        return self.totals.files - self.kept.files

    # IPython looks here before it takes the dataclass's repr
    _repr_pretty_ = Facts._repr_pretty_

    def facts(self) -> Mapping[str, str]:
        """Return the explanation as readable facts, by name."""
        facts = {
            "table": describe_table(self.table, self.format, self.version),
            "where": self.where,
            "contents": str(self.totals),
            "kept": str(self.kept),
            "skipped": f"{show_count(self.skipped, 'files')}",
        }
        if self.row_groups is not None:
            found = self.row_groups
            facts["row groups"] = (
                f"{found.kept:,} of {found.row_groups:,} kept, {show_count(found.rows, 'rows')}, "
                f"from the footers of {found.files:,} of {found.of:,} files"
            )
        read = self.engine.read
        facts["Spark reads"] = self.engine.note if read is None else str(read)
        if read is not None and self.engine.note:
            facts["note"] = self.engine.note
        return facts

    def listings(self) -> Sequence[Listing]:
        """Return the parts of the condition, the reasons, differences, and files."""
        return (
            Listing(
                "parts of the condition",
                ("part", "files excluded", "hindered by"),
                tuple((part.text, part.excluded, part.why) for part in self.parts),
            ),
            Listing("reasons", ("files", "kept", "why"), self._reasons()),
            Listing(
                "differences",
                ("files", "what", "part", "cause"),
                tuple((d.files, d.what, d.part, d.cause) for d in self.engine.differences),
            ),
            Listing("files", _COLUMNS, self._files(), self.files.num_rows),
        )

    def plot(self, columns: Sequence[str] | None = None) -> "Figure":
        """Draw the boxes of the files that are kept, and of those that are skipped.

        Args:
            columns: One or two columns of the condition; None: the first ones.

        Returns:
            A figure of matplotlib.

        Raises:
            UsageError: The condition has no such column, or no file has bounds of it.
            MissingBackendError: matplotlib is not installed.
        """
        first = [f.name for f in self.boxes.schema.field("stats").type][:2]
        kept = self.files["kept"]
        sets = (("kept", kept), ("skipped", pc.invert(kept)))
        return clusters([(name, self.boxes.filter(at)) for name, at in sets], columns or first)

    def _reasons(self) -> tuple[tuple[object, ...], ...]:
        counted = self.files.group_by(["kept", "why"]).aggregate([("path", "count")])
        counted = counted.sort_by([("path_count", "descending"), ("why", "ascending")])
        return tuple((row["path_count"], row["kept"], row["why"]) for row in counted.to_pylist())

    def _files(self) -> tuple[tuple[object, ...], ...]:
        rows = self.files.slice(0, SHOWN).select(list(_COLUMNS)).to_pylist()
        return tuple((_end(row["path"]), *(row[name] for name in _COLUMNS[1:])) for row in rows)


def _end(path: str) -> str:
    return path if len(path) <= _PATH else f"…{path[1 - _PATH :]}"


_PATH = 48
"""Most characters of a path in a listing."""
_COLUMNS = ("path", "rows", "kept", "why", "column", "low", "high")


def differences(files: pa.Table, by_engine: Mask, cause: str) -> tuple[Difference, ...]:
    """Return how an engine's choice of files differs from the choice by bounds.

    Args:
        files: The explained files.
        by_engine: Which of them the engine reads.
        cause: Why the engine may read less than bounds allow to exclude.
    """
    kept = files["kept"].to_numpy()
    found = []
    more = files.filter(pa.array(~kept & by_engine))
    counted = more.group_by("part").aggregate([("path", "count")])
    for row in counted.sort_by([("path_count", "descending")]).to_pylist():
        part = row["part"] or ""
        found.append(Difference(files=row["path_count"], what=READS_MORE, part=part, cause=cause))
    less = int((kept & ~by_engine).sum())
    if less:
        why = "it evaluates more of the condition, such as on partitions"
        found.append(Difference(files=less, what=READS_LESS, part="", cause=why))
    return tuple(found)


def with_engine(files: pa.Table, by_engine: Mask | None) -> pa.Table:
    """Return the explained files with a column ``engine``."""
    if by_engine is None:
        return files.append_column("engine", pa.nulls(files.num_rows, pa.bool_()))
    return files.append_column("engine", pa.array(np.asarray(by_engine, np.bool_)))
