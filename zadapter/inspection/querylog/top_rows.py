"""Sorts with a limit in Spark's optimised plans: queries for the first rows in a column's order."""

from dataclasses import dataclass
from typing import Any

from zadapter.inspection.query_log import Top
from zadapter.spark.jvm.scala import items

JavaObject = Any
_LIMITS = {"GlobalLimit", "LocalLimit"}


@dataclass(frozen=True, slots=True)
class TopRows:
    """Which rows of a node of a plan the nodes above it ask for; all, unless something is known."""

    limit: int | None = None
    """Maximum number of rows."""
    attribute: int | None = None
    """Number of the attribute in whose order these are the first; None: they are any rows."""
    descending: bool = False

    def below(self, jvm: JavaObject, node: JavaObject, kind: str) -> "TopRows":
        """Return which rows of its children a node asks for; *kind* is the node's name."""
        if kind in _LIMITS:
            limit = node.limitExpr()
            # the lower one of two limits has the rows of an offset between them, too
            return TopRows(int(limit.value()) if _is(limit, "Literal") else None)
        if self.limit is None:
            return self
        if kind == "Sort" and getattr(node, "global")():
            first = node.order().apply(0)
            return self._in_order(first.child(), "DESC" in str(first.direction().sql()))
        if kind == "Project" and self.attribute is not None:
            return self._below_projection(jvm, node)
        # a filter further above is not known, and nobody knows how many rows it leaves
        is_known = kind == "Filter" and node.child().children().isEmpty()
        return self if is_known or kind in {"Project", "Offset"} else TopRows()

    def _in_order(self, column: JavaObject, descending: bool) -> "TopRows":
        if not _is(column, "AttributeReference"):
            return TopRows()
        return TopRows(self.limit, int(column.exprId().id()), descending)

    def _below_projection(self, jvm: JavaObject, node: JavaObject) -> "TopRows":
        for each in items(jvm, node.projectList()):
            if int(each.exprId().id()) == self.attribute:
                return self._in_order(each.child() if _is(each, "Alias") else each, self.descending)
        return TopRows()

    def of_scan(self, jvm: JavaObject, scan: JavaObject) -> Top | None:
        """Return which rows of a scan are asked for; None: all of them."""
        if self.limit is None or self.attribute is None:
            return None
        for each in items(jvm, scan.output()):
            if int(each.exprId().id()) == self.attribute:
                return Top((str(each.name()),), self.limit, self.descending)
        return None


def _is(node: JavaObject, kind: str) -> bool:
    return str(node.getClass().getSimpleName()) == kind
