"""``python -m integration.fuzz.pruning``: run many trials, and print a table of the results."""

import time
from collections import Counter
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from pyiceberg.catalog.sql import SqlCatalog

import zadapter.spark
from integration.fuzz.pruning.trials import SESSION, WRITERS, Trial
from integration.kit.lakes import settings
from integration.migration.tables import Lakes


def main(
    *,
    formats: Annotated[str, typer.Option(help="By comma.")] = ",".join(WRITERS),
    seeds: Annotated[int, typer.Option(min=1, help="Tables of each writer.")] = 5,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    rows: Annotated[int, typer.Option(min=1, help="Of each table.")] = 600,
    conditions: Annotated[int, typer.Option(min=1, help="Of each table.")] = 100,
) -> None:
    """Evaluate all conditions on every table of every writer, before and after an optimize."""
    start, results = time.perf_counter(), {}
    kinds = [(format_, writer) for format_ in formats.split(",") for writer in WRITERS[format_]]
    with TemporaryDirectory(prefix="zadapter-pruning-") as folder:
        lakes = _lakes(Path(folder))
        for (format_, writer), seed in product(kinds, range(first, first + seeds)):
            trial = Trial(lakes, format_, writer, seed, rows=rows, conditions=conditions)
            with settings(lakes.spark, SESSION):
                found = trial.run()
            results.setdefault((format_, writer), []).append(found)
            print(f"{time.perf_counter() - start:.0f} s: {format_} by {writer}, seed {seed}")
            print(*found.wrong, sep="\n", end="", flush=True)
        lakes.spark.stop()
    _say(results)
    if any(found.wrong for each in results.values() for found in each):
        raise typer.Exit(1)


def _say(results):
    """Print the counts of evaluated, wrong and skipped conditions."""
    print("\n| table | asked | conditions | files left out | wrong |\n|---|---|---|---|---|")
    for (format_, writer), every in results.items():
        for name in every[0].asked:
            asked = sum(found.asked[name] for found in every)
            wrong = sum(line.startswith(f"{name}, ") for found in every for line in found.wrong)
            shares = [share for found in every for share in found.pruned.get(name, [])]
            pruned = f"{sum(shares) / len(shares):.0%}" if shares else ""
            print(f"| {format_} by {writer} | {name} | {asked} | {pruned} | {wrong} |")
    for (format_, writer), every in results.items():
        for why, count in sum((found.left_out for found in every), Counter()).items():
            print(f"not asked, {format_} by {writer}, {why}: {count}")


def _lakes(folder):
    ice = f"{folder}/ice"
    Path(ice).mkdir()
    spark = zadapter.spark.session(
        {
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "jdbc",
            "spark.sql.catalog.ice.uri": f"jdbc:sqlite:{ice}/catalog.db",
            "spark.sql.catalog.ice.jdbc.schema-version": "V1",
            "spark.sql.catalog.ice.warehouse": f"file://{ice}",
            "spark.ui.showConsoleProgress": "false",
            "spark.log.level": "ERROR",
        }
    )
    catalog = SqlCatalog("ice", uri=f"sqlite:///{ice}/catalog.db", warehouse=f"file://{ice}")
    (folder / "lakes").mkdir()
    return Lakes(spark, catalog, folder / "lakes")


if __name__ == "__main__":
    typer.run(main)
