"""``zadapter demo``: a table like TPC-H's lineitem, clustered, and queries before and after."""

import logging
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import zadapter
from zadapter.backend import plugins
from zadapter.base.distribution import install_command
from zadapter.base.quantities import show
from zadapter.base.translate_errors import translate_errors
from zadapter.cli.calls import FunctionCall
from zadapter.cli.results import Result, as_json, listing
from zadapter.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from zadapter import Analysis, Report
    from zadapter.inspection.reads import Query

KEYS = ("l_shipdate", "l_partkey")
FILES = 32
"""Files before and after, so that only the place of the rows differs."""
_RUNS = 3
"""Runs of a query; the fastest counts, since the first one compiles code."""
_SHIPPED = "pmod(xxhash64(id div 4, 7), 2406) + pmod(xxhash64(id, 8), 121)"
_MODES = "array('AIR', 'FOB', 'MAIL', 'RAIL', 'SHIP', 'TRUCK')"
_COLUMNS = (
    "id div 4 + 1 AS l_orderkey",
    "pmod(xxhash64(id, 1), {parts}) + 1 AS l_partkey",
    "pmod(xxhash64(id, 2), {suppliers}) + 1 AS l_suppkey",
    "int(id % 4) + 1 AS l_linenumber",
    "cast(pmod(xxhash64(id, 3), 50) + 1 AS decimal(15, 2)) AS l_quantity",
    "cast(pmod(xxhash64(id, 4), 10000000) / 100 AS decimal(15, 2)) AS l_extendedprice",
    "cast(pmod(xxhash64(id, 5), 11) / 100 AS decimal(15, 2)) AS l_discount",
    "element_at(array('A', 'N', 'R'), int(pmod(xxhash64(id, 6), 3)) + 1) AS l_returnflag",
    f"date_add(DATE '1992-01-02', int({_SHIPPED})) AS l_shipdate",
    f"element_at({_MODES}, int(pmod(xxhash64(id, 9), 6)) + 1) AS l_shipmode",
    "md5(string(id)) AS l_comment",
)
"""Columns as TPC-H's specification describes them (section 4.2.3), without the rarely used ones."""

_MEASURES = ("files", "row groups", "bytes of the files", "seconds")

_logger = logging.getLogger(__name__)

_Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="delta, iceberg or parquet.",
        autocompletion=plugins.names,
    ),
]
_Rows = Annotated[int, typer.Option(min=10_000, metavar="COUNT", help="Rows of the table.")]
_Folder = Annotated[
    Path, typer.Option(metavar="FOLDER", help="Where the table and the picture are kept.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """What one query reads of the table, and the seconds that Spark takes for it."""

    files: int
    """Number of files that the bounds in the log leave to read."""
    of_files: int
    row_groups: int
    """Number of row groups that the bounds in the footers leave to read."""
    of_row_groups: int
    bytes: int
    """Size of the files."""
    seconds: float

    def texts(self) -> tuple[str, ...]:
        """Return the values of ``_MEASURES`` as text."""
        return (
            f"{self.files:,} of {self.of_files:,}",
            f"{self.row_groups:,} of {self.of_row_groups:,}",
            show(self.bytes),
            f"{self.seconds:.2f}",
        )


def demo(
    *,
    format_: _Format = "delta",
    rows: _Rows = 1_000_000,
    folder: _Folder = Path("zadapter-demo"),
) -> FunctionCall:
    """Make a table like TPC-H's lineitem, cluster it, and compare three queries."""
    plugins.check(format_)
    _check(folder)
    place = next(each for each in _places(folder, format_) if not each.exists())

    def run(spark: "SparkSession") -> Result:
        with translate_errors(str(place)):
            return _demonstrate(spark, format_, rows, place)

    return FunctionCall(function="optimize", tables=(), backend=format_, run=run)


def _check(folder: Path) -> None:
    """Refuse a folder that cannot be made or written, before Spark starts.

    Raises:
        UsageError: It cannot.
    """
    nearest = next(each for each in [folder, *folder.absolute().parents] if each.exists())
    if not nearest.is_dir():
        raise UsageError(f"--folder: {nearest} is a file; pass a folder")
    if not os.access(nearest, os.W_OK):
        raise UsageError(f"--folder: {nearest.absolute()} cannot be written; pass another folder")


def _places(folder: Path, format_: str) -> Iterator[Path]:
    """Yield folders for the demo's files: none of an earlier demo is overwritten."""
    for number in count(1):
        yield folder / f"{format_}-{number}"


def _demonstrate(spark: "SparkSession", format_: str, rows: int, place: Path) -> Result:
    place.mkdir(parents=True)
    table = str(place / "lineitem")
    if format_ == "iceberg":
        table = f"iceberg.demo.lineitem_{time.time_ns() // 1_000_000}"
    _logger.warning("writing %s rows in order of arrival to %s", f"{rows:,}", table)
    _write(spark, format_, rows, table)
    conditions = _conditions(rows)
    before = _runs(spark, format_, table, conditions.values())
    size = sum(zadapter.files(table, backend=format_, spark=spark)["size"].to_pylist())
    report = zadapter.optimize(
        table, by=list(KEYS), target_file_size=size // FILES, backend=format_, spark=spark
    )
    after = _runs(spark, format_, table, conditions.values())
    return _compare_runs(table, conditions, (before, after), report, _save_picture(report, place))


def _write(spark: "SparkSession", format_: str, rows: int, table: str) -> None:
    """Write the table as as many files as orders arrived in, in the order of their keys."""
    names = {"parts": max(1, rows // 30), "suppliers": max(1, rows // 600)}
    made = spark.range(0, rows, 1, FILES).selectExpr(*(each.format(**names) for each in _COLUMNS))
    if format_ == "iceberg":
        spark.sql("CREATE NAMESPACE IF NOT EXISTS iceberg.demo")
        made.writeTo(table).using("iceberg").create()
    else:
        made.write.format(format_).save(table)


def _conditions(rows: int) -> dict[str, str]:
    """Return the filters of the queries, by a name."""
    part = max(1, rows // 60)
    week = "l_shipdate BETWEEN DATE '1995-03-06' AND DATE '1995-03-12'"
    parts = f"l_partkey BETWEEN {part} AND {part + 20}"
    both = f"{week} AND {parts}"
    return {"one week of l_shipdate": week, "21 values of l_partkey": parts, "both": both}


def _runs(
    spark: "SparkSession", format_: str, table: str, conditions: Collection[str]
) -> list[_Run]:
    """Return what each query reads and takes."""
    found: Analysis = zadapter.analyze(
        table,
        by=list(KEYS),
        queries=list(conditions),
        row_groups=True,
        sample_files=2 * FILES,
        backend=format_,
        spark=spark,
    )
    return [
        _run(query, found, _seconds(partial(_rows, spark, format_, table, query.condition)))
        for query in found.queries
    ]


def _run(query: "Query", found: "Analysis", seconds: float) -> _Run:
    groups, every = query.row_groups, found.row_groups
    return _Run(
        files=query.read.files,
        of_files=found.table_files,
        row_groups=0 if groups is None else groups.kept,
        of_row_groups=0 if every is None else every.row_groups,
        bytes=query.read.bytes,
        seconds=seconds,
    )


def _rows(spark: "SparkSession", format_: str, table: str, condition: str) -> "DataFrame":
    """Return the rows of a query, as users of the format read them."""
    if format_ == "iceberg":
        spark.sql(f"REFRESH TABLE {table}")
        return spark.table(table).where(condition)
    if format_ == "parquet":
        return zadapter.read(table, where=condition, backend=format_, spark=spark)
    return spark.read.format(format_).load(table).where(condition)


def _seconds(query: Callable[[], "DataFrame"]) -> float:
    """Return the seconds of the fastest run of a query that adds up a column."""
    seconds = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        query().selectExpr("sum(l_extendedprice * (1 - l_discount))").collect()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def _save_picture(report: "Report", place: Path) -> str:
    """Save the picture of the files, and return where it is, or why there is none."""
    if find_spec("matplotlib") is None:
        return f"a picture of the files requires matplotlib; {install_command('plot')}"
    picture = place / "lineitem.png"
    report.plot(KEYS).savefig(picture)
    return f"a picture of the files before and after: {picture}"


def _compare_runs(
    table: str,
    conditions: Mapping[str, str],
    runs: tuple[list[_Run], list[_Run]],
    report: "Report",
    picture: str,
) -> Result:
    queries, lines = [], list[tuple[str, ...]]()
    for name, before, after in zip(conditions, *runs, strict=True):
        condition = conditions[name]
        queries.append({"query": condition, "before": asdict(before), "after": asdict(after)})
        names = (name, *[""] * (len(_MEASURES) - 1))
        lines += zip(names, _MEASURES, before.texts(), after.texts(), strict=True)
    return Result(
        documents=[as_json({"table": table, "queries": queries, "report": report.to_dict()})],
        table=listing(["query", "reads", "before", "after"], lines),
        note=f"{table} is clustered by {' and '.join(KEYS)}; {picture}",
    )
