"""The documentation site splits long documents; ``.ci/run site`` builds it and checks links."""

import json
import re
import sys
from importlib import import_module
from types import SimpleNamespace

import pytest

from tests.kit.checkout import ROOT
from tests.kit.documents import read

LONG = "integration/bench/README.md"


def of_the_site(module):
    """Return a module of the folder of the site."""
    sys.path.insert(0, str(ROOT / ".ci" / "site"))
    try:
        return import_module(module)
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def pages():
    """The benchmark, as the site has it."""
    return of_the_site("long_documents").split(read(LONG), "benchmark")


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


@pytest.mark.parametrize(
    ("tag", "refused"),
    [
        ('<script async src="https://example.com/x.js"></script>', True),
        ('<link rel="stylesheet" href="//example.com/x.css">', True),
        ("<pre class=mermaid><code>graph</code></pre>", True),
        ('<link href="https://example.com/x" rel="canonical">', False),
        ('<script src="../assets/x.js"></script><a href="https://example.com">x</a>', False),
    ],
)
def test_pages_load_nothing_from_other_hosts(tag, refused):
    """Links may lead elsewhere; what the page needs comes with it."""
    page = SimpleNamespace(file=SimpleNamespace(src_uri="start.md"))
    check = of_the_site("hooks").on_post_page

    if refused:
        with pytest.raises(ValueError, match=r"start\.md loads from another host"):
            check(tag, page, None)
    else:
        assert check(tag, page, None) == tag
