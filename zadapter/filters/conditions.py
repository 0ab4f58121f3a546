"""Conditions as parsed trees, read into predicates.

What bounds cannot decide, or what Spark would decide by casting a column, becomes ``Unknown``.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import tzinfo

import pyarrow as pa
from sqlglot import exp

from zadapter.base.names import Parts, resolve
from zadapter.filters import literals
from zadapter.filters.predicate import (
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

_FLIPPED = {"=": "=", "<=>": "<=>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "<=>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_CLAUSES = {"this", "expression", "expressions", "low", "high", "negate", "table", "db", "catalog"}
_BARE_FUNCTIONS = {"localtimestamp", "user", "session_user", "current_user", "current_time"}
_NAN = exp.cast(exp.Literal.string("NaN"), exp.DataType.Type.DOUBLE)
_STRINGS = (pa.StringScalar, pa.LargeStringScalar)


def _operands(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield what a chain of one connective joins, however it is nested, without recursion."""
    pending = [node]
    while pending:
        found = pending.pop().unnest()
        if type(found) is type(node):
            pending += (found.args["expression"], found.args["this"])
        else:
            yield found


@dataclass(frozen=True, slots=True)
class Scope:
    """What names and times in a condition refer to."""

    schema: pa.Schema
    session: tzinfo | None
    """The zone of timestamps that name none; None if it is not known."""

    def check_columns(self, tree: exp.Expr) -> None:
        """Look all columns up, also those of functions.

        Raises:
            UnknownColumnError: There is no such column.
            UsageError: A name fits two columns.
        """
        lambdas = tree.find_all(exp.Lambda)
        bound = {name.name.lower() for node in lambdas for name in node.expressions}
        for node in tree.find_all(exp.Column, exp.Dot):
            parts = _parts(node)
            if parts and parts[0].lower() not in bound:
                self.resolve(parts)

    def resolve(self, parts: Parts) -> tuple[Parts, pa.DataType] | None:
        """Find a column; None for what is no column of its own, as an element of a map."""
        name = parts[0].lower()
        if name in _BARE_FUNCTIONS and name not in map(str.lower, self.schema.names):
            return None
        for depth in range(1, len(parts)):
            _, type_ = resolve(parts[:depth], self.schema)
            if pa.types.is_nested(type_) and not pa.types.is_struct(type_):
                return None
        return resolve(parts, self.schema)

    def column(self, node: exp.Expr) -> tuple[Parts, pa.DataType] | None:
        """Find the column that *node* is; None if it is anything else."""
        parts = _parts(node.unnest())
        return self.resolve(parts) if parts else None


def predicate(scope: Scope, node: exp.Expr) -> Predicate:
    """Read a condition; one with clauses beyond those that are read is Unknown."""
    node = node.unnest()
    read = _READERS.get(type(node))
    if read is None or any(node.args[key] for key in node.args.keys() - _CLAUSES):
        return Unknown(node.sql("spark"))
    found = read(scope, node) or Unknown(node.sql("spark"))
    return Not(found) if node.args.get("negate") else found


def _all_of(scope: Scope, node: exp.Expr) -> Predicate:
    return And(tuple(predicate(scope, part) for part in _operands(node)))


def _any_of(scope: Scope, node: exp.Expr) -> Predicate:
    return Or(tuple(predicate(scope, part) for part in _operands(node)))


def _negation(scope: Scope, node: exp.Expr) -> Predicate:
    return Not(predicate(scope, node.this))


def _constant(_: Scope, node: exp.Expr) -> Predicate:
    return Constant(None if isinstance(node, exp.Null) else bool(node.this))


def _flag(scope: Scope, node: exp.Expr) -> Predicate | None:
    return _compared(scope, "=", node, exp.true())


def _comparison(scope: Scope, node: exp.Expr) -> Predicate | None:
    found = _compared(scope, _OPERATORS[type(node)], node.this, node.expression)
    return Not(found) if found and isinstance(node, exp.NEQ | exp.NullSafeNEQ) else found


def _compared(scope: Scope, op: str, left: exp.Expr, right: exp.Expr) -> Predicate | None:
    found = scope.column(left)
    if found is None:
        found, op, right = scope.column(right), _FLIPPED[op], left
    if found is None:
        return None
    column, type_ = found
    if isinstance(right.unnest(), exp.Null):
        return IsNull(column) if op == "<=>" else Constant(None)
    value = literals.scalar(right, type_, scope.session)
    return None if value is None else Comparison(column, op, value)


def _between(scope: Scope, node: exp.Expr) -> Predicate:
    unknown = Unknown(node.sql("spark"))
    low = _compared(scope, ">=", node.this, node.args["low"])
    high = _compared(scope, "<=", node.this, node.args["high"])
    return And((low or unknown, high or unknown))


def _membership(scope: Scope, node: exp.Expr) -> Predicate | None:
    found = scope.column(node.this)
    if found is None or not node.expressions:
        return None
    column, type_ = found
    listed = [element.unnest() for element in node.expressions]
    nodes = [element for element in listed if not isinstance(element, exp.Null)]
    scalars = [literals.scalar(element, type_, scope.session) for element in nodes]
    values = tuple(value for value in scalars if value is not None)
    if len(values) < len(nodes) or _compared_as_text(nodes, values, type_):
        return None
    return In(column, values, has_null=len(nodes) < len(listed))


def _is(scope: Scope, node: exp.Expr) -> Predicate | None:
    if isinstance(node.expression, exp.Null):
        return _nullness(scope, node.this)
    is_truth = isinstance(node.expression, exp.Boolean)
    return _compared(scope, "<=>", node.this, node.expression) if is_truth else None


def _nullness(scope: Scope, node: exp.Expr) -> Predicate | None:
    if named := scope.column(node):
        return IsNull(named[0])
    found = predicate(scope, node)
    while isinstance(found, Not):
        found = found.part
    match found:
        case Comparison(op="<=>") | IsNull():
            return Constant(value=False)
        case Comparison(column) | StartsWith(column) | In(column, _, False):
            return IsNull(column)
        case _:
            return None


def _function(scope: Scope, node: exp.Expr) -> Predicate | None:
    match str(node.this).lower(), node.expressions:
        case "isnull", [argument]:
            return _nullness(scope, argument)
        case "isnotnull", [argument]:
            found = _nullness(scope, argument)
            return found and Not(found)
        case _:
            return None


def _not_a_number(scope: Scope, node: exp.Expr) -> Predicate | None:
    return _compared(scope, "<=>", node.this, _NAN)


def _text(scope: Scope, node: exp.Expr) -> tuple[Parts, pa.Scalar] | None:
    """Return the string column and the string that *node* is about, in this order."""
    found = scope.column(node.this)
    value = found and literals.scalar(node.expression, found[1], scope.session)
    return (found[0], value) if found and isinstance(value, _STRINGS) else None


def _starts_with(scope: Scope, node: exp.Expr) -> Predicate | None:
    found = _text(scope, node)
    return found and StartsWith(found[0], found[1].as_py())


def _like(scope: Scope, node: exp.Expr) -> Predicate | None:
    return _pattern(scope, node, "\\")


def _escaped_like(scope: Scope, node: exp.Expr) -> Predicate | None:
    like, escape = node.this, node.expression
    if type(like) is not exp.Like or not isinstance(escape, exp.Literal):
        return None
    found = _pattern(scope, like, escape.name)
    return Not(found) if found and like.args.get("negate") else found


def _pattern(scope: Scope, node: exp.Expr, escape: str) -> Predicate | None:
    found = _text(scope, node)
    cut = found and _cut(found[1].as_py(), escape)
    if not found or not cut:
        return None
    prefix, rest = cut
    if not rest:
        return Comparison(found[0], "=", pa.scalar(prefix, found[1].type))
    starts = StartsWith(found[0], prefix)
    return And((starts, Unknown(node.sql("spark")))) if rest.strip("%") else starts


def _parts(node: exp.Expr) -> Parts | None:
    """Return the names that *node* is made of, outermost first, if it is a column."""
    names: list[exp.Expr] = []
    while isinstance(node, exp.Dot):
        names.insert(0, node.expression)
        node = node.this
    if not isinstance(node, exp.Column):
        return None
    names = [*node.parts, *names]
    return (
        tuple(n.name for n in names) if all(isinstance(n, exp.Identifier) for n in names) else None
    )


def _compared_as_text(
    nodes: list[exp.Expr], values: tuple[pa.Scalar, ...], type_: pa.DataType
) -> bool:
    """Tell whether Spark without ANSI mode may turn a listed column into text, and differ so."""
    texts = [node for node in nodes if node.is_string]
    if not texts or not pa.types.is_temporal(type_):
        return False
    return (
        len(texts) < len(nodes)
        or not pa.types.is_date32(type_)
        or any(node.name != str(value.as_py()) for node, value in zip(nodes, values, strict=True))
    )


def _cut(pattern: str, escape: str) -> tuple[str, str] | None:
    """Cut a LIKE pattern into what stands before its first wildcard, unescaped, and the rest."""
    if len(escape) != 1 or escape in "%_":
        return None
    mark = re.escape(escape)
    plain = re.match(rf"(?:[^%_{mark}]|{mark}[%_{mark}])*", pattern)
    rest = pattern[plain.end() :] if plain else pattern
    if not plain or rest.startswith(escape):
        return None
    return re.sub(rf"{mark}([%_{mark}])", r"\1", plain[0]), rest


_READERS: dict[type[exp.Expr], Callable[[Scope, exp.Expr], Predicate | None]] = {
    exp.And: _all_of,
    exp.Or: _any_of,
    exp.Not: _negation,
    exp.Boolean: _constant,
    exp.Null: _constant,
    exp.Column: _flag,
    exp.Dot: _flag,
    exp.Between: _between,
    exp.In: _membership,
    exp.Is: _is,
    exp.IsNan: _not_a_number,
    exp.Like: _like,
    exp.Escape: _escaped_like,
    exp.StartsWith: _starts_with,
    exp.Anonymous: _function,
    **dict.fromkeys(_OPERATORS, _comparison),
}
