"""``python -m integration.bench``: the peers and zadapter in turn, in one session."""

import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

import zadapter.spark
from integration.bench import folders, rewriters
from integration.bench.contenders import DeltaContenders
from integration.bench.data import KEYS, lineitem
from integration.bench.planning import planning
from integration.bench.shares import sample, shares

console = Console(width=120)
KINDS = {
    "delta": DeltaContenders,
    "iceberg": rewriters.IcebergContenders,
    "parquet": folders.FolderContenders,
}


def main(
    scale: Annotated[float, typer.Option(help="TPC-H scale factor; 1: 6 million rows.")] = 1.0,
    repeat: Annotated[int, typer.Option(help="Rounds; the order rotates.")] = 3,
    files: Annotated[int, typer.Option(help="Files to write.")] = 12,
    formats: Annotated[
        str, typer.Option(help="Of delta, iceberg and parquet, by comma.")
    ] = "delta",
    folder: Annotated[Path | None, typer.Option(help="Keep the data here.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write the figures as JSON, too.")] = None,
) -> None:
    """Time whole rewrites of lineitem by three columns, and look at the boxes they leave."""
    place = folder or Path(tempfile.mkdtemp(prefix="zadapter-bench-"))
    planned = planning()
    logged = folders.log() if "parquet" in formats else {}
    spark = zadapter.spark.session(
        {"spark.master": "local[2]", "spark.driver.memory": "4g", **rewriters.settings(place)}
    )
    source = spark.read.parquet(str(lineitem(place, scale))).repartition(files)
    found = {}
    for name in formats.split(","):
        contenders = KINDS[name](spark, source, place, files)
        sampled = sample(lineitem(place, scale), KEYS)
        seconds, boxes = _race(contenders, sampled, repeat)
        _show(name, seconds, boxes, contenders.reports)
        found[name] = {"seconds": seconds, "boxes": boxes}
    console.print(f"planning without Spark: {planned}")
    if logged:
        console.print(f"the log of a folder, without Spark: {logged}")
    if save:
        figures = {**found, "planning": planned, "log": logged}
        save.write_text(json.dumps(figures, indent=1))
    spark.stop()


def _race(contenders, sampled, repeat):
    seconds, boxes = {}, {}
    names = list(contenders.all())
    for number in range(repeat):
        for name in names[number % len(names) :] + names[: number % len(names)]:
            table = contenders.fresh(name)
            if name not in boxes:
                boxes["input"] = shares(contenders.live(table), KEYS, sampled)
            # nobody is to pay for what another one has left behind
            contenders.spark._jvm.System.gc()  # noqa: SLF001
            start = time.perf_counter()
            contenders.all()[name](table)
            seconds.setdefault(name, []).append(round(time.perf_counter() - start, 2))
            boxes[name] = shares(contenders.live(table), KEYS, sampled)
            console.print(f"round {number + 1}: {name} {seconds[name][-1]} s")
    return seconds, boxes


def _show(table_format, seconds, boxes, reports):
    copy = statistics.median(seconds["plain copy"])
    table = Table(title=f"{table_format}: lineitem by {', '.join(KEYS)}", title_justify="left")
    heads = "", "s (all)", "s (median)", "x copy", "files", "row groups", "MB"
    heads = [*heads, "by file", "by row group"]
    for head in heads:
        table.add_column(head, justify="left" if not head else "right")
    for name, found in boxes.items():
        times = seconds.get(name, [])
        middle = statistics.median(times) if times else None
        table.add_row(
            name,
            " ".join(map(str, times)),
            f"{middle:.1f}" if middle else "",
            f"{middle / copy:.2f}" if middle else "",
            str(found["files"]),
            str(found["row groups"]),
            f"{found['MB']:.0f}",
            f"{found['by file']:.3f}",
            f"{found['by row group']:.3f}",
        )
    console.print(table)
    console.print("by file, by row group: share of all rows that a range query has to read")
    for report in reports:
        phases = {name: round(value, 2) for name, value in report.seconds.items()}
        share = f"predicted {report.plan.share_after:.3f}, found {report.share_after:.3f}"
        console.print(f"zadapter's phases, s: {phases}; share of rows {share}")


if __name__ == "__main__":
    typer.run(main)
