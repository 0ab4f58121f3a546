"""Who may import whom, and how large things may grow."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHIPPED = sorted([*ROOT.glob("zadapter/**/*.py"), *ROOT.glob("backends/**/*.py")])
EVERYTHING = sorted([*SHIPPED, *ROOT.glob("tests/**/*.py"), *ROOT.glob("integration/**/*.py")])

SPARK = ("pyspark", "py4j")
PACKAGES = (
    *("releases", "base", "layout", "table", "filters", "planning", "overlap", "pictures"),
    *("backend", "recovery", "reports", "insight", "zvalues"),
    *("spark", "querylog", "arguments", "advice", "rewrite", "tables", "inspection"),
    *("migration", "testing", "cli"),
)
"""The packages of the core, each of which imports only those before it; errors belong to base."""
PURE = PACKAGES[: PACKAGES.index("spark")]
"""The packages that need no Spark, except for their modules whose names say so."""
BACKENDS = ("zadapter_delta", "zadapter_iceberg", "zadapter_parquet")
FOR_BACKENDS = ("releases", "base", "layout", "table", "errors", "testing")
"""What a backend may import of the core."""
FEW = 12
"""Modules in a folder."""
UNSAFE_MODULES = {"cloudpickle", "dill", "marshal", "pickle", "shelve"}
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
    return "base" if package == "errors" else package


def is_pure(module: str) -> bool:
    """Tell whether *module* belongs to the part of the core that needs no Spark."""
    if not is_within(module, "zadapter"):
        return False
    mixed = package_of(module) in {"releases", "zvalues"}
    named = module.rpartition(".")[2].startswith("spark_") and mixed
    return not named and package_of(module) in {"", *PURE}


def running_code(node: ast.AST) -> Iterator[ast.AST]:
    """Walk *node*, but for what only type checkers read."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield from running_code(child)


def imports(path: Path) -> set[str]:
    """Return what *path* imports; ``from a import b`` counts as ``a.b``."""
    found: set[str] = set()
    for node in running_code(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def shown(path: Path) -> str:
    """Name a test case after its file."""
    return str(path.relative_to(ROOT))


modules = pytest.mark.parametrize("path", SHIPPED, ids=shown)


@pytest.mark.parametrize("path", EVERYTHING, ids=shown)
def test_modules_and_functions_stay_small(path):
    """If this fails, find the second noun hiding in the module, the second verb in the function."""
    text = path.read_text(encoding="utf-8")
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    long = [
        node.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, functions) and node.end_lineno - node.lineno + 1 > 60
    ]

    assert len(text.splitlines()) <= 300
    assert long == []


@modules
def test_packages_import_only_those_before_them(path):
    """The order of the packages is the architecture; a cycle has no place in it."""
    module = module_name(path)
    if not is_within(module, "zadapter") or module == "zadapter":
        return  # the door imports what users ask for
    before = PACKAGES[: PACKAGES.index(package_of(module)) + 1]

    others = {package_of(name) for name in imports(path) if is_within(name, "zadapter")}

    assert others <= {"", *before}


@modules
def test_arrows_point_inwards(path):
    """The pure core knows no Spark, the core knows no backend, a backend knows values only."""
    module, imported = module_name(path), imports(path)
    in_core = is_within(module, "zadapter")

    backends = [name for name in imported if name.startswith("zadapter_")]
    assert in_core or all(is_within(name, module.partition(".")[0]) for name in backends)
    assert not (in_core and backends)
    if is_pure(module):
        assert not [name for name in imported if is_within(name, *SPARK)]
    if is_within(module, "zadapter.cli"):
        assert not [name for name in imported if is_within(name, *SPARK, "zadapter.spark")]
    if not in_core:
        values = [f"zadapter.{package}" for package in FOR_BACKENDS]
        core = [name for name in imported if is_within(name, "zadapter")]
        assert all(is_within(name, *values) for name in core)


@pytest.mark.parametrize("backend", BACKENDS)
def test_packages_of_a_backend_have_no_cycle(backend):
    """What one of them imports, directly or not, never imports it."""
    arrows: dict[str, set[str]] = {}
    for path in (ROOT / "backends" / backend).rglob("*.py"):
        here = package_of(module_name(path))
        there = {package_of(name) for name in imports(path) if is_within(name, backend)}
        arrows.setdefault(here, set()).update(there - {here})

    assert list(TopologicalSorter(arrows).static_order())


@pytest.mark.parametrize("folder", sorted({path.parent for path in EVERYTHING}), ids=shown)
def test_folders_stay_small(folder):
    """If this fails, find the package that hides among the modules."""
    assert len([path for path in folder.glob("*.py") if path.stem != "__init__"]) <= FEW


@pytest.mark.parametrize("path", EVERYTHING, ids=shown)
def test_backends_is_a_folder_and_no_package(path):
    """In an installation there is no ``backends``: what imports it works in a checkout only."""
    assert not [name for name in imports(path) if is_within(name, "backends")]


@modules
def test_nothing_shipped_runs_text_as_code(path):
    """Tables and query logs come from others: none of their bytes may become code."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    shells = [call for call in calls for word in call.keywords if word.arg == "shell"]

    assert not {name.partition(".")[0] for name in imports(path)} & UNSAFE_MODULES
    assert not {ast.unparse(call.func) for call in calls} & UNSAFE_CALLS
    assert shells == []


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
