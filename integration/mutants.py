"""Seeded faults, and which of them the tests find: ``python -m integration.mutants``.

A fault is one small change in the modules that must not err: a comparison turned, a condition
negated, a number off by one, a call or an error left out. It is made in a copy of the checkout, and
the tests that run its line are run there up to the first failure: those without a JVM first.

Which tests run a line is read from coverage data with a context for each test::

    COVERAGE_FILE=.coverage.tests pytest --cov --cov-context=test tests
    COVERAGE_FILE=.coverage.delta pytest --cov --cov-context=test integration --format delta
    coverage combine --keep
    python -m integration.mutants --count 40 --seed 1
"""

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from coverage import CoverageData

from tests.kit.checkout import ROOT, python_path

CRITICAL = (
    "zadapter/api/migrate.py",
    "zadapter/backend/commit.py",
    "zadapter/base/commit_attempts.py",
    "zadapter/table/column_bounds.py",
    "zadapter/predicates/pruning.py",
    "zadapter/migration/*.py",
    "zadapter/planning/file_groups.py",
    "zadapter/rewrite/recovery/*.py",
    "zadapter/rewrite/verify.py",
    "zadapter/rewrite/write.py",
    "zadapter/spark/checksum.py",
    "zadapter/spark/files.py",
    "zadapter/table/file_stats.py",
    "backends/*/commits/*.py",
    "backends/*/stats/*.py",
    "backends/zadapter_parquet/log/*.py",
    "backends/zadapter_parquet/operations/vacuuming.py",
)
"""Modules whose faults could lose, double or hide a row."""
KINDS = ("tests", "tests/spark", "delta", "iceberg", "parquet", "migration", "journeys")
"""Tests that share a process, in the order in which they are run."""
WITH_JVM = ("tests/spark/", "tests/toybackend/")
MARKERS = ("not slow", "slow")
"""Tests that each change must pass, and those that take longer."""
PYTEST = (
    *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist"),
    *("-o", "addopts=--import-mode=importlib -rfE"),
)
_TURNED = {
    ast.Eq: "!=", ast.NotEq: "==", ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">",
    ast.In: "not in", ast.NotIn: "in", ast.Is: "is not", ast.IsNot: "is",
}  # fmt: skip


@dataclass(frozen=True)
class Fault:
    """A change of a module's text."""

    path: str
    line: int
    column: int
    old: str
    new: str

    def __str__(self):
        return f"{self.path}:{self.line} {self.old!r} -> {self.new!r}"

    def made_in(self, text):
        """Return the module's text with the fault."""
        lines = text.splitlines(keepends=True)
        start = sum(map(len, lines[: self.line - 1])) + self.column
        assert text[start:].startswith(self.old), self
        return text[:start] + self.new + text[start + len(self.old) :]


def drawn(count, seed):
    """Return *count* faults, at most one of a function and as many of each module as can be."""
    by_module = {}
    for path in sorted(each for pattern in CRITICAL for each in ROOT.glob(pattern)):
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        rows = _choices(f"{seed} {name}")
        functions = [
            node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)
        ]
        found = [faults for each in functions if (faults := [*faults_of(name, text, each)])]
        by_module[name] = rows.sample([rows.choice(faults) for faults in found], len(found))
    modules = _choices(seed).sample(sorted(by_module), len(by_module))
    rounds = range(max(map(len, by_module.values())))
    every = [by_module[each][n] for n in rounds for each in modules if n < len(by_module[each])]
    return every[:count]


def _choices(seed):
    """Return a source of the same choices in every process."""
    return random.Random(str(seed))


def faults_of(path, text, function) -> Iterator[Fault]:
    """Yield the faults that a function can have; its docstring has none."""
    for node, old in nodes_of(text, function):
        fault = partial(Fault, path, node.lineno, node.col_offset, old)
        match node:
            case ast.Compare(ops=[operator], left=left, comparators=[right]):
                yield fault(f"{ast.unparse(left)} {_TURNED[type(operator)]} {ast.unparse(right)}")
            case ast.BoolOp(op=operator, values=values):
                word = " and " if isinstance(operator, ast.Or) else " or "
                yield fault(word.join(f"({ast.unparse(each)})" for each in values))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield fault(ast.unparse(operand))
            case ast.Constant(value=bool()):
                yield fault(str(not node.value))
            case ast.Constant(value=int()):
                yield fault(str(node.value + 1))
            case ast.Expr(value=ast.Call()) | ast.Raise():
                yield fault("pass")


def nodes_of(text, function):
    """Yield the syntax nodes of a function that lie on one line, with their text."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    for node in (inner for statement in body for inner in ast.walk(statement)):
        old = ast.get_source_segment(text, node)
        if old and "\n" not in old and old.isascii():
            yield node, old


def lines_run():
    """Return, for each module, the tests that run each of its lines."""
    data = CoverageData(str(ROOT / ".coverage"))
    data.read()
    return {
        Path(name).as_posix(): {
            line: {test for test, _, phase in (each.rpartition("|") for each in contexts) if phase}
            for line, contexts in data.contexts_by_lineno(name).items()
        }
        for name in data.measured_files()
        if any(Path(name).match(pattern) for pattern in CRITICAL)
    }


def collected(marker):
    """Return the tests that a marker selects, of those without a JVM and of real tables."""
    command = [*PYTEST, "-q", "--collect-only", "-m", marker, "tests", "integration"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {line for line in listed.stdout.splitlines() if "::" in line}


def kind_of(test):
    """Return the kind of a test."""
    if test.startswith("tests/"):
        return "tests/spark" if test.startswith(WITH_JVM) else "tests"
    names = (*KINDS[5:], *KINDS[2:5])
    return next(
        (n for n in names if f"/{n}/" in test or f"::Test{n.capitalize()}::" in test), "delta"
    )


def finder(fault, tests, folder, options):
    """Return the test that finds a fault in a checkout, or None; without it, the test passes."""
    module = folder / fault.path
    whole = module.read_text(encoding="utf-8")
    for kind in options.kinds:
        of_kind = sorted(test for test in tests if kind_of(test) == kind)
        some = _choices(fault).sample(of_kind, min(len(of_kind), options.tests))
        module.write_text(fault.made_in(whole), encoding="utf-8")
        failed = some and first_failure(kind, some, folder, options)
        module.write_text(whole, encoding="utf-8")
        if failed and not first_failure(
            kind, [failed] if failed in some else some, folder, options
        ):
            return failed
    return None


def finder_by_marker(fault, tests, folder, options):
    """Return the first marker by whose tests a fault is found, and the test, or twice None."""
    for marker, some in tests.items():
        if found := finder(fault, some, folder, options):
            return marker, found
    return None, None


def first_failure(kind, tests, folder, options):
    """Return the test that fails first, or None."""
    variables = {**os.environ, "PYTHONPATH": python_path(folder)}
    formats = () if kind.startswith("tests") else ("--format", kind)
    command = [*PYTEST, "-x", "-q", "-m", "", *formats]
    try:
        answer = subprocess.run(
            [*command, *tests], cwd=folder, env=variables, capture_output=True, text=True,
            check=False, timeout=options.seconds,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "out of time"
    if answer.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", answer.stdout, re.MULTILINE)
    return failed[1] if failed else answer.stdout[-300:]


def main():
    """Draw faults, look for each, and print which are found and by which tests."""
    parser = argparse.ArgumentParser(prog="python -m integration.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=40, help="number of faults; 40")
    parser.add_argument("--seed", type=int, default=1, help="which faults are drawn; 1")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="of tests; all")
    parser.add_argument("--tests", type=int, default=25, help="at most so many of a kind; 25")
    parser.add_argument("--seconds", type=int, default=900, help="a limit of one run; 900")
    options = parser.parse_args()
    running, selected = lines_run(), {marker: collected(marker) for marker in MARKERS}
    finders = {marker: Counter() for marker in (*MARKERS, None)}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "checkout"
        shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".git", ".coverage*", ".venv"))
        for number, fault in enumerate(drawn(options.count, options.seed), 1):
            start = time.monotonic()
            tests = running.get(fault.path, {}).get(fault.line, set())
            chosen = {marker: tests & each for marker, each in selected.items()}
            marker, found = finder_by_marker(fault, chosen, folder, options)
            finders[marker][found and kind_of(found)] += 1
            seconds = time.monotonic() - start
            print(number, fault, "|", found or "NOT FOUND", f"| {seconds:.0f} s", flush=True)
    for marker in MARKERS:
        kinds = finders[marker]
        by_kind = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
        print(f"found by tests that are {marker}: {kinds.total()} of {options.count}: {by_kind}")


if __name__ == "__main__":
    main()
