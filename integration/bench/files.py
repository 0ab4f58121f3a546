"""``python -m integration.bench.files``: what tables of many files cost, without data files."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

FORMATS = ("delta", "iceberg", "parquet")
CALLS = ("open", "plan", "analyze", "commit")
_GIB = 1 << 30
_HEAD = (
    "| format | files | call | seconds | of CPU | driver JVM, GiB | Python, GiB | both |\n"
    "|---|---|---|---|---|---|---|---|"
)
Found = Mapping[str, float]


def main(
    *,
    files: Annotated[str, typer.Option(help="Files of each table, by comma.")] = "10000,100000",
    formats: Annotated[str, typer.Option("--format", help="By comma.")] = ",".join(FORMATS),
    calls: Annotated[str, typer.Option(help="By comma.")] = ",".join(CALLS),
    memory: Annotated[str, typer.Option(help="Of the driver's JVM.")] = "2g",
    folder: Annotated[Path | None, typer.Option(file_okay=False, help="Keep the tables.")] = None,
) -> None:
    """Make logs, and run calls on them, each in a process of its own with two cores.

    Seconds of CPU are those of the driver and its JVM. Memory is the largest resident set of each.
    A commit is timed by itself, without what comes before it.
    """
    counts = sorted(int(count) for count in files.split(","))
    with TemporaryDirectory(prefix="zadapter-files-") as temporary:
        place = (folder or Path(temporary)).resolve()
        typer.echo(_HEAD)
        for format_ in formats.split(","):
            found: dict[str, dict[int, Found]] = {}
            for count, call, result in _measured(place, format_, counts, calls.split(","), memory):
                found.setdefault(call, {})[count] = result
                typer.echo(_row(format_, count, call, result))
            slopes = (_slopes(format_, call, results) for call, results in found.items())
            typer.echo("\n".join(chain.from_iterable(slopes)))


def _measured(
    place: Path, format_: str, counts: list[int], calls: list[str], memory: str
) -> Iterator[tuple[int, str, Found]]:
    for count in counts:
        at = place / f"{format_}-{count}"
        if not at.exists():
            at.mkdir(parents=True)
            _run("make", format_, str(at), str(count))
        for call in calls:
            # a commit adds a version, which the other calls then read
            yield count, call, json.loads(_run("measure", call, format_, str(at / format_), memory))


def _run(module: str, *arguments: str) -> str:
    """Run a module in a new process, and return the last line that it prints."""
    command = [sys.executable, "-m", f"integration.bench.millions.{module}", *arguments]
    ran = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return (ran.stdout.splitlines() or [""])[-1]


def _row(format_: str, count: int, call: str, found: Found) -> str:
    java, python = (found[name] / _GIB for name in ("java", "python"))
    return (
        f"| {format_} | {count:,} | {call} | {found['seconds']:.1f} | {found['cpu']:.1f} | "
        f"{java:.2f} | {python:.2f} | {java + python:.2f} |"
    )


def _slopes(format_: str, call: str, found: Mapping[int, Found]) -> Iterator[str]:
    """Yield the slopes of logarithms from each number of files to the next."""
    for (less, before), (more, after) in pairwise(found.items()):
        steps = math.log(more / less)
        cpu = math.log(max(after["cpu"], 0.01) / max(before["cpu"], 0.01)) / steps
        memory = [each["java"] + each["python"] for each in (before, after)]
        room = math.log(memory[1] / memory[0]) / steps
        yield f"{format_}, {call}, {less:,} to {more:,}: CPU {cpu:.2f}, memory {room:.2f}"


if __name__ == "__main__":
    typer.run(main)
