"""Column names in Spark's notation, and their resolution.

A column is the tuple of its parts, outermost first: ``a.b`` is ``("a", "b")``. As text, parts are
joined by dots. A part that is not a plain identifier is quoted in backticks, and backticks in it
are doubled (Spark's ``sql-ref-identifier``).
"""

import re
from collections.abc import Iterator

import pyarrow as pa

from zadapter.base.printable import abridge
from zadapter.errors import UnknownColumnError, UsageError

NameParts = tuple[str, ...]

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")
_PLAIN = re.compile(r"[^\W\d]\w*\Z")
_UNCHANGED = re.compile(r"[^'\\$]*\Z")


def split(text: str) -> NameParts:
    """Split the text of a column into its parts.

    >>> split("a.`b.c`")
    ('a', 'b.c')
    >>> split("``")
    ('',)

    Raises:
        UsageError: The text is not a column name.
    """
    parts: list[str] = []
    position = 0
    while (match := _PART.match(text, position)) is not None:
        quoted, plain = match.groups()
        if plain is not None and not plain.strip():
            break
        parts.append(plain.strip() if quoted is None else quoted.replace("``", "`"))
        position = match.end()
        if position == len(text):
            return tuple(parts)
        if text[position] != ".":
            break
        position += 1
    raise UsageError(f"{text!r} is not a column name; pass a, a.b or `odd name`")


def join(parts: NameParts) -> str:
    """Return the text of a column, the inverse of :func:`split`.

    >>> join(("a", "b.c"))
    'a.`b.c`'
    """
    return ".".join(p if _PLAIN.match(p) else f"`{p.replace('`', '``')}`" for p in parts)


def quote(parts: NameParts) -> str:
    """Return the text of a column for Spark SQL, with every part in backticks."""
    return ".".join(f"`{p.replace('`', '``')}`" for p in parts)


def text_literal(text: str) -> str:
    """Return a text for Spark SQL. Settings of the parser and its variables do not change it."""
    if _UNCHANGED.match(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def leaves(schema: pa.Schema) -> Iterator[tuple[NameParts, pa.DataType]]:
    """Yield every leaf column of *schema*, including fields of structs, depth first."""
    for field in schema:
        yield from _leaves((field.name,), field.type)


def _leaves(parts: NameParts, type_: pa.DataType) -> Iterator[tuple[NameParts, pa.DataType]]:
    if not pa.types.is_struct(type_):
        yield parts, type_
        return
    for field in type_:
        yield from _leaves((*parts, field.name), field.type)


def resolve(parts: NameParts, schema: pa.Schema) -> tuple[NameParts, pa.DataType]:
    """Resolve a column as Spark does, ignoring case, and return it as spelled in *schema*.

    Raises:
        UnknownColumnError: *schema* has no such column.
        UsageError: Several columns match the name in other cases, and none exactly.
    """
    fields: pa.Schema | pa.StructType = schema
    resolved: list[str] = []
    for depth, part in enumerate(parts):
        at = fields.get_field_index(part)
        # one look-up, instead of a scan of thousands of columns
        field = fields.field(at) if at >= 0 else _in_any_case(part, fields)
        if field is None:
            names = [join((*resolved, f.name)) for f in fields]
            raise UnknownColumnError(join(parts), names or [join((n,)) for n in schema.names])
        resolved.append(field.name)
        if depth + 1 == len(parts):
            return tuple(resolved), field.type
        fields = field.type if pa.types.is_struct(field.type) else pa.schema([])
    raise UnknownColumnError(join(parts), schema.names)


def _in_any_case(part: str, fields: pa.Schema | pa.StructType) -> pa.Field | None:
    """Return the field whose name equals *part* ignoring case, or None if there is none.

    Raises:
        UsageError: Several fields match.
    """
    same = [field for field in fields if field.name.lower() == part.lower()]
    if len(same) > 1:
        raise UsageError(
            f"column {part!r} is ambiguous: {abridge([f.name for f in same])}; rename one of them"
        )
    return same[0] if same else None
