"""A notebook: the first cells of the start page, and what each of them shows."""

import re

import nbformat
import pytest
from nbclient import NotebookClient

from integration.journeys.conftest import User
from tests.kit.documents import blocks

JAVA = re.compile(r"^\s+at [\w.$]+\(|\b(WARN|ERROR|INFO) \w+:|Ivy|log4j|:: \w+", re.MULTILINE)
"""What Java's stack traces, its log and its resolver of packages look like."""
MISTAKE = 'zadapter.optimize("lake/events", by="user_ids")'


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """The outputs of the cells, by their code: two blocks of the start page, and what follows."""
    user = User(tmp_path_factory.mktemp("notebook"))
    start = [each.text for each in blocks("zadapter/docs/start.md") if each.language == "python"][
        :2
    ]
    codes = [*start, "plan", "report", MISTAKE]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in codes])
    made.cells[-1].metadata["tags"] = ["raises-exception"]
    client = NotebookClient(made, timeout=None, resources={"metadata": {"path": str(user.folder)}})
    client.execute(env=user.environment())
    return {cell.source: cell.outputs for cell in made.cells}


def streams(outputs):
    """Return all text that is printed below a cell."""
    return "".join(each.text for each in outputs if each.output_type == "stream")


@pytest.mark.slow
def test_the_cells_of_the_start_page(cells):
    """The table is there, and its plan was printed."""
    *_, printing = [code for code in cells if "print(plan)" in code]

    assert "data scanned" in streams(cells[printing])


@pytest.mark.parametrize("name", ["plan", "report"])
def test_a_result_is_the_last_expression(cells, name):
    """It shows the same facts as when it is printed, and no more."""
    (shown,) = cells[name]

    assert shown.output_type == "execute_result"
    text = shown.data["text/plain"]
    assert "data scanned" in text
    assert max(map(len, text.splitlines())) < 100


def test_an_error_ends_with_one_sentence(cells):
    """Its cell has a traceback of Python, and none of Java."""
    (error,) = [each for each in cells[MISTAKE] if each.output_type == "error"]

    assert error.ename == "UnknownColumnError"
    assert "did you mean 'user_id'?" in error.evalue
    assert not JAVA.search(error.evalue)


@pytest.mark.parametrize("place", range(5))
def test_nothing_of_java_is_shown(cells, place):
    """Neither its log, nor its stack traces, nor what resolves packages."""
    assert not JAVA.search(streams([*cells.values()][place]))
