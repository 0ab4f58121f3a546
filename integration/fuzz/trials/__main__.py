"""``python -m integration.fuzz.trials``: run trials, and print their results."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from pyiceberg.catalog.sql import SqlCatalog

import zadapter.spark
from integration.fuzz.trials import TRIALS
from integration.fuzz.trials.rounds import run
from integration.fuzz.trials.tally import Tally, table
from integration.migration.tables import Lakes


def main(
    names: Annotated[list[str] | None, typer.Argument(help=f"Of {', '.join(TRIALS)}.")] = None,
    count: Annotated[int, typer.Option(min=1, help="Rounds of each trial.")] = 1,
    seed: Annotated[int, typer.Option(help="What the rounds are drawn from.")] = 1,
    scale: Annotated[
        float, typer.Option(min=0.001, max=1, help="Of the trials of size; 1 is 50 000 files.")
    ] = 1.0,
    memory: Annotated[str, typer.Option(help="Of the driver.")] = "2g",
) -> None:
    """Run trials; the exit code is 1 if a row was lost, doubled or changed, or anything failed."""
    if unknown := set(names or ()) - set(TRIALS):
        raise typer.BadParameter(f"{', '.join(sorted(unknown))}: not of {', '.join(TRIALS)}")
    found: dict[str, Tally] = {}
    with TemporaryDirectory(prefix="zadapter-trials-") as folder:
        lakes = _lakes(Path(folder), memory)
        for name in names or TRIALS:
            found[name] = run(name, lakes, rounds=count, seed=seed, scale=scale)
        lakes.spark.stop()
    _print(found)
    raise typer.Exit(not all(each.is_clean() for each in found.values()))


def _lakes(folder: Path, memory: str) -> Lakes:
    prefix = "spark.sql.catalog.ice"
    settings = {
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": "jdbc",
        f"{prefix}.uri": f"jdbc:sqlite:{folder}/catalog.db",
        f"{prefix}.jdbc.schema-version": "V1",
        f"{prefix}.warehouse": f"file://{folder}/ice",
        "spark.master": "local[2]",
        "spark.default.parallelism": "2",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.driver.memory": memory,
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    spark = zadapter.spark.session(settings)
    catalog = SqlCatalog(
        "ice", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/ice"
    )
    return Lakes(spark, catalog, folder / "tables")


def _print(found: dict[str, Tally]) -> None:
    print(f"python -m integration.fuzz.trials {' '.join(sys.argv[1:])}")
    head, *rows = table(found)
    for row in (head, ["---"] * len(head), *rows):
        print(f"| {' | '.join(row)} |")
    for name, each in found.items():
        for row in each.measured:
            print(f"| {' | '.join((name, *row))} |")
        for what, times in each.refused.items():
            print(f"{name}: refused {times} times: {what}")
        for text in each.failures:
            print(f"{name}: FAILED {text}")


if __name__ == "__main__":
    typer.run(main)
