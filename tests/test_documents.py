"""The documents fit the repository: links, names, commands and the picture of the packages.

``integration/journeys/test_documents.py`` runs their code.
"""

import ast
import importlib.util
import re
import shlex
from functools import cache
from importlib.metadata import metadata
from xml.etree import ElementTree as ET

import pytest
import typer
from click import Context

from tests.kit.checkout import ROOT
from tests.kit.documents import DOCUMENTS, SHELLS, blocks, read
from tests.test_architecture import (
    BACKENDS,
    PACKAGES,
    SHIPPED,
    imports,
    is_within,
    module_name,
    package_of,
)
from zadapter.backend.plugins import formats
from zadapter.cli.app import app
from zadapter.spark.compat.s3a import CONNECTORS

MOST_WORDS = 700
"""In README.md."""
PAGES = "zadapter/docs/"
MOST_WORDS_OF_A_PAGE = 1200
LANGUAGES = {
    *SHELLS,
    "cron",
    "dockerfile",
    "properties",
    "python",
    "sql",
    "text",
    "toml",
    "yaml",
}
SIDES = ("x", "y", "width", "height")
SVG = "{http://www.w3.org/2000/svg}"
PROGRAMS = {"coverage", "export", "pip", "pytest", "python", "zadapter"}
SOURCES = ("backends/", "integration/", "tests/", "zadapter/", *(f"{name}/" for name in BACKENDS))
WITH_GITHUB = [*DOCUMENTS, ".github/CONTRIBUTING.md", ".github/CHANGELOG.md"]
EVERY = [block for document in DOCUMENTS for block in blocks(document)]

documents = pytest.mark.parametrize("document", WITH_GITHUB)


def test_documents_lie_beside_what_they_are_about():
    """Each format, the core and the tests have one."""
    folders = {document.rpartition("/")[0] for document in DOCUMENTS}

    assert folders >= {"", "zadapter", "integration", *(f"backends/{name}" for name in BACKENDS)}


def test_the_readme_is_short():
    """What does not fit belongs to another document."""
    assert len(read("README.md").split()) <= MOST_WORDS


def test_every_document_is_linked():
    """From the README, so that a reader finds it; pages by their folder."""
    pages = {document for document in DOCUMENTS if document.startswith(PAGES)}
    folders = {page.split("/")[2] for page in pages if page.count("/") > PAGES.count("/")}

    linked = set(targets("README.md"))

    assert {f"{ROOT}/{document}" for document in DOCUMENTS[1:] if document not in pages} <= linked
    assert {f"{ROOT}/{PAGES}{folder}" for folder in folders} <= linked


@pytest.mark.parametrize("page", [each for each in DOCUMENTS if each.startswith(PAGES)])
def test_pages_are_short(page):
    """A page has one subject."""
    assert len(read(page).split()) <= MOST_WORDS_OF_A_PAGE


@documents
def test_links_lead_somewhere(document):
    """Files exist, and headings in them."""
    broken = [
        (target, anchor)
        for target, anchor in targets(document).values()
        if not target.exists() or (anchor and anchor not in anchors(target))
    ]

    assert broken == []


def prose_of(document):
    """Return a document without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", read(document), flags=re.MULTILINE | re.DOTALL)


def targets(document):
    """Return the files and anchors of relative links, by the file's full name and the link."""
    links = re.findall(r"\]\(([^)\s]+)\)", prose_of(document))
    found = {}
    for link in links:
        if "://" not in link:
            path, _, anchor = link.partition("#")
            target = ((ROOT / document).parent / path).resolve() if path else ROOT / document
            found[f"{target}#{anchor}" if anchor else str(target)] = target, anchor
    return found


def anchors(path):
    """Return the anchors that GitHub gives the headings of *path*."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@documents
def test_modules_and_files_exist(document):
    """Names in backticks: modules and what is in them, paths, tests."""
    prose = re.sub(r"``.*?``", "", prose_of(document))
    names = {re.sub(r"\(.*\)$", "", name) for name in re.findall(r"`([^`]+)`", prose)}

    assert [name for name in sorted(names) if not is_known(name)] == []


def is_known(name):
    """Tell whether *name* is none of the repository's, or exists."""
    if re.fullmatch(rf"({'|'.join(SOURCES)})[\w./-]*", name):
        return any((folder / name).exists() for folder in (ROOT, ROOT / "backends"))
    if re.fullmatch(r"test_\w+", name):
        return any(f"def {name}(" in text for text in sources("tests", "integration"))
    if re.fullmatch(rf"(zadapter|integration|{'|'.join(BACKENDS)})(\.[\w-]+)+", name):
        return is_name(name) or any(f'"{name}"' in text for text in sources("zadapter", "backends"))
    return True


@cache
def sources(*folders):
    """Return the texts of all modules of *folders*."""
    return [path.read_text() for folder in folders for path in (ROOT / folder).rglob("*.py")]


def is_name(name):
    """Tell whether *name* is a module, or defined in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        for root in (ROOT, ROOT / "backends"):
            place = root.joinpath(*parts[:length])
            if place.is_dir() and length == len(parts):
                return True
            path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
            if path.exists():
                return is_defined(parts[length:], ast.parse(path.read_text()))
    return False


def is_defined(names, scope):
    """Tell whether the first of *names* is in *scope*, the second in the first, and so on."""
    if not names:
        return True
    for node in scope.body:
        if names[0] in names_of(node):
            return len(names) == 1 or is_defined(names[1:], node)
    return False


def names_of(node):
    """Return what a statement defines, imports or, as ``__all__`` does, lists."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    every = list(ast.walk(node)) if isinstance(node, ast.Assign | ast.AnnAssign) else []
    listed = {each.value for each in every if isinstance(each, ast.Constant)}
    return listed | {each.id for each in every if isinstance(each, ast.Name)}


def test_the_picture_shows_the_imports():
    """An arrow for each import between packages that does not follow from others."""
    picture = ET.parse(ROOT / "zadapter/docs/pictures/packages.svg")
    boxes = {
        each.get("id"): {key: float(value) for key, value in each[0].items() if key in SIDES}
        for each in picture.iter(f"{SVG}g")
    }
    drawn = set()
    for path in picture.iter(f"{SVG}path"):
        if path.get("id"):
            start, _, end = path.get("id").partition("-")
            first, *_, last = points(path.get("d"))
            assert lies_on(first, boxes[start]) and lies_on(last, boxes[end])  # noqa: PT018
            drawn.add((start, end))
    loaded = {("backend", name) for name in BACKENDS}

    assert drawn == reduced(arrows()) | loaded


def points(path):
    """Return the points of a line in SVG's notation."""
    found, at = [], [0.0, 0.0]
    for command, numbers in re.findall(r"([MLHV])([\d. ]+)", path):
        given = [float(each) for each in numbers.split()]
        at = {"H": [given[0], at[1]], "V": [at[0], given[0]]}.get(command, given)
        found.append(at)
    return found


def lies_on(point, box):
    """Return whether a point lies on the border of a box."""
    across, down = point[0] - box["x"], point[1] - box["y"]
    within = 0 <= across <= box["width"] and 0 <= down <= box["height"]
    return within and (across in {0, box["width"]} or down in {0, box["height"]})


@pytest.mark.parametrize("package", [*PACKAGES, *BACKENDS])
def test_every_package_has_a_row(package):
    """In the table of its folder, with its job."""
    core = package in PACKAGES
    folder = "zadapter" if core else f"backends/{package}"
    name = f"zadapter.{package}" if core else f"{package}.backend"

    assert re.search(rf"^\| .*`{name}`.* \| .+ \|$", read(f"{folder}/README.md"), re.MULTILINE)


def arrows():
    """Return which packages of the core import which, and which of them the backends import."""
    found = {name: set() for name in (*PACKAGES, *BACKENDS)}
    for path in SHIPPED:
        module = module_name(path)
        here = package_of(module) if is_within(module, "zadapter") else module.split(".")[0]
        if here:
            names = {package_of(name) for name in imports(path) if is_within(name, "zadapter")}
            found[here] |= names - {here, ""}
    return found


def reduced(edges):
    """Return the edges that no longer path has the ends of."""

    @cache
    def reached(name):
        return set(edges[name]).union(*map(reached, edges[name]))

    return {
        (start, end)
        for start, ends in edges.items()
        for end in ends
        if not any(end in reached(other) for other in ends - {end})
    }


@pytest.mark.parametrize("block", EVERY, ids=str)
def test_blocks_are_of_a_known_kind(block):
    """Python compiles, also where it does not run; no command is of a kind that nobody checks."""
    assert block.language in LANGUAGES
    assert set(block.options) <= {"notest"}
    if block.language == "python":
        compile(block.text, str(block), "exec")
    if block.language in SHELLS:
        assert {command[0] for command in block.commands} <= PROGRAMS


@pytest.mark.parametrize("block", [each for each in EVERY if each.language in SHELLS], ids=str)
def test_commands_could_run(block):
    """Extras, modules, folders and options exist."""
    for program, *arguments in block.commands:
        if program == "pip":
            extras = re.fullmatch(r"\.\[([\w,]+)\]", arguments[-1])[1].split(",")
            assert set(extras) <= set(metadata("zadapter-spark").get_all("Provides-Extra"))
        elif program == "python":
            assert arguments[0] == "-m"
            module = arguments[1]
            package = importlib.util.find_spec(module).submodule_search_locations is not None
            assert importlib.util.find_spec(f"{module}.__main__" if package else module)
        elif program == "pytest":
            named = [each for each in arguments[:1] if not each.startswith("-")]
            assert all((ROOT / each).exists() for each in named)
        elif program == "zadapter":
            assert accepts(arguments)


def accepts(arguments):
    """Tell whether the command line of zadapter knows a command and its options."""
    group = typer.main.get_command(app)
    name, *rest = arguments
    if name.startswith("--"):
        return name in {option for param in group.params for option in param.opts}
    command = group.commands[name]
    return command.make_context(name, rest, parent=Context(group)) is not None


@documents
def test_commands_in_prose_could_run(document):
    """As those in blocks of code."""
    calls = re.findall(r"`zadapter (--[^`]+|\w+\s[^`]+)`", prose_of(document))

    assert all(accepts(shlex.split(call)) for call in calls)


def test_every_command_has_a_row_with_an_example():
    """In the table of the page on the command line."""
    page = read(f"{PAGES}reference/command-line.md")
    rows = re.findall(r"^\| `(\w+)` \| .+ \| `zadapter (\w+) ", page, re.MULTILINE)

    assert dict(rows) == {name: name for name in typer.main.get_command(app).commands}


def test_the_page_on_backends_quotes_the_toy():
    """Its functions are those of the module that passes the conformance suite."""
    toy = ast.parse(read("tests/toybackend/zadapter_toy.py"))
    known = {ast.dump(node) for node in ast.walk(toy) if isinstance(node, ast.FunctionDef)}
    python = [block for block in blocks("backends/README.md") if block.language == "python"]

    quoted = [
        node
        for block in python
        for node in ast.parse(block.text).body
        if isinstance(node, ast.FunctionDef)
    ]

    assert len(quoted) > 15
    assert [node.name for node in quoted if ast.dump(node) not in known] == []


def test_versions_of_packages_are_those_that_are_loaded():
    """Settings to copy have the coordinates that a session of zadapter gets."""
    loaded = {each for f in formats().values() if f.library for each in f.library.packages}
    texts = [block.text for block in EVERY if block.language == "properties"]

    named = {each for text in texts for each in re.findall(r"[\w.]+:[\w.-]+:[\d.]+", text)}

    assert named == loaded | {CONNECTORS[0].packages[0]}
    page = read(f"{PAGES}how-to/s3.md")
    assert [each.hadoop for each in CONNECTORS if each.hadoop not in page] == []
