"""Seeded faults, and which of them the tests find: ``python -m integration.fuzz.mutants``.

A fault is one small change in the modules that must not err: a comparison turned, a condition
negated, a number off by one, a call or an error left out. It is made in the running tests: the
function gets the code of the changed module, the tests that run the line are run up to the first
failure, and the function gets its own code back. So all faults share a session of Spark. Tests
that start processes of their own do not see a fault.

Which tests run a line is read from coverage data with a context for each test::

    COVERAGE_FILE=.coverage.tests pytest --cov --cov-context=test tests
    COVERAGE_FILE=.coverage.integration pytest --cov --cov-context=test integration
    coverage combine --keep
    python -m integration.fuzz.mutants --count 40 --seed 1
"""

import argparse
import ast
import gc
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType

import pytest
from _pytest.runner import runtestprotocol
from coverage import CoverageData

from tests.kit.checkout import ROOT

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
FOLDERS = ("tests", "integration")
"""Tests that share a process, in the order in which they are run."""
MARKERS = ("not slow", "slow")
"""Tests that each change must pass, and those that take longer."""
WITH_JVM = ("tests/spark/", "tests/toybackend/")
SECONDS = 120
"""Time in which a test ends."""
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


@contextmanager
def made(fault):
    """Give the functions of a module the code that they have with a fault."""
    parts = Path(fault.path.removeprefix("backends/")).with_suffix("").parts
    file = import_module(".".join(parts)).__file__
    whole = Path(file).read_text(encoding="utf-8")
    codes = [inner(compile(each, file, "exec")) for each in (whole, fault.made_in(whole))]
    new = {old: changed for old, changed in zip(*codes, strict=False) if alike(old, changed)}
    functions = [
        (each, each.__code__)
        for each in gc.get_objects()
        if isinstance(each, FunctionType) and each.__code__ in new
    ]
    assert functions, fault
    try:
        for function, old in functions:
            function.__code__ = new[old]
        yield
    finally:
        for function, old in functions:
            function.__code__ = old


def alike(code, changed):
    """Whether a code object differs from that of the same function."""
    same = (code.co_name, code.co_firstlineno) == (changed.co_name, changed.co_firstlineno)
    return same and code != changed


def inner(code):
    """Yield a code object and all that it contains."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from inner(constant)


class Finding:
    """A plug-in of pytest that runs, for each fault, the tests that run its line."""

    def __init__(self, faults, running, most):
        self.faults, self.running, self.most = faults, running, most
        self.found = {}

    def pytest_runtestloop(self, session):
        """Take the place of pytest's own loop."""
        for fault in self.faults:
            start = time.monotonic()
            self.found[fault] = self.finder(fault, self.chosen(fault, session.items))
            seconds = time.monotonic() - start
            print(f"{fault} | {self.found[fault] or 'NOT FOUND'} | {seconds:.0f} s", flush=True)
        return True

    def chosen(self, fault, items):
        """Return tests that run the line, those without a JVM first, and of either at most so many.

        The first are those that run the fewest lines of the module: they are about this one.
        """
        lines = self.running.get(fault.path, {})
        counts = Counter(test for tests in lines.values() for test in tests)
        by_kind = {"tests": [], "with a JVM": []}
        for item in sorted(items, key=lambda item: counts[item.nodeid]):
            if item.nodeid in lines.get(fault.line, ()):
                kind = "tests" if kind_of(item.nodeid) == "tests" else "with a JVM"
                by_kind[kind].append(item)
        return [item for kind in by_kind.values() for item in kind[: self.most]]

    def finder(self, fault, items):
        """Return the test that finds a fault, or None; without it, the test passes."""
        for item in items:
            with made(fault):
                found = fails(item)
            if found and not fails(item):
                return item.nodeid
        return None


def fails(item):
    """Run a test, and state whether it fails; whatever does not belong to the session is closed."""
    signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        return any(each.failed for each in runtestprotocol(item, log=False, nextitem=item.session))
    finally:
        signal.alarm(0)


def late(*_):
    """End a test that takes too long."""
    pytest.fail("out of time", pytrace=False)


def kind_of(test):
    """Return the kind of a test, by which kinds are sorted."""
    folder, name, *_ = test.split("/")
    if folder == "tests":
        return "tests/spark" if test.startswith(WITH_JVM) else "tests"
    return f"{folder}/{name.partition('::')[0]}"


def run(folder, marker, faults, options):
    """Look for faults by the tests of a folder that a marker selects; return those found."""
    with tempfile.TemporaryDirectory() as place:
        given, found = Path(place) / "faults", Path(place) / "found"
        given.write_text(json.dumps([asdict(fault) for fault in faults]), encoding="utf-8")
        command = [sys.executable, "-m", "integration.fuzz.mutants", "--tests", str(options.tests)]
        command += ["--child", folder, marker, str(given), str(found)]
        subprocess.run(command, cwd=ROOT, check=True)
        return json.loads(found.read_text(encoding="utf-8"))


def child(options):
    """Do what ``run`` asks for, in a process of its own."""
    folder, marker, given, found = options.child
    faults = [Fault(**each) for each in json.loads(Path(given).read_text(encoding="utf-8"))]
    finding = Finding(faults, lines_run(), options.tests)
    settings = ["-p", "no:xdist", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib"]
    pytest.main([*settings, "-q", "-m", marker, folder], plugins=[finding])
    names = [finding.found[fault] for fault in faults]
    Path(found).write_text(json.dumps(names), encoding="utf-8")


def main():
    """Draw faults, look for each, and print which are found and by which tests."""
    parser = argparse.ArgumentParser(prog="python -m integration.fuzz.mutants", description=__doc__)
    parser.add_argument("--count", type=int, default=40, help="number of faults; 40")
    parser.add_argument("--seed", type=int, default=1, help="which faults are drawn; 1")
    parser.add_argument("--tests", type=int, default=30, help="at most so many for a fault; 30")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    left = drawn(options.count, options.seed)
    for marker in MARKERS:
        kinds = Counter()
        for folder in FOLDERS:
            names = run(folder, marker, left, options)
            kinds.update(kind_of(name) for name in names if name)
            left = [fault for fault, name in zip(left, names, strict=True) if not name]
        by_kind = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
        print(f"found by tests that are {marker}: {kinds.total()} of {options.count}: {by_kind}")


if __name__ == "__main__":
    main()
