"""The reference pages list all that users can call, with examples, and all that they can set."""

import ast
import inspect
import re
from contextlib import suppress

import pytest

import zadapter
from tests.kit.documents import DOCUMENTS, examples, read
from zadapter.planning.options import OPTIONS, default_of

API = [page for page in DOCUMENTS if page.startswith("zadapter/docs/reference/api/")]
SHOWN = [name for page in API for name in re.findall(r"^::: (\S+)$", read(page), re.MULTILINE)]
BEYOND_ROOT = "zadapter.spark.session"
FUNCTIONS = [
    name for name in sorted(zadapter.__all__) if inspect.isfunction(getattr(zadapter, name))
]


def test_every_public_name_has_its_place():
    """On one page of the API."""
    public = [f"zadapter.{name}" for name in zadapter.__all__]

    assert sorted(SHOWN) == sorted([*public, BEYOND_ROOT])


@pytest.mark.parametrize("name", [*(f"zadapter.{name}" for name in FUNCTIONS), BEYOND_ROOT])
def test_every_function_has_an_example(name):
    """In its docstring; ``integration/journeys/test_documents.py`` runs it."""
    assert len(FUNCTIONS) > 15
    assert any(f"{name}(" in block.text and block.runs for block in examples(name))


def test_the_page_of_keywords_has_every_option():
    """With its default: a literal, or words for None."""
    page = read("zadapter/docs/reference/keywords.md")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.MULTILINE))
    told = dict.fromkeys(rows)
    for name, default in rows.items():
        with suppress(ValueError, SyntaxError):
            told[name] = ast.literal_eval(default.strip("`") or "None")

    assert {name: told[name] for name in OPTIONS} == {name: default_of(name) for name in OPTIONS}
    assert set(rows) == {*OPTIONS, "table", "backend", "spark"}
