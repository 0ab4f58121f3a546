"""One trial: a table by one writer, and the matches of conditions before and after an optimize."""

import random
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from urllib.parse import unquote

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

import zadapter
from integration.fuzz.pruning.conditions import some
from integration.fuzz.pruning.rows import FILES, parts, table
from integration.kit.lakes import settings
from zadapter.base.locations import bare
from zadapter.base.names import leaves
from zadapter.errors import UsageError
from zadapter.predicates.pruning import matching
from zadapter.spark.checksum import sum_by_file
from zadapter.spark.where import condition as parsed
from zadapter_delta import DeltaBackend
from zadapter_iceberg import IcebergBackend
from zadapter_parquet import ParquetBackend

WRITERS = {
    "delta": ("spark", "deltalake"),
    "iceberg": ("spark", "pyiceberg"),
    "parquet": ("spark", "pyarrow"),
}
SESSION = {"parquet.filter.dictionary.enabled": "false"}
"""Spark's Parquet reader misses zeros of the other sign in dictionaries, as the limits say."""
_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Compiling a condition takes longer than evaluating it on a few hundred rows."""
_TOGETHER = 25
"""Conditions per job; each is counted by its own scan."""
_PUBLIC = 20
"""One in this many conditions is run through ``zadapter.files`` and ``zadapter.read``."""
BACKENDS = {"delta": DeltaBackend, "iceberg": IcebergBackend, "parquet": ParquetBackend}
_KEYS = ["int", "big", "double", "float", "decimal_38_10", "day", "timestamp", "ntz", "text",
         "long", "row", "nested.double", "nested.`odd.name`.text"]  # fmt: skip


@dataclass
class Found:
    """Results of a trial.

    Attributes:
        asked: Number of evaluations per kind of read.
        left_out: Number of skipped evaluations by reason.
        wrong: Wrong results, one line each.
        pruned: Share of pruned files per condition, by kind of read.
    """

    asked: Counter = field(default_factory=Counter)
    left_out: Counter = field(default_factory=Counter)
    wrong: list = field(default_factory=list)
    pruned: dict = field(default_factory=dict)


class Trial:
    """Table of one format by one writer."""

    def __init__(self, lakes, format_, writer, seed, *, rows=600, conditions=100):
        self.lakes, self.spark, self.format, self.writer = lakes, lakes.spark, format_, writer
        self.seed = seed
        self.arrow = table(seed, rows)
        if format_ == "iceberg":  # Iceberg has no smaller integers
            schema = [
                f.with_type(pa.int32()) if f.name in {"tiny", "small"} else f
                for f in self.arrow.schema
            ]
            self.arrow = self.arrow.cast(pa.schema(schema))
        self.conditions = some(seed, self.arrow, conditions)
        self.found = Found()

    def run(self):
        """Evaluate all conditions before and after an ``optimize``."""
        self.table = self._written()
        with settings(self.spark, _INTERPRETED):
            self._ask("before")
        dice = random.Random(self.seed)
        zadapter.optimize(
            self.table,
            by=dice.sample(_KEYS, dice.choice([1, 2, 3])),
            backend=self.format,
            target_file_size="20KB",
            row_groups=4,
            verify="checksum",
            spark=self.spark,
        )
        with settings(self.spark, _INTERPRETED):
            self._ask("after")
        return self.found

    def _written(self):
        name = self.lakes.name(self.format)
        if self.writer == "spark":
            return self._by_spark(name)
        if self.writer == "pyarrow":
            Path(name).mkdir()
            for number, part in enumerate(parts(self.arrow)):
                pq.write_table(part, f"{name}/{number}.parquet", row_group_size=40)
        if self.writer == "deltalake":
            for part in parts(self.arrow):
                deltalake.write_deltalake(name, part, mode="append")
        if self.writer == "pyiceberg":
            made = self.lakes.catalog.create_table(
                name.removeprefix("ice."), schema=self.arrow.schema
            )
            for part in parts(self.arrow):
                made.append(part)
        return name

    def _by_spark(self, name):
        schema = from_arrow_schema(self.arrow.schema, prefer_timestamp_ntz=True)
        rows = self.spark.createDataFrame(self.arrow, schema)
        rows = rows.repartitionByRange(FILES, "row")
        kind = "INT96" if self.format == "parquet" and self.seed % 2 else "TIMESTAMP_MICROS"
        with settings(self.spark, {"spark.sql.parquet.outputTimestampType": kind}):
            if self.format == "iceberg":
                rows.writeTo(name).using("iceberg").create()
            else:
                rows.write.format(self.format).save(name)
        return name

    def _load(self):
        """Read the table without zadapter, if its format has a reader."""
        if self.format == "parquet":
            return zadapter.read(self.table, backend="parquet", spark=self.spark)
        return self.lakes.load(self.format, self.table)

    def _ask(self, when):
        rows = self._load()
        conditions = [each for each in self.conditions if self._analysed(rows, each, when)]
        matches = self._scanned(rows, conditions)
        totals = [sum(of_file.values()) for of_file in matches]
        self._count("table", when, zip(conditions, totals, [rows] * len(totals), strict=True))
        with closing(BACKENDS[self.format](self.spark)) as backend:
            snapshot = backend.snapshot(self.table)
            every = [parts_ for parts_, _ in leaves(snapshot.schema)]
            live = backend.files(snapshot, every)
            uris = backend.uris(snapshot, live["path"].to_pylist())
            read = []
            for number, asked in enumerate(zip(conditions, totals, matches, strict=True)):
                condition, total, of_file = asked
                kept = self._kept(condition, rows, snapshot, live)
                if kept is None:
                    self.found.left_out[f"{when}, read: refused by zadapter"] += 1
                    continue
                names = {_name(uri) for uri, keep in zip(uris, kept, strict=True) if keep}
                self._check_files(when, condition, of_file, names, len(uris))
                frame = backend.read(snapshot, live.filter(pa.array(kept)))
                if number % _PUBLIC == 0:  # the public function, which does the same
                    frame = self._public(when, condition, of_file)
                read.append((condition, total, frame))
            self._count("read", when, read)

    def _kept(self, condition, rows, snapshot, live):
        try:
            read = parsed(condition.sql, rows, snapshot.schema, later=False)
            return matching(read.predicate, live)
        except UsageError:
            return None

    def _public(self, when, condition, of_file):
        asked = {"where": condition.sql, "backend": self.format, "spark": self.spark}
        named = zadapter.files(self.table, **asked)["path"].to_pylist()
        self._check_files(when, condition, of_file, set(map(_name, named)), None)
        return zadapter.read(self.table, **asked)

    def _analysed(self, rows, condition, when):
        try:
            rows.where(condition.sql)
        except PySparkException:
            self.found.left_out[f"{when}: refused by Spark"] += 1
            return False
        return True

    def _scanned(self, rows, conditions):
        """Return the matches per file of each condition, by a scan without pruning."""
        matches = []
        for some_of_them in _cut(conditions):
            found = sum_by_file(rows, [F.expr(each.sql) for each in some_of_them])
            for number in range(len(some_of_them)):
                of_file = {_name(file): totals.matches[number] for file, totals in found.items()}
                matches.append({file: n for file, n in of_file.items() if n})
        return matches

    def _count(self, way, when, asked):
        excuse = {"table": self._excuse_of_spark, "read": self._excuse_of_read}[way]
        kept = []
        for condition, total, frame in asked:
            if why := excuse(condition, when):
                self.found.left_out[f"{when}, {way}: {why}"] += 1
            else:
                kept.append((condition, total, frame.where(condition.sql)))
        for some_of_them in _cut(kept):
            counted = _counts([frame for _, _, frame in some_of_them])
            for number, (condition, total, _) in enumerate(some_of_them):
                self.found.asked[f"{when}, {way}"] += 1
                if counted.get(number, 0) != total:
                    self._note(when, way, condition, f"{counted.get(number, 0)} rows of {total}")

    def _check_files(self, when, condition, of_file, kept, live):
        self.found.asked[f"{when}, files"] += 1
        if live is not None:
            self.found.pruned.setdefault(f"{when}, files", []).append(1 - len(kept) / live)
        if lost := set(of_file) - kept:
            self._note(when, "files", condition, f"without {len(lost)} files with matches")

    def _note(self, when, way, condition, what):
        where = f"{when}, {way}, {self.format} by {self.writer}, seed {self.seed}"
        self.found.wrong.append(f"{where}: {condition.sql[:300]!r} found {what}")

    def _excuse_of_spark(self, condition, when):
        """Return the known limit of the format's own reader that affects a condition, if any."""
        nan = condition.columns & self._columns_with_nan()
        if nan and self.format == "iceberg":
            return "Iceberg has NaN in no range"
        if nan and when == "before" and self.writer != "spark":
            return "Spark trusts maxima that leave NaN out"
        return self._excuse_of_read(condition, when)

    def _excuse_of_read(self, condition, when):
        zeros = condition.zeros and self.format == "iceberg"
        return "Iceberg looks for zeros by their bits" if zeros else None

    def _columns_with_nan(self):
        return {
            parts_
            for parts_, type_ in leaves(self.arrow.schema)
            if pa.types.is_floating(type_) and pc.any(pc.is_nan(_leaf(self.arrow, parts_))).as_py()
        }


def _leaf(rows, parts_):
    found = rows[parts_[0]]
    for part in parts_[1:]:
        found = pa.chunked_array([chunk.field(part) for chunk in found.chunks])
    return found


def _name(file):
    """Normalize a file name, as readers differ."""
    return bare(unquote(file))


def _cut(items):
    """Split a list into batches of one job each."""
    return [items[at : at + _TOGETHER] for at in range(0, len(items), _TOGETHER)]


def _counts(frames):
    """Count the rows of each frame, all in one job."""
    numbered = [frame.select(F.lit(number).alias("n")) for number, frame in enumerate(frames)]
    found = reduce(lambda one, other: one.unionAll(other), numbered).groupBy("n").count()
    return {row.n: row["count"] for row in found.collect()}
