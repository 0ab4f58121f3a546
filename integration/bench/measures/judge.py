"""Many tables of many files, without data: seconds in which ``maintain`` judges a table.

Tables of a format are judged in a dry run of a new process, others right after it, and then as
settled ones: a journal says that nothing was to do. At the end, one lake has the tables of all
formats.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from pyspark.sql import SparkSession

import zadapter
from integration.bench.measures.calls import Cost, cost
from integration.bench.millions.facts import KEYS, TARGET
from integration.bench.millions.make import MAKERS
from integration.bench.results import Goal
from integration.bench.session import session
from zadapter.lake import journal
from zadapter.lake.report import LakeReport

TABLES, FILES = 20, 1_000
MOST = {"judged": 0.6, "settled": 0.2}
"""Goals: seconds a table in a warm JVM; 0.6 of 1 000 tables are ten minutes."""
WHOLE = "whole"
_JOURNAL = "parquet"


def judgements(
    spark: SparkSession, folder: Path, formats: Sequence[str], rounds: int, tables: int = TABLES
) -> Iterator[Goal]:
    """Time the judgement of tables whose files mostly do not exist.

    Args:
        spark: The session that makes the tables.
        folder: Where tables are made.
        formats: Formats of the tables.
        rounds: Has no effect: the tables are many already.
        tables: Number of tables of each format that are judged at a time.
    """
    del rounds
    place = folder / "judge"
    if place.exists():
        shutil.rmtree(place)
    for name in formats:
        for part in ("first", "second"):
            for number in range(tables):
                MAKERS[name](spark, place / name / part / str(number), FILES)
        for what in MOST:
            cold, warm = (Cost(**each) for each in _run(what, place, name))
            yield _goal(name, what, cold, warm, tables)
    (whole,) = (Cost(**each) for each in _run(WHOLE, place, *formats))
    yield _whole_goal(whole, tables * len(formats))


def _goal(name: str, what: str, cold: Cost, warm: Cost, tables: int) -> Goal:
    seconds = warm.seconds / tables
    return Goal(
        what=f"{what}, {name}: seconds a table of {FILES:,} files",
        asked=f"<= {MOST[what]} s",
        found=(
            f"{seconds:.2f} s, {warm.core_seconds / tables:.2f} core s, "
            f"{warm.commands / tables:.0f} commands, {warm.jobs / tables:.0f} jobs; in a new "
            f"process {cold.seconds / tables:.2f} s, {cold.core_seconds / tables:.2f} core s"
        ),
        reached=seconds <= MOST[what],
    )


def _whole_goal(whole: Cost, tables: int) -> Goal:
    asked = tables * MOST["judged"]
    return Goal(
        what=f"judged, one lake of {tables:,} tables of {FILES:,} files, in a new process",
        asked=f"<= {asked:.0f} s",
        found=f"{whole.seconds:.0f} s, {whole.core_seconds:.0f} core s",
        reached=whole.seconds <= asked,
    )


def _run(*arguments: object) -> list[Mapping[str, float]]:
    """Run this module in a new process, and return what it prints last."""
    command = [sys.executable, "-m", "integration.bench.measures.judge", *map(str, arguments)]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: list[Mapping[str, float]] = json.loads(ran.stdout.splitlines()[-1])
    return found


def measure(what: str, place: Path, name: str) -> list[Cost]:
    """Return the cost of the first run of this process, and of a run over other tables."""
    spark = session(place)
    spark.range(1).toArrow()
    costs, verdict = list[Cost](), {"judged": journal.DUE, "settled": journal.NOTHING_TO_DO}[what]
    for part in ("first", "second"):
        lake = _lake(place, f"{name}/{part}", [name], part)
        found = list[LakeReport]()
        costs.append(cost(spark, lambda lake=lake, found=found: found.append(_dry(lake, spark))))
        assert {line.verdict for line in found[0].lines} == {verdict}, found[0]
        if what == "judged":
            _settle(spark, lake, found[0])
    return costs


def _dry(lake: Mapping[str, object], spark: SparkSession) -> LakeReport:
    return zadapter.maintain(lake, dry_run=True, spark=spark)


def measure_whole(place: Path, formats: Sequence[str]) -> list[Cost]:
    """Return the cost of one run over the first tables of all formats."""
    spark = session(place)
    found = list[LakeReport]()
    lake = _lake(place, WHOLE, formats, "first")
    return [cost(spark, lambda: found.append(_dry(lake, spark)))]


def _lake(place: Path, name: str, formats: Sequence[str], part: str) -> dict[str, object]:
    terms = {"by": list(KEYS), "target_file_size": TARGET}
    return {
        "journal": {"table": f"{place}/{name}-journal", "format": _JOURNAL},
        "tables": [
            {"match": f"{place}/{each}/{part}/*/{each}", "format": each, **terms}
            for each in formats
        ],
    }


def _settle(spark: SparkSession, lake: Mapping[str, object], report: LakeReport) -> None:
    """Write a journal by which the tables had nothing to do."""
    table = str(dict(lake)["journal"]["table"])  # type: ignore[index]
    lines = [replace(line, verdict=journal.NOTHING_TO_DO, remark=None) for line in report.lines]
    journal.prepare(spark, table, _JOURNAL)
    journal.append(spark, table, _JOURNAL, lines)


if __name__ == "__main__":
    _, asked, where, *chosen = sys.argv
    costs = (
        measure_whole(Path(where), chosen)
        if asked == WHOLE
        else measure(asked, Path(where), *chosen)
    )
    sys.stdout.write("\n" + json.dumps([asdict(each) for each in costs]) + "\n")
    sys.stdout.flush()
    os._exit(0)  # the JVM may take seconds to end
