"""Texts of the code that users may read: all but its documentation."""

import ast
import re
from functools import cache

from tests.kit.checkout import ROOT


@cache
def texts():
    """Return the texts of all modules but docstrings."""
    found = []
    for path in [*(ROOT / "zadapter").rglob("*.py"), *(ROOT / "backends").rglob("*.py")]:
        nodes = [*ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        constants = [n for n in nodes if isinstance(n, ast.Constant) and id(n) not in documents]
        found += [each.value for each in constants if isinstance(each.value, str)]
    assert len(found) > 1_000
    return found


def test_messages_are_ascii():
    """Any terminal can print them; single characters are limits."""
    assert [text for text in texts() if not text.isascii() and len(text) > 1] == []


def test_no_message_guesses():
    """What is not known is not said."""
    guesses = re.compile(r"most likely|probably|perhaps|presumably|maybe|possibly", re.IGNORECASE)

    assert [text for text in texts() if guesses.search(text)] == []
