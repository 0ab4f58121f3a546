"""Stats to record: those that were found, where they are certain, and else those of the log."""

import pyarrow as pa
import pyarrow.compute as pc

from zadapter.table.file_stats import Bounds, child, replaced, structs


def corrected(recorded: pa.Table, found: pa.Table) -> pa.Table:
    """Return the file table of a log with the rows and stats that were found.

    Found bounds are certain if they are values of the file, or if it has no values. Where the log
    has no bounds, any valid ones are better.

    Args:
        recorded: Files of the log, none of which has bounds in doubt.
        found: The same files, in the same order.
    """
    field = recorded.schema.field("stats")
    columns, children = list(field.type), list[pa.Array]()
    for column in columns[:]:
        said, real = child(recorded["stats"], column.name), child(found["stats"], column.name)
        if said is None or real is None or real.type != said.type:
            children.append(pa.nulls(recorded.num_rows, column.type) if said is None else said)
            continue
        exact = pc.equal(real.field("bounds"), int(Bounds.EXACT)).fill_null(False)  # noqa: FBT003
        empty = pc.equal(real.field("nulls"), found["rows"].combine_chunks()).fill_null(False)  # noqa: FBT003
        lacking = said.field("min").is_null()
        better = pc.or_(pc.or_(exact, empty), lacking)
        children.append(pc.if_else(better, real, said))
    for column in found.schema.field("stats").type:
        if field.type.get_field_index(column.name) < 0:  # the log may count its nulls
            columns.append(column)
            children.append(child(found["stats"], column.name))
    field = field.with_type(pa.struct(columns))
    stats = structs(children, field.type, recorded.num_rows)
    rows = pa.field("rows", pa.int64())
    counted = replaced(recorded, rows, found["rows"].combine_chunks())
    return replaced(counted, field, stats)
