"""Filters as Spark's physical plans show them, as conditions in SQL.

The plans show values without quotes and without types. A value gets the type of the column that it
is compared with, and times are read in the session's time zone. In a list of texts, a comma
separates two values, so texts with commas are misread there. Conjuncts that cannot be read are left
out, which makes the condition wider: such as ``INSET``, a list without parentheses.
"""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from zadapter.inspection.querylog.column_conditions import Columns, join_conditions

_COMPARES = {"EqualTo": "=", "EqualNullSafe": "<=>", "GreaterThan": ">", "LessThan": "<",
             "GreaterThanOrEqual": ">=", "LessThanOrEqual": "<="}  # fmt: skip
_NAMES = (*_COMPARES, "In", "IsNull", "IsNotNull", "And", "Or", "Not", "StringStartsWith",
          "StringEndsWith", "StringContains", "AlwaysTrue", "AlwaysFalse")  # fmt: skip
_NAMED = rf"(?:{'|'.join(_NAMES)})\("
_FILTER = re.compile(rf"({'|'.join(_NAMES)})\((.*)\)", re.DOTALL)
_NEXT = re.compile(rf", (?={_NAMED})")
_SIDE = re.compile(rf",(?={_NAMED})")
_ARGUMENTS = re.compile(r"((?:`(?:[^`]|``)*`|[^,`])+)(?:, ?(.*))?", re.DOTALL)
_LONGEST = 20_000
"""Characters of a filter that is read. Longer ones are lists of values, mostly."""

_COLUMN = r"([^\s()]+?)#L?"
"""A column; the number of the attribute is removed."""
_SPARK: Mapping[str, str] = {
    rf"isnotnull\({_COLUMN}\)": "IS NOT NULL",
    rf"isnull\({_COLUMN}\)": "IS NULL",
}
_COMPARED = re.compile(rf"\({_COLUMN} (=|<=>|<|<=|>|>=) ([^#]*)\)", re.DOTALL)
_LISTED = re.compile(rf"(NOT )?{_COLUMN} IN ?\(([^#]*?)\)", re.DOTALL)


def convert_pushed_filters(text: str, columns: Columns) -> str:
    """Convert the data source filters of a scan, ``[IsNotNull(a), EqualTo(a,1)]``."""
    inner = text.strip()[1:-1]
    if not inner or len(inner) > _LONGEST:
        return join_conditions([])
    return join_conditions(
        [_Pushed.of(part, columns).read(0, len(part)) for part in _NEXT.split(inner)]
    )


@dataclass(frozen=True, slots=True)
class _Pushed:
    """A data source filter, and where the sides of its conjunctions and disjunctions meet.

    Attributes:
        text: The filter.
        columns: The table's columns.
        depth: Number of open parentheses before each character.
        sides: Commas between two filters, in order, by the depth.
    """

    text: str
    columns: Columns
    depth: Sequence[int]
    sides: Mapping[int, Sequence[int]]

    @classmethod
    def of(cls, text: str, columns: Columns) -> "_Pushed":
        """Find the commas of a filter."""
        steps = ((character == "(") - (character == ")") for character in text)
        depth, sides = list(accumulate(steps, initial=0)), defaultdict[int, list[int]](list)
        for comma in _SIDE.finditer(text):
            sides[depth[comma.start()]].append(comma.start())
        return cls(text, columns, depth, sides)

    def read(self, start: int, end: int) -> str | None:
        """Convert a part of the text; the result is None if it cannot be read."""
        match = _FILTER.fullmatch(self.text, start, end)
        if match is None:
            return None
        name = match[1]
        if name in {"And", "Or"}:
            return self._convert_chain(name, start, end)
        if name == "Not":
            child = self.read(*match.span(2))
            return None if child is None else f"NOT ({child})"
        if name.startswith("Always"):
            return name.removeprefix("Always").upper()
        return _leaf(name, match[2], self.columns)

    def _convert_chain(self, name: str, start: int, end: int) -> str | None:
        """Convert a chain of conjunctions or of disjunctions, which nest hundreds of levels."""
        pending, found = [(start, end)], list[str]()
        while pending:
            part = pending.pop()
            match = _FILTER.fullmatch(self.text, *part)
            if match is not None and match[1] == name:
                first, last = match.span(2)
                comma = self._comma(first, last)
                if comma is None:
                    return None
                pending += [(comma + 1, last), (first, comma)]
            elif (read := self.read(*part)) is not None:
                found.append(f"({read})")
            else:
                return None
        return f" {name.upper()} ".join(found)

    def _comma(self, start: int, end: int) -> int | None:
        """Return the comma between two sides; None: a value has a single parenthesis."""
        commas = self.sides.get(self.depth[start], ())
        first, behind = bisect_left(commas, start), bisect_left(commas, end)
        return commas[first] if behind - first == 1 else None


def _leaf(name: str, inner: str, columns: Columns) -> str | None:
    match = _ARGUMENTS.fullmatch(inner)
    if match is None or _SIDE.search(inner):
        return None  # the parenthesis belongs to another filter
    column, value = match.groups()
    if name in {"IsNull", "IsNotNull"}:
        return f"{columns.name(column)} IS {'NOT ' if name == 'IsNotNull' else ''}NULL"
    if value is None or columns.type_of(column) == "binary":
        return None
    if name in _COMPARES:
        return columns.compare(column, _COMPARES[name], value)
    if name == "In":
        return columns.compare_list(column, _split_values(value.strip("[]")))
    return columns.starts(column, value) if name == "StringStartsWith" else None


def _split_values(text: str) -> list[str]:
    return [value.strip() for value in text.split(",") if value.strip() not in {"", "null"}]


def partition(text: str, columns: Columns) -> str:
    """Convert the partition filters of a scan, ``[isnotnull(a#), (a# = 1)]``."""
    inner = text.strip()[1:-1]
    if not inner or len(inner) > _LONGEST:
        return join_conditions([])
    return join_conditions([_expression(part, columns) for part in _parts(inner, ", ")])


def _expression(text: str, columns: Columns) -> str | None:
    """Convert an expression; the result is None if it cannot be read."""
    for pattern, test in _SPARK.items():
        match = re.fullmatch(pattern, text)
        if match:
            return f"{columns.name(match[1])} {test}"
    for word in (" AND ", " OR "):
        sides = _parts(text[1:-1], word) if text.startswith("(") else []
        if len(sides) > 1:
            read = [_expression(side, columns) for side in sides]
            return None if None in read else word.join(f"({side})" for side in read)
    if match := _COMPARED.fullmatch(text):
        return columns.compare(match[1], match[2], match[3])
    if match := _LISTED.fullmatch(text):
        return columns.compare_list(match[2], _split_values(match[3]), negated=bool(match[1]))
    if text.startswith("NOT "):
        child = _expression(text.removeprefix("NOT "), columns)
        return None if child is None else f"NOT ({child})"
    return None


def _parts(text: str, separator: str, quotes: str = "") -> list[str]:
    """Split a text at separators outside of parentheses and quotes."""
    depth, start, quoted, found = 0, 0, False, list[str]()
    for at, character in enumerate(text):
        quoted ^= character in quotes
        depth += 0 if quoted else (character == "(") - (character == ")")
        if depth == 0 and not quoted and text.startswith(separator, at):
            found.append(text[start:at])
            start = at + len(separator)
    return [*found, text[start:]]


def convert_iceberg_filters(text: str, columns: Columns) -> str:
    """Convert the filters of Iceberg's scans, ``a IS NOT NULL, a = 1``.

    They are SQL, except that dates are days and times are microseconds since 1970.
    """
    return join_conditions(
        [_moments(part, columns) for part in _parts(text, ", ", "'") if part.strip()]
    )


def _moments(text: str, columns: Columns) -> str:
    def replace(match: re.Match[str]) -> str:
        made = _FROM_NUMBER.get(columns.type_of(match[1]))
        return match[0] if made is None else match[1] + match[2] + re.sub(r"-?\d+", made, match[3])

    return _NUMBERS.sub(replace, text)


_NUMBERS = re.compile(
    r"([\w.`]+)( (?:=|!=|<=|>=|<|>) | (?:NOT )?IN (?=\())(-?\d+\b|\(-?\d+(?:, -?\d+)*\))"
)
_FROM_NUMBER: Mapping[str, Callable[[re.Match[str]], str]] = {
    "date": lambda match: f"date_from_unix_date({match[0]})",
    "timestamp": lambda match: f"timestamp_micros({match[0]})",
    "timestamp_ntz": lambda match: (
        f"timestampadd(MICROSECOND, {match[0]}L, TIMESTAMP_NTZ '1970-01-01')"
    ),
}
