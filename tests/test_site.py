"""The documentation site splits long documents; ``.ci/run site`` builds it and checks links."""

import json
import re
import sys

import pytest

from tests.kit.checkout import ROOT
from tests.kit.documents import read

LONG = "integration/bench/README.md"


@pytest.fixture(scope="module")
def pages():
    """The benchmark, as the site has it."""
    sys.path.insert(0, str(ROOT / ".ci" / "site"))
    try:
        from long_documents import split
    finally:
        sys.path.pop(0)
    return split(read(LONG), "benchmark")


def plain(text):
    """Return lines without the level of headings."""
    return [re.sub(r"^#+ ", "", line) for line in text.splitlines()]


def test_no_line_of_a_long_document_is_lost(pages):
    """In their order, and every page begins with its title."""
    assert [line for text in pages.texts.values() for line in plain(text)] == plain(read(LONG))
    assert all(re.match(r"# \S", text) for text in pages.texts.values())


def test_the_menu_has_every_page(pages):
    """Sections of a section are below it."""
    shown = re.findall(r'"([\w-]+\.md)"', pages.navigation)

    assert [f"benchmark/{name}" for name in shown] == list(pages.texts)
    assert any(isinstance(each, dict) for each in json.loads(pages.navigation)["nav"])


def test_links_to_a_heading_lead_to_its_page(pages):
    """The heading of a page is its top."""
    assert pages.anchors["judging-a-lake"] == ("benchmark/judging-a-lake.md", "")
    inner = {name: found for name, found in pages.anchors.items() if found[1]}
    assert inner
    assert all(name == anchor for name, (_, anchor) in inner.items())
