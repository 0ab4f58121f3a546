"""Row-level deletes of data files, from their scan tasks.

Deletion vectors state the data file and how many of its rows they delete. Other delete files may
apply to many data files: to those of their partition, or whose bounds include their values.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zadapter_iceberg.bulk_calls import facts
from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.stats.scan_tasks import DELETE_FILE, FILE, POSITIONS, SCAN, TASK, Since

_COLLECTION = "java.util.Collection"
_OF_DATA = ("location", "specId", "recordCount")
_OF_DELETE = ("location", "content", "format", "recordCount", "dataSequenceNumber")


class Deletes(NamedTuple):
    """Row-level deletes on one data file.

    Attributes:
        id: Identifies the deletes that a rewrite has to apply; None if there are none.
        rows: Number of deleted rows; None if it is unknown.
        share: Share of the file's rows that are deleted. It is an estimate where their number is
            unknown: a delete file is taken to delete a row for each of its own, spread evenly over
            the data files that it applies to.
        files: Number of delete files that a reader of the data file opens.
    """

    id: str | None
    rows: int | None
    share: float
    files: int


def read_row_deletes(jvm: Jvm, tasks: JavaObject, since: Since | None) -> dict[str, Deletes]:
    """Return the row-level deletes of data files, by path.

    Args:
        jvm: The session's JVM.
        tasks: The scan tasks of the data files, as a ``java.util.List``; each has deletes.
        since: Plan of the rewrite that the files are compared with. Ids leave out equality deletes
            that were added during it and apply to its result.
    """
    loops, flat = jvm.loops, jvm.root.java.util.ArrayList()
    file, lists = loops.method(SCAN, "file"), loops.method(TASK, "deletes")
    data = {name: loops.chain(file, loops.method(FILE, name)) for name in _OF_DATA}
    counted = {"deletes": loops.chain(lists, loops.method(_COLLECTION, "size"))}
    data_files = facts(jvm, tasks, data | counted)
    add = loops.method(_COLLECTION, "addAll", _COLLECTION).bindTo(flat)
    loops.map_items(tasks, loops.chain(lists, add))
    offset = {"contentOffset": loops.method(DELETE_FILE, "contentOffset")}
    deletes = facts(jvm, flat, {name: loops.method(FILE, name) for name in _OF_DELETE} | offset)
    return _group_by_path(data_files, deletes, since)


def _group_by_path(
    data: Mapping[str, list[Any]], deletes: Mapping[str, list[Any]], since: Since | None
) -> dict[str, Deletes]:
    """Return deletes by data file, from facts of the data files, and of the deletes of each."""
    counts = data["deletes"]
    sequences = deletes["dataSequenceNumber"]
    is_vector = [each == "PUFFIN" for each in deletes["format"]]
    is_equality = [each != POSITIONS for each in deletes["content"]]
    names = [
        f"{path}@{at}"
        for path, at in zip(deletes["location"], deletes["contentOffset"], strict=True)
    ]
    shares = _shares(names, deletes["recordCount"], counts, data["recordCount"])
    found, start = dict[str, Deletes](), 0
    for number, count in enumerate(counts):
        own = range(start, start + count)
        start += count
        left = [
            names[n]
            for n in own
            if since is None
            or not (is_equality[n] and since.covers(sequences[n], data["specId"][number]))
        ]
        exact = all(is_vector[n] for n in own)
        rows = sum(deletes["recordCount"][n] for n in own) if exact else None
        ids = " ".join(sorted(left)) or None
        found[data["location"][number]] = Deletes(ids, rows, float(shares[number]), count)
    return found


def _shares(
    names: list[str], records: list[int], counts: list[int], rows: list[int]
) -> npt.NDArray[np.float64]:
    """Return the estimated share of the deleted rows of each data file.

    Args:
        names: Name of each delete file of each data file, one data file after the other.
        records: Its number of records.
        counts: Number of delete files of each data file.
        rows: Number of rows of each data file.
    """
    file_of = np.repeat(np.arange(len(counts)), counts)
    number_of = {name: number for number, name in enumerate(dict.fromkeys(names))}
    delete_of = np.array([number_of[name] for name in names], np.int64)
    applies_to = np.bincount(delete_of, weights=np.array(rows, np.float64)[file_of])
    each = np.array(records, np.float64) / np.maximum(applies_to[delete_of], 1)
    return np.minimum(np.bincount(file_of, weights=each), 1)
