"""Runs suites in cells: ``python -m integration.matrix [cell ...] [--suite name ...]``."""

import argparse
import re
import sys
from pathlib import Path

from integration.matrix.cells import CELLS, PATCHES, SUITES
from integration.matrix.environments import CACHE, made, run

_COUNTS = re.compile(r"(\d+) (passed|failed|skipped|error)")
_SKIPPED = "SKIPPED "


def main():
    """Run the cells, print the table, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m integration.matrix", description=__doc__)
    names = [cell.name for cell in CELLS]
    others = [cell.name for cell in PATCHES]
    known = f"of {', '.join(names)}; on request {', '.join(others)}"
    parser.add_argument("cells", nargs="*", metavar="cell", help=known)
    parser.add_argument("--suite", action="append", choices=SUITES, help="all by default")
    parser.add_argument("--list", action="store_true", help="print the command of each suite")
    parser.add_argument("--folder", type=Path, default=CACHE, help=f"environments; {CACHE}")
    options = parser.parse_args()
    wanted = options.cells or names
    if unknown := {*wanted} - {*names, *others}:
        parser.error(f"unknown cell {min(unknown)}")
    cells = [cell for cell in (*CELLS, *PATCHES) if cell.name in wanted]
    if options.list:
        _list(cells if options.cells else [*CELLS, *PATCHES])
        return 0
    rows = [_row(cell, _suites(cell, options.suite), options.folder) for cell in cells]
    _print(rows)
    return int(any(failed for *_, failed in rows))


def _suites(cell, wanted):
    """Return the wanted suites of those that a cell can run."""
    return [suite for suite in cell.suites if not wanted or suite in wanted]


def _list(cells):
    for cell in cells:
        for suite in cell.suites:
            print(f"python -m integration.matrix {cell.name} --suite {suite}")


def _row(cell, suites, folder):
    """Run the suites in one cell, and return its line of the table."""
    sys.stdout.write(f"== {cell.name}\n")
    sys.stdout.flush()
    environment = made(cell, folder)
    said, code, seconds = run(cell, environment, suites)
    lines = said.splitlines()
    sys.stdout.write(said if code else _reasons(lines))
    counts = {word: int(number) for number, word in _COUNTS.findall(lines[-1])}
    delta, iceberg = (cell.versions.get(name, "none") for name in ("delta", "iceberg"))
    passed, skipped = counts.get("passed", 0), counts.get("skipped", 0)
    row = (cell.spark, delta, iceberg, environment.python, passed, skipped, seconds)
    return *row, counts.get("failed", 0) + counts.get("error", 0) or code


def _reasons(lines):
    """Return why tests were skipped."""
    return "".join(f"{line}\n" for line in lines if line.startswith(_SKIPPED))


def _print(rows):
    head = ("Spark", "Delta", "Iceberg", "Python", "passed", "skipped", "seconds", "failed")
    lines = [head, ["---"] * len(head), *rows]
    for line in lines:
        print("|", " | ".join(map(str, line)), "|")
    print(f"{sum(r[4] for r in rows)} passed, {sum(r[-1] for r in rows)} failed")


if __name__ == "__main__":
    sys.exit(main())
