"""Hand-written file tables, and the results of pruning them."""

import pyarrow as pa

from tests.kit.conditions import read
from zadapter.base.names import leaves
from zadapter.predicates.pruning import matching, may
from zadapter.table.file_stats import Bounds, schema

ANY = {"bounds": Bounds.UNKNOWN}
"""Stats without information."""


def bounds(low, high, nulls=0, nans=0, kind=Bounds.EXACT):
    """Return the stats of one column of one file."""
    return {"min": low, "max": high, "nulls": nulls, "nans": nans, "bounds": kind}


def table_of(*files, partition=(), rows=10, **columns):
    """Return a file table; each file is given by its column stats or partition values."""
    types = dict(leaves(pa.schema(list(columns.items()))))
    in_partition = {name: columns[name] for name in partition}
    of_stats = {parts: type_ for parts, type_ in types.items() if parts[0] not in partition}
    return pa.Table.from_pylist(
        [
            {
                "path": str(number),
                "size": 1,
                "rows": file.get("rows", rows),
                "partition": {name: file[name] for name in partition},
                "stats": file,
            }
            for number, file in enumerate(files)
        ],
        schema=schema(of_stats, in_partition),
    )


def outcomes(condition, table, **columns):
    """Return the possible truth values of a condition per file, as a substring of "TFN"."""
    predicate = read(condition, **columns) if columns else condition
    found = may(predicate, table)
    assert (matching(predicate, table) == found.true).all()
    masks = zip("TFN", (found.true, found.false, found.null), strict=True)
    named = [[letter if kept else "" for kept in mask] for letter, mask in masks]
    return ["".join(letters) for letters in zip(*named, strict=True)]


def asked(condition, type_, *stats, rows=10):
    """Evaluate a condition on a column x of *type_*, in one file per item of *stats*."""
    return outcomes(condition, table_of(*({"x": s} for s in stats), rows=rows, x=type_), x=type_)
