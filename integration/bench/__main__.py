"""``python -m integration.bench``: zadapter and its peers on the same tables, in turn."""

import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.markdown import Markdown
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from integration.bench import metadata, report, scaling
from integration.bench.formats import FORMATS
from integration.bench.race import Track, race
from integration.bench.results import EXPLAINED, goals, races
from integration.bench.session import session
from integration.bench.workloads import WORKLOADS

QUICK = "lineitem,zipf"
QUICK_SCALE = 0.02
console = Console(width=150)


def main(
    *,
    full: Annotated[bool, typer.Option("--full", help="All, at scale 1, three rounds.")] = False,
    scale: Annotated[float | None, typer.Option(help="1: tables of 6 million rows.")] = None,
    formats: Annotated[str, typer.Option(help="By comma.")] = ",".join(FORMATS),
    workloads: Annotated[str | None, typer.Option(help=f"Of {', '.join(WORKLOADS)}.")] = None,
    repeat: Annotated[int | None, typer.Option(help="Rounds; who begins rotates.")] = None,
    files: Annotated[int, typer.Option(help="To write, where a workload does not say.")] = 12,
    only: Annotated[str, typer.Option(help="Contenders, by comma; all if not said.")] = "",
    grow: Annotated[bool, typer.Option(help="Time ten times and a tenth of the rows.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Keep the tables here.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write JSON, Markdown and plots here.")] = None,
) -> None:
    """Rewrite tables by zadapter and by its peers, and look at what filters then have to read.

    Without options this takes a few minutes on two cores; --full takes hours.
    """
    named = _chosen(workloads or (",".join(WORKLOADS) if full else QUICK), WORKLOADS)
    chosen = _chosen(formats, FORMATS)
    place = folder or Path(tempfile.mkdtemp(prefix="zadapter-bench-"))
    place.mkdir(parents=True, exist_ok=True)
    alone = {**metadata.planning(), **metadata.log()} if full else {}
    track = Track(
        spark=session(place),
        folder=place,
        scale=scale or (1.0 if full else QUICK_SCALE),
        files=files,
        repeat=repeat or (3 if full else 1),
        asked=10 if full else 3,
        only=tuple(filter(None, only.split(","))),
    )
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as bar:  # fmt: skip
        task = bar.add_task("", total=len(named) * len(chosen))
        step = partial(_describe, bar, task)
        results = []
        for workload, format_ in product(named, chosen):
            results += race(track, WORKLOADS[workload], format_, step)
            bar.advance(task)
        points = scaling.scaling(track, chosen[0], step) if grow else []
    found = races(results)
    reached = [*goals(found), *scaling.goals(points)]
    console.print(Markdown(report.results_table(found)), EXPLAINED)
    console.print(Markdown(report.goals_table(reached)))
    for name, value in alone.items():
        console.print(f"{name}: {value}")
    if save:
        report.save(save, report.about(sys.argv[1:]), found, reached, points, alone)
    SparkSession.active().stop()


def _describe(bar: Progress, task: TaskID, what: str) -> None:
    bar.update(task, description=what)


def _chosen(text: str, known: Sequence[str]) -> list[str]:
    asked = text.split(",")
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)}: not of {', '.join(known)}")
    return asked


if __name__ == "__main__":
    typer.run(main)
