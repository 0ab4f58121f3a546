"""Column names, as Spark writes and resolves them.

A column is the tuple of its parts, outermost first: ``a.b`` is ``("a", "b")``.
As text, parts are joined by dots, and a part that is no plain identifier stands in
backticks, which double inside (Spark's ``sql-ref-identifier``).
"""

import re
from collections.abc import Iterator

import pyarrow as pa

from zadapter.errors import UnknownColumnError, UsageError

Parts = tuple[str, ...]

_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
_PLAIN = re.compile(r"[^\W\d]\w*\Z")


def split(text: str) -> Parts:
    """Take a column's text apart.

    >>> split("a.`b.c`")
    ('a', 'b.c')

    Raises:
        UsageError: The text is no column name.
    """
    parts: list[str] = []
    position = 0
    while (match := _PART.match(text, position)) is not None:
        quoted, plain = match.groups()
        parts.append(quoted.replace("``", "`") if quoted else plain.strip())
        position = match.end()
        if position == len(text) and all(parts):
            return tuple(parts)
        if text[position : position + 1] != ".":
            break
        position += 1
    raise UsageError(f"{text!r} is no column name; write a, a.b or `odd name`")


def join(parts: Parts) -> str:
    """Write a column's text, the inverse of :func:`split`.

    >>> join(("a", "b.c"))
    'a.`b.c`'
    """
    return ".".join(p if _PLAIN.match(p) else f"`{p.replace('`', '``')}`" for p in parts)


def quote(parts: Parts) -> str:
    """Write a column with every part in backticks, for Spark SQL."""
    return ".".join(f"`{p.replace('`', '``')}`" for p in parts)


def leaves(schema: pa.Schema) -> Iterator[tuple[Parts, pa.DataType]]:
    """Yield every leaf column of *schema*, structs opened, depth first."""
    for field in schema:
        yield from _leaves((field.name,), field.type)


def _leaves(parts: Parts, type_: pa.DataType) -> Iterator[tuple[Parts, pa.DataType]]:
    if not pa.types.is_struct(type_):
        yield parts, type_
        return
    for field in type_:
        yield from _leaves((*parts, field.name), field.type)


def resolve(parts: Parts, schema: pa.Schema) -> tuple[Parts, pa.DataType]:
    """Find a column as Spark does, ignoring case, and return it as *schema* writes it.

    Raises:
        UnknownColumnError: *schema* has no such column.
        UsageError: Two columns differ from the name in case only.
    """
    fields: pa.Schema | pa.StructType = schema
    found: list[str] = []
    for depth, part in enumerate(parts):
        at = fields.get_field_index(part)
        # one look, not one at each of thousands of columns
        field = fields.field(at) if at >= 0 else _in_any_case(part, fields)
        if field is None:
            known = [join((*found, each.name)) for each in fields]
            raise UnknownColumnError(join(parts), known or [join((n,)) for n in schema.names])
        found.append(field.name)
        if depth + 1 == len(parts):
            return tuple(found), field.type
        fields = field.type if pa.types.is_struct(field.type) else pa.schema([])
    raise UnknownColumnError(join(parts), schema.names)


def _in_any_case(part: str, fields: pa.Schema | pa.StructType) -> pa.Field | None:
    """Return the field that is called *part* but for the case, None if there is none.

    Raises:
        UsageError: There are several.
    """
    same = [field for field in fields if field.name.lower() == part.lower()]
    if len(same) > 1:
        raise UsageError(f"column {part!r} is ambiguous: {', '.join(f.name for f in same)}")
    return same[0] if same else None
