"""Predicates written with Python operators on columns, as in Spark's ``Column``."""

import math
from datetime import datetime, timezone
from decimal import Decimal

import pyarrow as pa

from zadapter.predicates.predicate import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
    Unknown,
)


class Condition:
    """Predicate that supports ``&``, ``|`` and ``~``."""

    def __init__(self, predicate):
        self.predicate = predicate

    def __and__(self, other):
        return Condition(And((self.predicate, other.predicate)))

    def __or__(self, other):
        return Condition(Or((self.predicate, other.predicate)))

    def __invert__(self):
        return Condition(Not(self.predicate))


class Column(Condition):
    """Column to compare; alone, it is a boolean predicate."""

    __hash__ = None

    def __init__(self, parts, type_):
        self.parts, self.type = parts, type_

    def __getattr__(self, name):
        return self[name]

    def __getitem__(self, name):
        return Column((*self.parts, name), self.type.field(name).type)

    @property
    def predicate(self):
        return (self == True).predicate  # noqa: E712 - the operator makes a predicate

    def _is(self, op, value):
        if value is None:
            return Condition(IsNull(self.parts) if op == "<=>" else Constant(None))
        return Condition(Comparison(self.parts, op, self._scalar(value)))

    def _scalar(self, value):
        if isinstance(value, str) and pa.types.is_timestamp(self.type):
            value = datetime.fromisoformat(value)
            value = value.replace(tzinfo=timezone.utc if self.type.tz else None)
        return pa.scalar(value, self.type)

    def __eq__(self, value):
        return self._is("=", value)

    def __ne__(self, value):
        return ~self._is("=", value)

    def __lt__(self, value):
        return self._is("<", value)

    def __le__(self, value):
        return self._is("<=", value)

    def __gt__(self, value):
        return self._is(">", value)

    def __ge__(self, value):
        return self._is(">=", value)

    def same(self, value):
        """Compare with ``<=>``."""
        return self._is("<=>", value)

    def isin(self, *values):
        """Compare with ``IN``."""
        known = tuple(self._scalar(value) for value in values if value is not None)
        return Condition(In(self.parts, known, has_null=len(known) < len(values)))

    def isnull(self):
        """Compare with ``IS NULL``."""
        return Condition(IsNull(self.parts))

    def startswith(self, prefix):
        """Compare with ``LIKE 'prefix%'``."""
        return Condition(StartsWith(self.parts, prefix))


def read(text, **columns):
    """Evaluate *text*, a Python expression over columns given by type, to a predicate."""
    names = {name: Column((name,), type_) for name, type_ in columns.items()}
    return eval(text, {**KNOWN, **names, "table": names}).predicate


KNOWN = {
    "nan": math.nan,
    "Decimal": Decimal,
    "true": Condition(Constant(value=True)),
    "null": Condition(Constant(None)),
    "unknown": Condition(Unknown("anything")),
}
