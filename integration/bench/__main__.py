"""``python -m integration.bench``: zadapter and its peers on the same tables, in turn."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
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

from integration.bench import files as many
from integration.bench import report
from integration.bench.appends import goals as ageing_goals
from integration.bench.appends.ageing import Course
from integration.bench.appends.rows import AGEING, FEW
from integration.bench.appends.rows import SCALE as AGED_SCALE
from integration.bench.contenders import CONTENDERS, KEEPERS
from integration.bench.formats import FORMATS
from integration.bench.measures import judge, lake, metadata, migration, scaling, start
from integration.bench.race import Track, race
from integration.bench.results import EXPLAINED, Goal
from integration.bench.session import session
from integration.bench.tables.workloads import WORKLOADS

QUICK = "lineitem,zipf"
METADATA = "metadata"
"""Workload without a table: costs of planning and logs."""
MIGRATION = "migration"
"""Workload of migrations between formats instead of rewrites."""
START = "start"
"""Workload of first calls: from the shell, and on a warm session."""
LAKE = "lake"
"""Workload of many small tables."""
JUDGE = "judge"
"""Workload of tables that are only judged."""
MANY = "files"
"""Workload of logs of many files."""
QUICK_SCALE = 0.02
KNOWN = (*WORKLOADS, *AGEING, METADATA, MIGRATION, START, LAKE, JUDGE, MANY)
"""All workloads."""
RIVALS = tuple(dict.fromkeys([*CONTENDERS, *KEEPERS]))
"""All contenders."""
MARK = ".zadapter-bench"
"""Marks a folder whose tables this command may delete."""
console = Console(width=150)


def main(
    *,
    full: Annotated[bool, typer.Option("--full", help="All, at scale 1, three rounds.")] = False,
    scale: Annotated[
        float | None,
        typer.Option(min=0.001, max=1_000, help="1: tables of 6 million rows."),
    ] = None,
    formats: Annotated[str, typer.Option(help="By comma.")] = ",".join(FORMATS),
    workloads: Annotated[str | None, typer.Option(help=f"Of {', '.join(KNOWN)}.")] = None,
    repeat: Annotated[int | None, typer.Option(min=1, help="Rounds, in drawn orders.")] = None,
    files: Annotated[
        int, typer.Option(min=1, help="To write, where a workload does not say.")
    ] = 12,
    only: Annotated[str, typer.Option(help=f"Of {', '.join(RIVALS)}; all if not said.")] = "",
    tables: Annotated[int | None, typer.Option(min=1, help="Of lake and judge.")] = None,
    appends: Annotated[int, typer.Option(min=1, help="To tables that age.")] = FEW,
    grow: Annotated[bool, typer.Option(help="Time ten times and a tenth of the rows.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Keep the tables here, until they are made anew."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option(file_okay=False, help="Write JSON, Markdown and plots here.")
    ] = None,
) -> None:
    """Rewrite tables with zadapter and its peers, and measure what filters then have to read.

    Without options this takes a few minutes on two cores; --full takes hours.
    """
    named = _chosen(workloads or (",".join(KNOWN) if full else QUICK), KNOWN)
    chosen = _chosen(formats, FORMATS)
    run = report.Run(command=sys.argv[1:], folder=save)
    if METADATA in named:
        run.metadata = {**metadata.seen(), **metadata.planning(), **metadata.log()}
    races = list(product([name for name in named if name in WORKLOADS], chosen))
    with ExitStack() as stack:
        made = folder or Path(stack.enter_context(TemporaryDirectory(prefix="zadapter-bench-")))
        place = _ours(made.resolve())
        track = Track(
            spark=session(place),
            folder=place,
            scale=scale or (1.0 if full else QUICK_SCALE),
            files=files,
            repeat=repeat or (3 if full else 1),
            asked=10 if full else 3,
            only=_chosen(only, RIVALS) if only else [],
        )
        run.rounds = {"scale": track.scale, "files": files, "repeat": track.repeat}
        _time(track, named, chosen, run, tables)
        older = replace(track, scale=scale or (1.0 if full else AGED_SCALE))
        aged = product([AGEING[name] for name in named if name in AGEING], chosen)
        _age((Course(older, *which, appends) for which in aged), run)
        _race(track, races, run)
        if grow:
            run.points = scaling.scaling(track, chosen[0], console.print)
        run.keep()
        SparkSession.active().stop()
    _say(run)
    if races and not run.found:
        raise typer.BadParameter(f"nobody of {only} rewrites {formats}")


def _ours(place: Path) -> Path:
    """Return a folder whose tables may be overwritten and deleted.

    Raises:
        BadParameter: The folder contains files that this command has not made.
    """
    place.mkdir(parents=True, exist_ok=True)
    mark = place / MARK
    if not mark.exists() and any(place.iterdir()):
        raise typer.BadParameter(f"{place} is neither empty, nor a folder of this benchmark")
    mark.touch()
    return place


def _say(run: report.Run) -> None:
    if run.found:
        console.print(Markdown(report.results_table(run.found)), EXPLAINED)
    if run.aged:
        console.print(Markdown(ageing_goals.aged_table(run.aged)), ageing_goals.EXPLAINED)
    console.print(Markdown(report.goals_table(run.goals())))
    for line in run.remarks():
        console.print(line, highlight=False)


def _time(
    track: Track,
    named: Sequence[str],
    formats: Sequence[str],
    run: report.Run,
    tables: int | None,
) -> None:
    """Run the workloads without contenders."""
    if MIGRATION in named:
        _move(track, run)
    lakes = partial(lake.lakes, tables=tables or lake.TABLES)
    judged = partial(judge.judgements, tables=tables or judge.TABLES)
    for name, goals in ((START, start.starts), (LAKE, lakes), (JUDGE, judged)):
        if name in named:
            _begin(goals(track.spark, track.folder, formats, track.repeat), run)
    if MANY in named:
        many.main(formats=",".join(formats))


def _move(track: Track, run: report.Run) -> None:
    """Migrate, and print each result immediately."""
    place, workload = track.folder, WORKLOADS["lineitem"]
    for goal in migration.migrations(track.spark, place, workload, track.scale, track.repeat):
        run.moved.append(goal)
        console.print(f"{goal.what}: {goal.found}", highlight=False)
        run.keep()  # results are saved even if a later migration fails


def _begin(goals: Iterable[Goal], run: report.Run) -> None:
    """Time first calls, and print each result immediately."""
    for goal in goals:
        run.moved.append(goal)
        console.print(f"{goal.what}: {goal.found}", highlight=False)
        run.keep()


def _age(courses: Iterable[Course], run: report.Run) -> None:
    """Let tables age, and print each result immediately."""
    for course in courses:
        run.rounds = {**run.rounds, "appends": course.appends, "aged scale": course.track.scale}
        for aged in course.run(run.failed):
            run.aged.append(aged)
            console.print(ageing_goals.course(aged), highlight=False)
            run.keep()


def _race(track: Track, chosen: Sequence[tuple[str, str]], run: report.Run) -> None:
    if not chosen:
        return
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as bar:  # fmt: skip
        task = bar.add_task("", total=len(chosen))
        step, tell = partial(_describe, bar, task), partial(console.print, highlight=False)
        for workload, format_ in chosen:
            results, failed = race(track, WORKLOADS[workload], format_, step, tell)
            if results:
                run.found[workload, format_] = {each.contender: each for each in results}
            run.failed |= {f"{workload}, {format_}, {who}": why for who, why in failed.items()}
            bar.advance(task)
            run.keep()


def _describe(bar: Progress, task: TaskID, what: str) -> None:
    bar.update(task, description=what)


def _chosen(text: str, known: Sequence[str]) -> list[str]:
    asked = list(dict.fromkeys(name.strip() for name in text.split(",")))
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise typer.BadParameter(f"{', '.join(unknown)}: not of {', '.join(known)}")
    return asked


if __name__ == "__main__":
    typer.run(main)
