"""``python -m integration.bench``: zadapter and its peers on the same tables, in turn."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
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

from integration.bench import metadata, moving, report, scaling
from integration.bench.contenders import CONTENDERS
from integration.bench.formats import FORMATS
from integration.bench.race import Track, race
from integration.bench.results import EXPLAINED, Goal, Races, goals
from integration.bench.session import session
from integration.bench.workloads import WORKLOADS

QUICK = "lineitem,zipf"
METADATA = "metadata"
"""No table, but what planning and logs cost alone."""
MIGRATION = "migration"
"""Not how tables are rewritten, but how they become those of other formats."""
QUICK_SCALE = 0.02
console = Console(width=150)


def main(
    *,
    full: Annotated[bool, typer.Option("--full", help="All, at scale 1, three rounds.")] = False,
    scale: Annotated[
        float | None, typer.Option(min=0.001, help="1: tables of 6 million rows.")
    ] = None,
    formats: Annotated[str, typer.Option(help="By comma.")] = ",".join(FORMATS),
    workloads: Annotated[
        str | None, typer.Option(help=f"Of {', '.join([*WORKLOADS, METADATA, MIGRATION])}.")
    ] = None,
    repeat: Annotated[int | None, typer.Option(min=1, help="Rounds, in drawn orders.")] = None,
    files: Annotated[
        int, typer.Option(min=1, help="To write, where a workload does not say.")
    ] = 12,
    only: Annotated[str, typer.Option(help=f"Of {', '.join(CONTENDERS)}; all if not said.")] = "",
    grow: Annotated[bool, typer.Option(help="Time ten times and a tenth of the rows.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Keep the tables here.")] = None,
    save: Annotated[Path | None, typer.Option(help="Write JSON, Markdown and plots here.")] = None,
) -> None:
    """Rewrite tables by zadapter and by its peers, and look at what filters then have to read.

    Without options this takes a few minutes on two cores; --full takes hours.
    """
    known = [*WORKLOADS, METADATA, MIGRATION]
    named = _chosen(workloads or (",".join(known) if full else QUICK), known)
    chosen = _chosen(formats, FORMATS)
    rivals = _chosen(only, CONTENDERS) if only else []
    said = report.about(sys.argv[1:])
    if save:
        save.mkdir(parents=True, exist_ok=True)
    alone = {**metadata.planning(), **metadata.log()} if METADATA in named else {}
    races = list(product([name for name in named if name in WORKLOADS], chosen))
    with ExitStack() as stack:
        made = folder or Path(stack.enter_context(TemporaryDirectory(prefix="zadapter-bench-")))
        place = made.resolve()
        place.mkdir(parents=True, exist_ok=True)
        track = Track(
            spark=session(place),
            folder=place,
            scale=scale or (1.0 if full else QUICK_SCALE),
            files=files,
            repeat=repeat or (3 if full else 1),
            asked=10 if full else 3,
            only=rivals,
        )
        said["rounds"] = {"scale": track.scale, "files": files, "repeat": track.repeat}
        of_moving = _moved(track) if MIGRATION in named else []
        for found, points in _found(track, races, grow=chosen[0] if grow else None):
            reached = [*goals(found), *scaling.goals(points), *of_moving]
            if save:  # what is there is kept, should a later race fail
                report.save(save, said, found, reached, points, alone)
        SparkSession.active().stop()
    _say(found, reached, alone)


def _say(found: Races, reached: Sequence[Goal], alone: Mapping[str, float]) -> None:
    if found:
        console.print(Markdown(report.results_table(found)), EXPLAINED)
    console.print(Markdown(report.goals_table(reached)))
    for name, value in alone.items():
        console.print(f"{name}: {value}")


def _moved(track: Track) -> list[Goal]:
    """Migrate, and say what has been found as soon as it is."""
    reached = []
    place, workload = track.folder, WORKLOADS["lineitem"]
    for goal in moving.migrations(track.spark, place, workload, track.scale, track.repeat):
        reached.append(goal)
        console.print(f"{goal.what}: {goal.found}", highlight=False)
    return reached


def _found(
    track: Track, chosen: Sequence[tuple[str, str]], *, grow: str | None
) -> Iterator[tuple[Races, list[scaling.Point]]]:
    """Yield all that has been found, after each race and at last."""
    found: Races = {}
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as bar:  # fmt: skip
        task = bar.add_task("", total=len(chosen))
        step = partial(_describe, bar, task)
        for workload, format_ in chosen:
            results = race(track, WORKLOADS[workload], format_, step)
            if results:
                found[workload, format_] = {result.contender: result for result in results}
            bar.advance(task)
            yield found, []
        yield found, scaling.scaling(track, grow, step) if grow else []


def _describe(bar: Progress, task: TaskID, what: str) -> None:
    bar.update(task, description=what)


def _chosen(text: str, known: Sequence[str]) -> list[str]:
    asked = [name.strip() for name in text.split(",")]
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)}: not of {', '.join(known)}")
    return asked


if __name__ == "__main__":
    typer.run(main)
