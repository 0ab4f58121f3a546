"""Columns and values of conditions in Spark's SQL, by the schema of the table."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import types as T  # noqa: N812

from zadapter.base.names import quote, split
from zadapter.errors import UsageError

ALL = "TRUE"
"""A condition that is true for every row."""


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of a table."""

    schema: T.StructType

    def type_of(self, column: str) -> str:
        """Return the type of a column as DDL; empty if there is no such column."""
        found: T.DataType = self.schema
        try:
            parts = split(column)
        except UsageError:
            return ""
        for part in parts:
            fields = found.fields if isinstance(found, T.StructType) else []
            same = [field for field in fields if field.name.lower() == part.lower()]
            if len(same) != 1:
                return ""
            found = same[0].dataType
        return found.simpleString()

    def name(self, column: str) -> str:
        """Return a column in backticks."""
        try:
            return quote(split(column))
        except UsageError:
            return quote((column,))

    def value(self, column: str, text: str) -> str:
        """Return a value, given as text, in the type of the column that it is compared with."""
        type_ = self.type_of(column) or "string"
        literal = "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return literal if type_ == "string" else f"CAST({literal} AS {type_})"

    def compare(self, column: str, operator: str, text: str) -> str:
        """Return a comparison of a column with a value."""
        return f"{self.name(column)} {operator} {self.value(column, text)}"

    def compare_list(self, column: str, texts: Sequence[str], *, negated: bool = False) -> str:
        """Return a comparison of a column with a list of values; NULL is not among them."""
        values = ", ".join(self.value(column, text) for text in texts)
        return f"{self.name(column)} {'NOT ' if negated else ''}IN ({values or 'NULL'})"

    def starts(self, column: str, prefix: str) -> str:
        """Return a condition on the beginning of texts."""
        return f"startswith({self.name(column)}, {self.value(column, prefix)})"


def join_conditions(conditions: Sequence[str | None]) -> str:
    """Return the conjunction of conditions; None is one that cannot be read."""
    return " AND ".join(f"({part})" for part in conditions if part is not None) or ALL
