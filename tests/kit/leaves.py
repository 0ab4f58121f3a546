"""What conditions compare."""

import pyarrow as pa

from zadapter.predicates.predicate import And, Comparison, IsNull, Not


def leaves(predicate):
    """What a condition compares, without what Spark adds: that columns are not null."""
    if isinstance(predicate, And):
        return [leaf for part in predicate.parts for leaf in leaves(part)]
    added = isinstance(predicate, Not) and isinstance(predicate.part, IsNull)
    return [] if added else [predicate]


def is_(column, op, value, type_):
    """A comparison."""
    return Comparison((column,), op, pa.scalar(value, type_))
