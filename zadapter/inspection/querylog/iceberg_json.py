"""Expressions of Iceberg in JSON, as its REST specification defines them, as conditions in SQL."""

import json
import re
from collections.abc import Mapping
from typing import Any

from zadapter.inspection.querylog.column_conditions import Columns

HIDDEN = "values that Iceberg's report hides"
"""Reason why an entry is not used: scans report ``(hash-1b2c)`` and the like for values."""
_OPERATORS = {"eq": "=", "not-eq": "<>", "lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">="}
_TESTS = {
    "is-null": "{} IS NULL",
    "not-null": "{} IS NOT NULL",
    "is-nan": "isnan({})",
    "not-nan": "NOT isnan({})",
}
_HIDDEN = re.compile(
    r"\((\d+-digit-(int|float|decimal)|hash-[0-9a-f]+|variant|unknown|(date|time|timestamp)"
    r"(-(today|about-now|\d+-\w+(-\w+)*|from-now))?)\)"
)


class HiddenValueError(ValueError):
    """The report has a placeholder instead of a value."""


def condition(text: str, columns: Columns) -> str:
    """Convert an expression to a condition; parts that cannot be converted are left out.

    Raises:
        HiddenValueError: Nothing is left, since values are hidden.
        ValueError: The text is not an expression.
    """
    lost: list[str] = []
    found = _convert(json.loads(text), columns, lost)
    if found is None and any(map(_HIDDEN.fullmatch, lost)):
        raise HiddenValueError(HIDDEN)
    return found or "TRUE"


def _convert(node: Any, columns: Columns, lost: list[str]) -> str | None:
    """Convert a node; the result is None if it cannot be converted."""
    if isinstance(node, bool):
        return str(node).upper()
    if not isinstance(node, Mapping):
        raise ValueError(f"{node!r} is not an expression of Iceberg")  # noqa: TRY004 - of a text
    kind = str(node.get("type"))
    if kind in {"true", "false"}:
        return kind.upper()
    if kind in {"and", "or"}:
        sides = [_convert(node[side], columns, lost) for side in ("left", "right")]
        known = [f"({side})" for side in sides if side is not None]
        if kind == "and":
            return " AND ".join(known) or None
        return " OR ".join(known) if len(known) == len(sides) else None
    if kind == "not":
        # what was left out of a conjunction would make its negation narrower
        before = len(lost)
        child = _convert(node["child"], columns, lost)
        return None if child is None or len(lost) > before else f"NOT ({child})"
    leaf = _leaf(kind, node, columns, lost)
    if leaf is None:
        lost.append(kind)
    return leaf


def _leaf(kind: str, node: Mapping[str, Any], columns: Columns, lost: list[str]) -> str | None:
    term = node.get("term")
    if isinstance(term, Mapping) and term.get("type") == "reference":
        term = term.get("term")
    if not isinstance(term, str):
        return None  # a transform of a column
    if kind in _TESTS:
        return _TESTS[kind].format(columns.name(term))
    given = node.get("values") if kind in {"in", "not-in"} else [node.get("value")]
    texts = [_format_value(value) for value in given] if isinstance(given, list) else []
    placeholders = [text for text in texts if _HIDDEN.fullmatch(text)]
    lost += placeholders
    return None if placeholders or not texts else _convert_comparison(kind, term, texts, columns)


def _convert_comparison(kind: str, term: str, texts: list[str], columns: Columns) -> str | None:
    if kind in _OPERATORS:
        return columns.compare(term, _OPERATORS[kind], texts[0])
    if kind in {"in", "not-in"}:
        return columns.compare_list(term, texts, negated=kind == "not-in")
    if kind in {"starts-with", "not-starts-with"}:
        return f"{'NOT ' if kind.startswith('not') else ''}{columns.starts(term, texts[0])}"
    return None


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping) and "value" in value:
        value = value["value"]
    return str(value).lower() if isinstance(value, bool) else str(value)
