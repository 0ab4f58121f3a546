"""Pruning: selection of the files that may hold rows matching a predicate.

For every file, the set of truth values that the predicate may have on its rows is computed: a
subset of true, false and null that is never too small. The sets of comparisons follow from the
file's stats, and the sets of AND, OR and NOT from the sets of their parts. NOT IN, NOT LIKE and
similar forms need no rules of their own.

Errors are not truth values: a pruned file raises none, although ``1 / x`` might in ANSI mode.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import has_nan
from zadapter.base.names import NameParts
from zadapter.predicates.predicate import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from zadapter.table.column_bounds import Evidence, Mask, counts, gather, mask

_Leaf: TypeAlias = Comparison | In | StartsWith | IsNull | Constant | Unknown
_Step: TypeAlias = _Leaf | Literal["and", "or", "not"]

_BINARY = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}


@dataclass(frozen=True, slots=True, eq=False)
class May:
    """The truth values that a predicate may have on the rows of each file.

    A file without rows has none of them.
    """

    true: Mask
    false: Mask
    null: Mask

    def __and__(self, other: "May") -> "May":
        null = self.null & (other.null | other.true) | other.null & self.true
        return May(self.true & other.true, self.false | other.false, null)

    def __or__(self, other: "May") -> "May":
        return ~(~self & ~other)

    def __invert__(self) -> "May":
        return May(self.false, self.true, self.null)


def matching(predicate: Predicate, files: pa.Table) -> Mask:
    """Return which of *files* may hold rows that match *predicate*.

    Args:
        predicate: A predicate with columns as spelled in the table's schema.
        files: A file table, see :mod:`zadapter.table.file_stats`.
    """
    return may(predicate, files).true


def may(predicate: Predicate, files: pa.Table) -> May:
    """Return the truth values that *predicate* may have on the rows of each of *files*.

    Partition values take precedence over stats. Stats that are contradictory, or of another type
    than the compared value, exclude nothing.

    Args:
        predicate: A predicate with columns as spelled in the table's schema.
        files: A file table, see :mod:`zadapter.table.file_stats`.
    """
    leaves = _Leaves(files)
    stack: list[May] = []
    for step in _postfix(predicate):
        match step:
            case "and":
                stack.append(stack.pop() & stack.pop())
            case "or":
                stack.append(stack.pop() | stack.pop())
            case "not":
                stack.append(~stack.pop())
            case _:
                stack.append(leaves.may(step))
    held = counts(files, "rows") != 0
    return May(stack[0].true & held, stack[0].false & held, stack[0].null & held)


def _postfix(predicate: Predicate) -> Iterator[_Step]:
    """Yield leaves and connectives in postfix order, without recursion."""
    pending: list[Predicate | Literal["and", "or", "not"]] = [predicate]
    while pending:
        match pending.pop():
            case And(parts):
                pending += _chain(parts or (Constant(value=True),), "and")
            case Or(parts):
                pending += _chain(parts or (Constant(value=False),), "or")
            case Not(part):
                pending += ("not", part)
            case step:
                yield step


def _chain(
    parts: tuple[Predicate, ...], connective: Literal["and", "or"]
) -> Iterator[Predicate | Literal["and", "or"]]:
    """Yield *parts* in reverse, each but the first preceded by the connective."""
    for part in parts[:0:-1]:
        yield connective
        yield part
    yield parts[0]


@dataclass(frozen=True, slots=True, eq=False)
class _Leaves:
    """Evaluator of predicates on single columns over one file table."""

    files: pa.Table
    gathered: dict[tuple[NameParts, pa.DataType | None], Evidence] = field(default_factory=dict)

    def may(self, leaf: _Leaf) -> May:
        match leaf:
            case IsNull(column):
                evidence = self._evidence(column, None)
                return May(evidence.null, evidence.regular | evidence.nan, self._all(of=False))
            case StartsWith(column, prefix):
                return _starting(prefix.encode(), self._evidence(column, None))
            case In(column, values):
                type_ = values[0].type if values else None
                return _evaluate_list(leaf, self._evidence(column, type_))
            case Comparison(column, _, value):
                return _evaluate_comparison(leaf, self._evidence(column, value.type))
            case Constant(value):
                return May(*(self._all(of=value is truth) for truth in (True, False, None)))
            case Unknown():
                return May(*(self._all(of=True) for _ in range(3)))

    def _evidence(self, column: NameParts, type_: pa.DataType | None) -> Evidence:
        key = column, type_
        if key not in self.gathered:
            self.gathered[key] = gather(self.files, column, type_)
        return self.gathered[key]

    def _all(self, *, of: bool) -> Mask:
        return np.full(self.files.num_rows, of, dtype=np.bool_)


def _evaluate_comparison(leaf: Comparison, evidence: Evidence) -> May:
    if _is_nan(leaf.value):
        of_nan = leaf.op in {"=", "<=>", "<=", ">="}
        yes = np.full_like(evidence.null, leaf.op in {"<", "<="})
        no = ~yes
    else:
        of_nan = leaf.op in {">", ">="}
        yes, no = _compare_bounds(leaf.op, leaf.value, evidence)
    true = evidence.regular & yes | evidence.nan & of_nan
    false = evidence.regular & no | evidence.nan & (not of_nan)
    if leaf.op == "<=>":
        return May(true, false | evidence.null, np.zeros_like(true))
    return May(true, false, evidence.null)


def _compare_bounds(op: str, value: pa.Scalar, evidence: Evidence) -> tuple[Mask, Mask]:
    """Return whether *op* may be true, and whether it may be false, for a regular value."""
    low, high = evidence.low, evidence.high
    match op:
        case "<":
            return _holds(pc.less, low, value), _holds(pc.greater_equal, high, value)
        case "<=":
            return _holds(pc.less_equal, low, value), _holds(pc.greater, high, value)
        case ">":
            return _holds(pc.greater, high, value), _holds(pc.less_equal, low, value)
        case ">=":
            return _holds(pc.greater_equal, high, value), _holds(pc.less, low, value)
        case _:
            yes = _holds(pc.less_equal, low, value) & _holds(pc.greater_equal, high, value)
            return yes, _holds(pc.less, low, value) | _holds(pc.greater, high, value)


def _holds(compare: Callable[..., pa.Array], bound: pa.Array, value: pa.Scalar) -> Mask:
    """Compare bounds with a value; an unknown bound excludes nothing."""
    if bound.type != value.type:
        return np.ones(len(bound), dtype=np.bool_)
    return mask(compare(bound, value), default=True)


def _evaluate_list(leaf: In, evidence: Evidence) -> May:
    values = [value for value in leaf.values if not _is_nan(value)]
    has_nan = len(values) < len(leaf.values)
    yes, no = _among(values, evidence)
    true = evidence.regular & yes | evidence.nan & has_nan
    other = evidence.regular & no | evidence.nan & (not has_nan)
    if leaf.has_null:
        return May(true, np.zeros_like(true), evidence.null | other)
    if not leaf.values:  # Spark's settings decide whether null is in an empty list
        other |= evidence.null
    return May(true, other, evidence.null)


def _among(values: list[pa.Scalar], evidence: Evidence) -> tuple[Mask, Mask]:
    """Return whether a regular value may be among *values*, and whether it may not be."""
    low, high = evidence.low, evidence.high
    if not values or low.type != values[0].type:
        return np.full_like(evidence.null, bool(values)), np.ones_like(evidence.null)
    listed = pa.array(values, low.type)
    listed = listed.take(pc.sort_indices(listed))
    first = _first(listed, low)
    candidate = listed.take(pa.array(np.minimum(first, len(listed) - 1)))
    yes = (first < len(listed)) & mask(pc.less_equal(candidate, high), default=True)
    return yes, ~(yes & mask(pc.equal(low, high), default=False))


def _first(listed: pa.Array, low: pa.Array) -> npt.NDArray[np.int64]:
    """Return, for every file, the index of the first sorted value *listed* not below *low*."""
    start = np.zeros(len(low), dtype=np.int64)
    stop = np.full_like(start, len(listed))
    for _ in range(len(listed).bit_length()):
        middle = (start + stop) // 2
        value = listed.take(pa.array(np.minimum(middle, len(listed) - 1)))
        below = mask(pc.less(value, low), default=False) & (start < stop)
        start = np.where(below, middle + 1, start)
        stop = np.where(below, stop, middle)
    return start


def _starting(prefix: bytes, evidence: Evidence) -> May:
    """Compare strings by their bytes, in whose order strings with one prefix are adjacent."""
    if evidence.low.type not in _BINARY:
        return May(*(np.ones_like(evidence.null) for _ in range(3)))
    if not prefix:
        return May(evidence.regular, np.zeros_like(evidence.null), evidence.null)
    type_ = _BINARY[evidence.low.type]
    low, high = pc.cast(evidence.low, type_), pc.cast(evidence.high, type_)
    start = pa.scalar(prefix, type_)
    end = pa.scalar(prefix[:-1] + bytes([prefix[-1] + 1]), type_)  # UTF-8 has no byte 0xFF
    yes = _holds(pc.greater_equal, high, start) & _holds(pc.less, low, end)
    no = _holds(pc.less, low, start) | _holds(pc.greater_equal, high, end)
    return May(evidence.regular & yes, evidence.regular & no, evidence.null)


def _is_nan(value: pa.Scalar) -> bool:
    return has_nan(value.type) and math.isnan(value.as_py())
