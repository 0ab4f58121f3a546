"""Who may import whom, and how large things may grow."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHIPPED = sorted([*ROOT.glob("zadapter/**/*.py"), *ROOT.glob("backends/**/*.py")])
EVERYTHING = sorted([*SHIPPED, *ROOT.glob("tests/**/*.py"), *ROOT.glob("integration/**/*.py")])

SPARK = ("pyspark", "py4j")
FLOORS = (
    ("base",),
    ("layout",),
    ("table",),
    ("predicates", "planning", "backend"),
    ("report", "spark"),
    ("rewrite", "inspection"),
    ("migration",),
    ("api",),
    ("lake",),
    ("cli",),
)
"""The packages of the core, each of which imports only lower floors; errors belong to base."""
PACKAGES = tuple(package for floor in FLOORS for package in floor)
JAVA = ("zadapter.spark.jvm", "zadapter.spark.compat")
"""Calls of Java, and what differs between releases: they stand on base alone."""
PURE = (
    *(f"zadapter.{name}" for floor in FLOORS[:4] for name in floor),
    *("zadapter.errors", "zadapter.report", "zadapter.inspection", "zadapter.rewrite.tally"),
    "zadapter.lake.settings",
)
"""What needs no Spark, except for ``WITH_SPARK``."""
WITH_SPARK = tuple(f"zadapter.inspection.{name}" for name in ("advise", "measure", "querylog"))
BACKENDS = ("zadapter_delta", "zadapter_iceberg", "zadapter_parquet")
FOR_BACKENDS = (
    *(f"zadapter.{name}" for name in ("base", "layout", "table", "errors")),
    *(f"zadapter.backend.{name}" for name in ("builds", "format", "row_files", "row_places")),
    *JAVA,
)
"""What a backend may import of the core."""
OF_KEY_TYPES = frozenset(
    f"is_{name}"
    for name in (
        *("boolean", "integer", "int8", "int16", "int32", "int64", "floating", "float32"),
        *("float64", "decimal", "decimal128", "date", "date32", "timestamp", "temporal"),
        *("string", "large_string", "binary", "large_binary"),
    )
)
"""Arrow's tests of types that keys can have."""
PRIVATE_WAYS = {"_gateway", "_jc", "_jdf", "_jsc", "_jschema", "_jsparkSession", "_jvm"}
"""Attributes of PySpark that lead to objects of the JVM."""
UNSAFE_MODULES = {"cloudpickle", "dill", "marshal", "pickle", "shelve"}
BASE = "suppress(BaseException)"
UNSAFE_CALLS = {"eval", "exec", "os.popen", "os.system", "yaml.load", "yaml.unsafe_load"}


def module_name(path: Path) -> str:
    """Return the name *path* is imported by."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "backends" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_within(module: str, *packages: str) -> bool:
    """Tell whether *module* is one of *packages* or inside one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def package_of(module: str) -> str:
    """Return the package that *module* lies in, or the module itself if that lies at the top."""
    package = module.partition(".")[2].partition(".")[0]
    return {"errors": "base", "__main__": "cli"}.get(package, package)


def is_pure(module: str) -> bool:
    """Tell whether *module* belongs to the part of the core that needs no Spark."""
    pure = module == "zadapter" or is_within(module, *PURE)
    return pure and not is_within(module, *WITH_SPARK)


def running_code(node: ast.AST) -> Iterator[ast.AST]:
    """Walk *node*, but for what only type checkers read."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield from running_code(child)


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> frozenset[str]:
    """Return what *path* imports; ``from a import b`` counts as ``a.b``."""
    found: set[str] = set()
    for node in running_code(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def shown(path: Path) -> str:
    """Name a file."""
    return str(path.relative_to(ROOT))


def broken(rule: Callable[[Path], object], paths: Sequence[Path] = SHIPPED) -> dict[str, object]:
    """Return what a rule finds, by file; a rule that is kept finds nothing."""
    found = {shown(path): rule(path) for path in paths}
    return {name: what for name, what in found.items() if what}


def test_modules_and_functions_stay_small():
    """If this fails, find the second noun hiding in the module, the second verb in the function."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)

    def large(path):
        nodes = [node for node in ast.walk(parsed(path)) if isinstance(node, functions)]
        long = [node.name for node in nodes if node.end_lineno - node.lineno + 1 > 60]
        lines = len(path.read_text(encoding="utf-8").splitlines())
        return [*long, *([f"{lines} lines"] if lines > 600 else [])]

    assert broken(large, EVERYTHING) == {}


def test_packages_import_only_those_of_lower_floors():
    """The floors of the packages are the architecture; a cycle has no place in it."""
    lower = {
        package: {each for below in FLOORS[:number] for each in below}
        for number, floor in enumerate(FLOORS)
        for package in floor
    }

    def upwards(path):
        module = module_name(path)
        if not is_within(module, "zadapter") or module == "zadapter":
            return None  # the door imports what users ask for
        package = package_of(module)
        others = {package_of(name) for name in imports(path) if is_within(name, "zadapter")}
        return others - {"", package, *lower[package]}

    assert broken(upwards) == {}


def test_arrows_point_inwards():
    """The pure core knows no Spark, the core knows no backend, a backend knows values only."""

    def outwards(path):
        module, imported = module_name(path), imports(path)
        core = [name for name in imported if is_within(name, "zadapter")]
        in_core = is_within(module, "zadapter")
        own = () if in_core else (module.partition(".")[0],)
        found = [n for n in imported if n.startswith("zadapter_") and not is_within(n, *own)]
        if is_pure(module):
            found += [name for name in imported if is_within(name, *SPARK)]
        if is_within(module, "zadapter.cli"):
            found += [name for name in imported if is_within(name, *SPARK, "zadapter.spark")]
        if not in_core:
            found += [name for name in core if not is_within(name, *FOR_BACKENDS)]
        if is_within(module, *JAVA):
            own = (*JAVA, "zadapter.base", "zadapter.errors")
            found += [name for name in core if not is_within(name, *own)]
        return found

    assert broken(outwards) == {}


def test_private_ways_to_java_are_in_few_places():
    """PySpark and py4j may change them at any time: then these modules change, and no others."""

    def private(path):
        module = module_name(path)
        if is_within(module, "zadapter.spark.jvm", *(f"{name}.jvm" for name in BACKENDS)):
            return None
        ways = [n for n in ast.walk(parsed(path)) if getattr(n, "attr", None) in PRIVATE_WAYS]
        found = [ast.unparse(way) for way in ways if ast.unparse(way.value) != "self"]
        return found + [name for name in imports(path) if is_within(name, "py4j")]

    assert broken(private) == {}


@pytest.mark.parametrize("backend", BACKENDS)
def test_packages_of_a_backend_have_no_cycle(backend):
    """What one of them imports, directly or not, never imports it."""
    arrows: dict[str, set[str]] = {}
    for path in (ROOT / "backends" / backend).rglob("*.py"):
        here = package_of(module_name(path))
        there = {package_of(name) for name in imports(path) if is_within(name, backend)}
        arrows.setdefault(here, set()).update(there - {here})

    assert list(TopologicalSorter(arrows).static_order())


def test_backends_is_a_folder_and_no_package():
    """In an installation there is no ``backends``: what imports it works in a checkout only."""

    def of_folder(path):
        return [name for name in imports(path) if is_within(name, "backends")]

    assert broken(of_folder, EVERYTHING) == {}


def test_types_are_told_apart_by_the_table_of_key_types():
    """A list of Arrow's types elsewhere would have to know the next type as well."""

    def listing(path):
        if module_name(path) in {"zadapter.base.key_types", "zadapter.base.key_text"}:
            return None
        attributes = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Attribute)]
        names = {ast.unparse(node).removeprefix("pa.types.") for node in attributes}
        return names & OF_KEY_TYPES

    assert broken(listing) == {}


def test_nothing_shipped_runs_text_as_code():
    """Tables and query logs come from others: none of their bytes may become code."""

    def unsafe(path):
        calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
        modules = {name.partition(".")[0] for name in imports(path)} & UNSAFE_MODULES
        shells = {"shell" for call in calls for word in call.keywords if word.arg == "shell"}
        return modules | shells | ({ast.unparse(call.func) for call in calls} & UNSAFE_CALLS)

    assert broken(unsafe) == {}


def test_no_exception_of_the_caller_is_ignored():
    """A time limit can be raised within any block: ``ignoring_errors`` tells it from an error."""

    def suppressed(path):
        calls = [node for node in ast.walk(parsed(path)) if isinstance(node, ast.Call)]
        return [c.lineno for c in calls if ast.unparse(c) in {"suppress(Exception)", BASE}]

    assert broken(suppressed) == {}


def test_the_pure_core_needs_no_spark():
    """Planning and committing can be imported and reasoned about alone."""
    pure = [name for name in map(module_name, SHIPPED) if is_pure(name)]
    code = (
        "import importlib, sys\n"
        "sys.modules.update(pyspark=None, py4j=None)\n"
        f"for name in {pure}: importlib.import_module(name)\n"
    )

    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )

    assert answer.stderr == ""
    assert answer.returncode == 0


def test_the_top_of_the_repository_is_fixed():
    """A new folder or file at the top is a decision, not an accident."""
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout")

    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout

    tops = {line.split("/")[0] for line in listed.splitlines()}
    assert {top for top in tops if not top.startswith(".")} == {
        *("pyproject.toml", "README.md"),
        *("zadapter", "backends", "tests", "integration"),
    }
