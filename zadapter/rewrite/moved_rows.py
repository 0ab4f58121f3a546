"""Rows that left the files of a rewrite, and where the rewrite has moved them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, DataType, MapType, NullType, StructType, UserDefinedType
from pyspark.sql.window import Window

from zadapter.backend.contract import RebasingBackend
from zadapter.backend.row_files import row_files
from zadapter.backend.row_places import FILE, POSITION, ROW_ID
from zadapter.base.names import quote
from zadapter.errors import VerificationError
from zadapter.rewrite.rebase import Conflict, Followed, Remaining
from zadapter.spark.checksum import RowTotals, add_totals, compute_totals, hash_rows, sum_hashes
from zadapter.spark.compat.spark_api import has_collation, is_variant, repartition_by_id
from zadapter.spark.footer_reader import metadata
from zadapter.table import file_stats
from zadapter.table.file_stats import row_counts
from zadapter.table.identifying_columns import find_identifying_columns
from zadapter.table.snapshot import Snapshot, Staged, select_paths, without

T = TypeVar("T")

_PREFIX = "_zadapter_"
"""Begins the names of all columns that are added to the table's."""
_HASH, _SECOND, _VALUES = f"{_PREFIX}hash", f"{_PREFIX}second", f"{_PREFIX}values"
_COUNT, _WANTED, _NUMBER = f"{_PREFIX}count", f"{_PREFIX}wanted", f"{_PREFIX}number"
_WORD, _BITS = f"{_PREFIX}word", f"{_PREFIX}bits"
_MOST_BROADCAST = 2_000_000
"""Hashes, or words of 64 places, that each executor holds: some 100 MB; more are shuffled."""


@dataclass(frozen=True, kw_only=True)
class RowFollower:
    """Follows rows from the files that a job replaces to those that it has written.

    Spark reads a few columns of each changed file, and of the new files.

    Where the commit cannot mark deleted rows, the new files that hold them are written again.
    """

    backend: RebasingBackend
    planned: Snapshot
    staged: Staged
    spark: SparkSession
    checksum: bool
    """Whether values of files that are written again are compared."""
    write_again: Callable[[DataFrame], Staged]
    """Writes each partition of rows as one file, and verifies it."""

    @contextmanager
    def __call__(self, conflicts: Sequence[Conflict], head: Snapshot) -> Iterator[Followed]:
        """Return the rows that left up to *head*, and the same rows in the new files.

        First, rows are compared by a few columns. If equal values of these are not as many in the
        new files as among the rows that left, rows are compared by all columns.
        """
        with ExitStack() as kept:
            now, followed = None, None
            files = pa.concat_tables(_select_changed(each) for each in conflicts)
            if files.num_rows:
                places = _as_words(self.backend.read_places(head, files))
                now = kept.enter_context(_persist(places))
            few = self._find_few_columns()
            if few:
                followed = kept.enter_context(self._compare(conflicts, now, few))
            if followed is None or followed.left != followed.found:
                every = self._all_columns
                followed = kept.enter_context(self._compare(conflicts, now, every))
            yield followed

    @contextmanager
    def _compare(
        self, conflicts: Sequence[Conflict], now: DataFrame | None, columns: Sequence[str]
    ) -> Iterator[Followed]:
        """Return the rows that left, and the same rows in the new files, by some columns."""
        with _persist(self._hash(self._find_left(conflicts, now), columns)) as left:
            of_left = sum_hashes(left, FILE, _HASH)
            few = sum(each.rows for each in of_left.values()) <= _MOST_BROADCAST
            equal = _find_equal(left, self._new_rows(conflicts, columns), few=few)
            if columns == self._all_columns:
                equal = _take_as_many(left, equal)
            with _persist(equal) as found:
                of_found = sum_hashes(found, FILE, _HASH)
                yield Followed(
                    left=self._total(of_left, [each.exchange.removed for each in conflicts]),
                    returned=self._count_returned(conflicts, now, of_left),
                    found=self._total(of_found, [each.exchange.added for each in conflicts]),
                    leave_out=partial(self._leave_out, conflicts, found, [*of_found]),
                )

    @property
    def _all_columns(self) -> tuple[str, ...]:
        return tuple(self.planned.schema.names)

    def _find_few_columns(self) -> tuple[str, ...]:
        """Return a few columns that may tell the rows apart, or none."""
        if not self.staged.files.num_rows:
            return ()
        largest = max(self.staged.files.select(["size", "path"]).to_pylist(), key=_size_of)
        _, footer = metadata(self.spark, self.staged.paths[largest["path"]])
        rows = file_stats.total(self.staged.files, "rows")
        planned = self.planned
        return find_identifying_columns(footer, planned.schema, planned.physical, rows)

    def _new_rows(self, conflicts: Sequence[Conflict], columns: Sequence[str]) -> DataFrame:
        """Return the hashed rows of the new files of conflicts."""
        files = pa.concat_tables(each.exchange.added for each in conflicts)
        new = replace(self.staged, files=files)
        return self._hash(self.backend.read_staged_places(self.planned, new), columns)

    def _find_left(self, conflicts: Sequence[Conflict], now: DataFrame | None) -> DataFrame:
        """Return the rows that were live when planned, and are at none of the places *now*."""
        changed, gone = (
            pa.concat_tables(tables)
            for tables in zip(*((c.changed, c.gone) for c in conflicts), strict=True)
        )
        parts = []
        if now is not None:
            before = self.backend.read_places(self.planned, changed)
            parts.append(_without_places(before, now, int(row_counts(changed).sum())))
        if gone.num_rows:
            parts.append(self.backend.read_places(self.planned, gone))
        return reduce(DataFrame.unionByName, parts)

    def _hash(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """Return the places of rows, and a hash of *columns*.

        If these are all columns, a second hash and the values are added.
        """
        is_whole = columns == self._all_columns
        if ROW_ID in rows.columns:  # which alone distinguishes rows
            columns = [*columns, ROW_ID] if is_whole else [ROW_ID]
        first, second = hash_rows(rows, columns)
        places = rows.select(FILE, POSITION, first.alias(_HASH))
        if not is_whole:
            return places
        types = {name: rows.schema[name].dataType for name in columns}
        compared = [F.col(quote((name,))) for name in columns if _can_compare(types[name])]
        values = F.struct(F.lit(0), *compared).alias(_VALUES)
        return rows.select(FILE, POSITION, first.alias(_HASH), second.alias(_SECOND), values)

    def _count_returned(
        self,
        conflicts: Sequence[Conflict],
        now: DataFrame | None,
        left: Mapping[str, RowTotals],
    ) -> list[int]:
        """Return how many rows of the changed files are live that were not when planned."""
        if now is None:
            return [0 for _ in conflicts]
        changed = [each.changed for each in conflicts]
        live = [_select_changed(each) for each in conflicts]
        before = self._count(changed, lambda files: _count_rows(self._read_planned(files)))
        after = self._count(live, lambda _: _count_bits(now))
        gone = self._total(left, changed)
        return [a + g.rows - b for a, g, b in zip(after, gone, before, strict=True)]

    def _read_planned(self, files: pa.Table) -> DataFrame:
        return self.backend.read_places(self.planned, files)

    def _group(self, by_name: Mapping[str, T], groups: Sequence[pa.Table]) -> list[list[T]]:
        """Return the values of each group of files, from those by the name of the file."""
        paths = [_paths(files) for files in groups]
        known = row_files(self.backend, self.planned, [path for group in paths for path in group])
        group_of = [number for number, group in enumerate(paths) for _ in group]
        parts: list[list[T]] = [[] for _ in groups]
        for name, value in by_name.items():
            number = known.number(name)
            if number is not None:
                parts[group_of[number]].append(value)
        return parts

    def _total(
        self, by_name: Mapping[str, RowTotals], groups: Sequence[pa.Table]
    ) -> list[RowTotals]:
        return [add_totals(part, 0) for part in self._group(by_name, groups)]

    def _count(
        self, groups: Sequence[pa.Table], count: Callable[[pa.Table], DataFrame]
    ) -> list[int]:
        """Return the live rows of groups of files; they are counted where the log does not know."""
        known = [file_stats.live_rows(files) for files in groups]
        if None not in known:
            return [rows or 0 for rows in known]
        counted = count(pa.concat_tables(groups)).collect()
        by_name = {str(name): int(rows) for name, rows in counted}
        return [sum(part) for part in self._group(by_name, groups)]

    def _leave_out(
        self,
        conflicts: Sequence[Conflict],
        found: DataFrame,
        names: Sequence[str],
        chosen: Sequence[int],
    ) -> Remaining:
        """Mark the rows that were found, or write their files again without them."""
        added = [conflicts[number].exchange.added for number in chosen]
        every, live = pa.concat_tables(added), [conflicts[number].live for number in chosen]
        known = row_files(self.backend, self.planned, _paths(every))
        paths = every["path"]
        held = {each: paths[n].as_py() for each in names if (n := known.number(each)) is not None}
        touched = {*held.values()}
        staged: tuple[Staged, ...] = (self.staged,)
        if held:
            places = found.where(F.col(FILE).isin([*held])).select(FILE, POSITION)
            if self.backend.marks_deletes(self.planned, pa.concat_tables(live), every):
                staged = (self.backend.mark_deletes(self.planned, self.staged, places),)
                added = [_with_rows(select_paths(staged[0].files, set(_paths(a)))) for a in added]
            else:
                again = [self._write_again(a, touched, places) for a in added]
                staged = (self.staged, *(each for part in again for each in part))
                added = [
                    pa.concat_tables([without(a, touched), *(each.files for each in part)])
                    for a, part in zip(added, again, strict=True)
                ]
        return Remaining(staged=staged, added=added, changed=len(held))

    def _write_again(
        self, added: pa.Table, paths: AbstractSet[str], places: DataFrame
    ) -> tuple[Staged, ...]:
        """Write those of some files that have *paths* without the rows at *places*.

        Raises:
            VerificationError: A written file is damaged, or rows are missing.
        """
        files = select_paths(added, set(paths))
        if not files.num_rows:
            return ()
        rows = self.backend.read_staged_places(self.planned, replace(self.staged, files=files))
        kept = _without_places(rows, _as_words(places), int(row_counts(files).sum()))
        number = F.dense_rank().over(Window.orderBy(FILE)) - 1
        numbers = rows.select(FILE).distinct().select(FILE, number.alias(_NUMBER))
        numbered = kept.join(F.broadcast(numbers), FILE)
        in_files = repartition_by_id(numbered, files.num_rows, F.col(_NUMBER))
        own = [F.col(quote((name,))) for name in rows.columns if not is_reserved(name)]
        again = self.write_again(in_files.sortWithinPartitions(POSITION).select(*own))
        if self.checksum:
            self._compare_values(kept, again)
        return (again,)

    def _compare_values(self, kept: DataFrame, again: Staged) -> None:
        columns = [F.col(quote((name,))) for name in self.planned.schema.names]
        written = self.backend.read_staged(self.planned, again)
        before, after = (compute_totals(rows.select(*columns)) for rows in (kept, written))
        if before != after:
            raise VerificationError(
                f"{self.planned.table}: of {before.rows:,} rows that were written again, "
                f"{after.rows:,} are in the new files, or values differ; nothing was committed. "
                "Retry without Spark plug-ins; if it fails again, please report it"
            )


@contextmanager
def _persist(rows: DataFrame) -> Iterator[DataFrame]:
    kept = rows.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _size_of(file: Mapping[str, Any]) -> int:
    size: int = file["size"]
    return size


def is_reserved(name: str) -> bool:
    """Return whether a column has a name like those that are added."""
    return name.lower().startswith(_PREFIX)


def _paths(files: pa.Table) -> list[str]:
    paths: list[str] = files["path"].to_pylist()
    return paths


def _with_rows(files: pa.Table) -> pa.Table:
    return files.filter(pc.greater(files["rows"], 0))


def _select_changed(conflict: Conflict) -> pa.Table:
    """Return the changed files of a conflict as they are in the head."""
    return select_paths(conflict.live, set(_paths(conflict.changed)))


def _as_words(rows: DataFrame) -> DataFrame:
    """Return the places of rows: a word of 64 bits for 64 rows of a file."""
    word = F.expr(f"{POSITION} div 64").alias(_WORD)
    bits = F.expr(f"bit_or(shiftleft(1L, int({POSITION} % 64)))").alias(_BITS)
    return rows.groupBy(FILE, word).agg(bits)


def _without_places(rows: DataFrame, words: DataFrame, count: int) -> DataFrame:
    """Return the rows at none of the places of *words*, which are of about *count* rows."""
    own = [F.col(quote((name,))) for name in rows.columns]
    numbered = rows.select(*own, F.expr(f"{POSITION} div 64").alias(_WORD))
    few = count <= 64 * _MOST_BROADCAST
    joined = numbered.join(F.broadcast(words) if few else words, [FILE, _WORD], "left")
    is_there = F.expr(f"coalesce(bit_get({_BITS}, int({POSITION} % 64)) = 1, false)")
    return joined.where(~is_there).select(*own)


def _count_rows(rows: DataFrame) -> DataFrame:
    return rows.groupBy(FILE).agg(F.count(F.lit(1)))


def _count_bits(words: DataFrame) -> DataFrame:
    return words.groupBy(FILE).agg(F.sum(F.bit_count(_BITS)))


def _find_equal(left: DataFrame, new: DataFrame, *, few: bool) -> DataFrame:
    """Return the rows of *new* whose hash some row of *left* has."""
    hashes = left.select(_HASH).distinct()
    return new.join(F.broadcast(hashes) if few else hashes, _HASH, "left_semi")


def _take_as_many(left: DataFrame, equal: DataFrame) -> DataFrame:
    """Return as many rows of *equal* as there are in *left*, by hashes and values."""
    hashes = [_HASH, _SECOND]
    wanted = left.groupBy(hashes).agg(
        F.count(F.lit(1)).alias(_COUNT), F.first(_VALUES).alias(_WANTED)
    )
    same = equal.join(wanted, hashes).where(F.col(_VALUES).eqNullSafe(F.col(_WANTED)))
    order = Window.partitionBy(hashes).orderBy(FILE, POSITION)
    numbered = same.withColumn(_NUMBER, F.row_number().over(order))
    return numbered.where(F.col(_NUMBER) <= F.col(_COUNT)).select(FILE, POSITION, _HASH)


def _can_compare(type_: DataType) -> bool:
    """Return whether Spark compares values of a type one by one, as its hash does."""
    if isinstance(type_, StructType):
        return all(_can_compare(field.dataType) for field in type_)
    if isinstance(type_, ArrayType):
        return _can_compare(type_.elementType)
    special = isinstance(type_, MapType | NullType | UserDefinedType)
    return not special and not has_collation(type_) and not is_variant(type_)
