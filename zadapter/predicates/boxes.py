"""Boxes of a predicate: the ranges of columns outside of which no row matches.

They are what layouts are fitted to (:mod:`zadapter.layout.filters`). Boxes may be too large, never
too small, so parts of a condition without ranges are left out.
"""

from collections.abc import Sequence
from functools import reduce
from itertools import product

import pyarrow as pa

from zadapter.base.key_types import texts
from zadapter.base.names import NameParts
from zadapter.base.ranks import rank
from zadapter.layout import filters as layout
from zadapter.predicates.predicate import (
    And,
    Comparison,
    Constant,
    In,
    Not,
    Or,
    Predicate,
    StartsWith,
)

MANY = 64
"""Maximum number of boxes of a predicate, and of ranges of one column in a box."""
PAIRS = 2 * MANY
"""Maximum number of pairs of ranges that are intersected; of more, the longer list stays."""
FEW = 16
"""Maximum number of values of a ``NOT IN`` that has ranges."""
LAST, FIRST_SURROGATE, AFTER_SURROGATES = "\U0010ffff", 0xD800, 0xE000
"""The last character, and where the numbers that are no characters begin and end."""
_NEGATED = {"=": None, "<=>": None, "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_Range = tuple[pa.Scalar | None, pa.Scalar | None, bool, bool]
"""Lowest and highest value, and whether each of them belongs to the range."""
_Box = dict[NameParts, tuple[_Range, ...]]


def boxes(predicate: Predicate) -> tuple[layout.Box, ...]:
    """Return boxes that contain all rows for which *predicate* is true; none if it never is."""
    return tuple(map(_to_layout_box, _boxes(predicate)))


def _boxes(predicate: Predicate) -> list[_Box]:
    match predicate:
        case And(parts):
            return reduce(_both, map(_boxes, parts), [{}])
        case Or(parts):
            found = [box for part in parts for box in _boxes(part)]
            return found if len(found) <= MANY and all(found) else [{}]
        case Not(part):
            return _negate(part)
        case Constant(value):
            return [{}] if value else []
        case _:
            ranges = _ranges(predicate)
            return [{}] if ranges is None else [ranges]


def _ranges(leaf: Predicate) -> _Box | None:
    """Return the ranges of a predicate on one column; None: it has none."""
    match leaf:
        case Comparison(column, op, value):
            return {column: (_comparison_range(op, value),)}
        case In(column, values) if values:
            return {column: _list_ranges(values)}
        case StartsWith(column, prefix) if prefix:
            end = _after(prefix)
            return {column: ((pa.scalar(prefix), end and pa.scalar(end), True, False),)}
        case _:
            return None


def _after(prefix: str) -> str | None:
    """Return the first text after those that begin with a prefix; None if there is none.

    The next character skips the surrogates, which no text has.
    """
    stem = prefix.rstrip(LAST)
    if not stem:
        return None
    number = ord(stem[-1]) + 1
    return stem[:-1] + chr(AFTER_SURROGATES if number == FIRST_SURROGATE else number)


def _negate(part: Predicate) -> list[_Box]:
    match part:
        case And(parts):
            return _boxes(Or(tuple(map(Not, parts))))
        case Or(parts):
            return _boxes(And(tuple(map(Not, parts))))
        case Not(inner):
            return _boxes(inner)
        case Comparison() | In():
            return _negate_leaf(part)
        case Constant(value):
            return [{}] if value is False else []
        case _:
            return [{}]


def _negate_leaf(leaf: Comparison | In) -> list[_Box]:
    """Return boxes of the rows for which a comparison or a list is false."""
    match leaf:
        case Comparison(column, op, value) if _NEGATED[op]:
            return [{column: (_comparison_range(str(_NEGATED[op]), value),)}]
        case Comparison(column, "=", value):
            return [{column: _others(value)}]
        case In(has_null=True):
            return []
        case In(column, values) if 0 < len(values) <= FEW:
            return reduce(_both, ([{column: _others(value)}] for value in values))
        case _:
            return [{}]


def _others(value: pa.Scalar) -> tuple[_Range, ...]:
    """Return the ranges of all values but one; nulls are in none."""
    return _comparison_range("<", value), _comparison_range(">", value)


def _comparison_range(op: str, value: pa.Scalar) -> _Range:
    low = value if op in {"=", "<=>", ">", ">="} else None
    high = value if op in {"=", "<=>", "<", "<="} else None
    return low, high, op != ">", op != "<"


def _list_ranges(values: Sequence[pa.Scalar]) -> tuple[_Range, ...]:
    if len(values) <= MANY:
        return tuple((value, value, True, True) for value in values)
    array = pa.array(values, values[0].type)
    ranked = rank(array)
    return ((ranked.distinct[0], ranked.distinct[-1], True, True),)


def _both(left: list[_Box], right: list[_Box]) -> list[_Box]:
    """Return the intersections of boxes; of too many, those of one side alone."""
    if len(left) * len(right) > MANY:
        return min(left, right, key=len)
    return [box for pair in product(left, right) if (box := _intersection(*pair)) is not None]


def _intersection(left: _Box, right: _Box) -> _Box | None:
    """Return the intersection of two boxes; None if it is empty."""
    found = left | right
    for column in left.keys() & right.keys():
        if len(left[column]) * len(right[column]) > PAIRS:
            found[column] = max(left[column], right[column], key=len)
            continue
        pairs = product(left[column], right[column])
        met = tuple(each for pair in pairs if (each := _meet(*pair)) is not None)
        if not met:
            return None
        found[column] = met
    return found


def _meet(left: _Range, right: _Range) -> _Range | None:
    """Return the intersection of two ranges; None if it is empty."""
    low, with_low = _tighter((left[0], left[2]), (right[0], right[2]), lowest=True)
    high, with_high = _tighter((left[1], left[3]), (right[1], right[3]), lowest=False)
    if low is not None and high is not None:
        order = _order(low, high)
        if order > 0 or (order == 0 and not (with_low and with_high)):
            return None
    return low, high, with_low, with_high


def _tighter(
    one: tuple[pa.Scalar | None, bool], other: tuple[pa.Scalar | None, bool], *, lowest: bool
) -> tuple[pa.Scalar | None, bool]:
    """Return the end that leaves fewer values, and whether it belongs to the range."""
    if one[0] is None or other[0] is None:
        return other if one[0] is None else one
    order = _order(one[0], other[0])
    if order == 0:
        return one[0], one[1] and other[1]
    return one if (order > 0) == lowest else other


def _order(left: pa.Scalar, right: pa.Scalar) -> int:
    """Return a number below, equal to or above 0, as *left* is to *right* in Spark's order."""
    first, second = rank(pa.array([left, right], left.type)).ranks
    return int(first - second)


def _to_layout_box(box: _Box) -> layout.Box:
    closed = {
        (True, True): "both",
        (True, False): "left",
        (False, True): "right",
        (False, False): "neither",
    }
    return tuple(
        layout.Range(column, _format_bound(low), _format_bound(high), closed[with_low, with_high])
        for column, ranges in box.items()
        for low, high, with_low, with_high in ranges
    )


def _format_bound(value: pa.Scalar | None) -> str | None:
    return None if value is None else texts(pa.array([value], value.type))[0]
