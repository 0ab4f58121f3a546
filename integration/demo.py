"""``python -m integration.demo``: what zadapter does to real TPC-H data, before and after."""

import tempfile
import time
from pathlib import Path
from typing import Annotated

import deltalake
import duckdb
import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

import zadapter
import zadapter.spark
from integration.bench.measures.shares import filters, shares
from integration.bench.tables.workloads import WORKLOADS
from zadapter.backend.plugins import load
from zadapter.base.sizes import show
from zadapter.cli.calls import QUIET, progress
from zadapter.filters.pruning import matching
from zadapter.table import file_stats

LINEITEM = WORKLOADS["lineitem"]
KEYS = list(LINEITEM.keys)
SMALL_FILES = 32
"""Files of the table as it is found."""
FILES = 16
"""Files it is to have."""
FILTERS = (
    "l_shipdate BETWEEN DATE '1995-03-01' AND DATE '1995-03-31'",
    "l_partkey = 1000",
    "l_suppkey = 42 AND l_shipdate >= DATE '1998-01-01'",
)

console = Console()


def main(
    scale: Annotated[float, typer.Option(help="TPC-H scale factor; 1 is 6 million rows.")] = 0.1,
    folder: Annotated[
        Path | None, typer.Option(help="Where the data is kept; a temporary folder if not said.")
    ] = None,
    columns: Annotated[
        int, typer.Option(min=1, max=len(KEYS), help="Key columns, of " + ", ".join(KEYS) + ".")
    ] = len(KEYS),
    plot: Annotated[
        Path | None, typer.Option(help="Write a picture of the files before and after.")
    ] = None,
) -> None:
    """Make TPC-H lineitem, write it as many small files, cluster it, and compare."""
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="zadapter-demo-") as temporary:
            _demonstrate(Path(temporary), scale, KEYS[:columns], plot)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        _demonstrate(folder, scale, KEYS[:columns], plot)


def _demonstrate(folder, scale, keys, plot):
    console.print(f"Making TPC-H lineitem, scale {scale:g}, in {folder} …")
    made = LINEITEM.data(folder, scale)
    console.print("Starting Spark …")
    spark = zadapter.spark.session(QUIET, formats=["delta"])
    try:
        with progress(Console(stderr=True)):
            table = str(folder / "lineitem")
            rows = spark.read.parquet(str(made)).repartition(SMALL_FILES)
            rows.write.format("delta").mode("overwrite").save(table)
            ranges = LINEITEM.conditions(made)
            before = _look(spark, table, ranges)
            report, seconds = _cluster(spark, table, keys, before["bytes"] // FILES)
            after = _look(spark, table, ranges)
    finally:
        spark.stop()
    console.print(_compared(before, after, report, seconds))
    if plot is not None:
        report.plot(keys[:2]).savefig(plot)
    _check(table)


def _look(spark, table, ranges):
    """Return what the table's log says of files and filters, and the footers of row groups."""
    backend = load("delta")(spark)
    snapshot = backend.snapshot(table)
    files = backend.files(snapshot, [(key,) for key in KEYS])
    rows = spark.read.format("delta").load(table)
    read = zip(FILTERS, filters(rows, FILTERS).predicates, strict=True)
    hit = {sql: matching(predicate, files) for sql, predicate in read}
    uris = deltalake.DeltaTable(table).file_uris()
    footers = shares([uri.removeprefix("file://") for uri in uris], filters(rows, ranges))
    return {
        "files": files.num_rows,
        "row groups": footers.row_groups,
        "bytes": file_stats.total(files, "size"),
        "rows": file_stats.total(files, "rows"),
        "share": footers.in_row_groups.mean(),
        **{sql: file_stats.total(files.filter(pa.array(hit[sql])), "rows") for sql in FILTERS},
    }


def _cluster(spark, table, keys, size):
    """Plan, optimize, and return the report and the seconds each of them took."""
    start = time.perf_counter()
    predicted = zadapter.plan(table, by=keys, target_file_size=size, spark=spark)
    planned = time.perf_counter()
    report = zadapter.optimize(table, by=keys, target_file_size=size, spark=spark)
    done = time.perf_counter()
    console.print(f"zadapter.plan says\n{predicted}", highlight=False)
    return report, (planned - start, done - planned)


def _compared(before, after, report, seconds):
    table = Table("lineitem", "before", "after", title=f"by {', '.join(report.plan.columns)}")
    for column in table.columns[1:]:
        column.justify = "right"
    for name in ("files", "row groups", "rows"):
        table.add_row(name, f"{before[name]:,}", f"{after[name]:,}")
    table.add_row("bytes", show(before["bytes"]), show(after["bytes"]), end_section=True)
    for sql in FILTERS:
        table.add_row(f"rows to read for {sql}", f"{before[sql]:,}", f"{after[sql]:,}")
    table.add_section()
    table.add_row("a range filter reads, predicted", "", f"{report.plan.share_after:.1%}")
    was, now = (f"{share:.1%}" for share in (report.share_before, report.share_after))
    table.add_row("a range filter reads, skipping files", was, now)
    was, now = (f"{look['share']:.1%}" for look in (before, after))
    table.add_row("a range filter reads, skipping row groups", was, now, end_section=True)
    table.add_row("seconds of plan", "", f"{seconds[0]:.1f}")
    table.add_row("seconds of optimize", "", f"{seconds[1]:.1f}")
    return table


def _check(table):
    """Let delta-rs and DuckDB compare the rows of the last version and the one before.

    Raises:
        Exit: They differ.
    """
    last = deltalake.DeltaTable(table)
    before = deltalake.DeltaTable(table, version=last.version() - 1)
    first, last = _fingerprint(before), _fingerprint(last)
    if first != last:
        console.print(f"error: (rows, checksum) was {first} and is {last}", style="bold red")
        raise typer.Exit(1)
    rows, checksum = last
    console.print(f"delta-rs and DuckDB find the same {rows:,} rows before and after, {checksum=}")


def _fingerprint(table):
    """Return the number of rows and the sum of their hashes, which no order changes."""
    files = [uri.removeprefix("file://") for uri in table.file_uris()]
    with duckdb.connect() as connection:
        sql = "SELECT count(*), sum(hash(r)::HUGEINT) FROM read_parquet(?) AS r"
        return connection.execute(sql, [files]).fetchall()[0]


if __name__ == "__main__":
    typer.run(main)
