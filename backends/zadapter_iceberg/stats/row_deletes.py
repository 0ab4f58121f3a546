"""Row-level deletes of data files, from their scan tasks.

Deletion vectors state the data file and how many of its rows they delete. Other delete files may
apply to many data files: to those of their partition, or whose bounds include their values.
"""

import json
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zadapter_iceberg.jvm import JavaObject, Jvm
from zadapter_iceberg.stats.scan_tasks import POSITIONS, Since

_FILE, _DELETE = "org.apache.iceberg.ContentFile", "org.apache.iceberg.DeleteFile"
_COLLECTION = "java.util.Collection"


class Deletes(NamedTuple):
    """Row-level deletes on one data file.

    Attributes:
        id: Identifies the deletes that a rewrite has to apply; None: there are none.
        rows: Number of deleted rows; None: unknown.
        share: Share of the file's rows that are deleted. It is an estimate where their number is
            unknown: a delete file is taken to delete a row for each of its own, spread evenly over
            the data files that it applies to.
        files: Number of delete files that a reader of the data file opens.
    """

    id: str | None
    rows: int | None
    share: float
    files: int


def of(jvm: Jvm, tasks: JavaObject, since: Since | None) -> dict[str, Deletes]:
    """Return the row-level deletes of data files, by path.

    Args:
        jvm: The session's JVM.
        tasks: The scan tasks of the data files, as a ``java.util.List``; each has deletes.
        since: Plan of the rewrite that the files are compared with. Ids leave out equality deletes
            that were added during it and apply to its result.
    """
    data, counts, deletes = _read(jvm, tasks)
    if not counts:
        return {}
    sequences, is_vector = deletes["sequence"], [each == "PUFFIN" for each in deletes["format"]]
    is_equality = [each != POSITIONS for each in deletes["content"]]
    names = [
        f"{path}@{'None' if at is None else at}"
        for path, at in zip(deletes["location"], deletes["offset"], strict=True)
    ]
    shares = _shares(names, deletes["records"], counts, data["records"])
    found, start = dict[str, Deletes](), 0
    for number, count in enumerate(counts):
        own = range(start, start + count)
        start += count
        left = [
            names[n]
            for n in own
            if since is None
            or not (is_equality[n] and since.covers(sequences[n], data["spec"][number]))
        ]
        exact = all(is_vector[n] for n in own)
        rows = sum(deletes["records"][n] for n in own) if exact else None
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
    delete_of = np.array([number_of[name] for name in names])
    applies_to = np.bincount(delete_of, weights=np.array(rows, np.float64)[file_of])
    each = np.array(records, np.float64) / np.maximum(applies_to[delete_of], 1)
    return np.minimum(np.bincount(file_of, weights=each), 1)


def _read(
    jvm: Jvm, tasks: JavaObject
) -> tuple[dict[str, list[Any]], list[int], dict[str, list[Any]]]:
    """Return facts of the data files, their numbers of deletes, and facts of all their deletes.

    They leave the JVM as one text: there may be millions of them.
    """
    loops = jvm.loops
    files = loops.mapped(tasks, loops.method("org.apache.iceberg.ContentScanTask", "file"))
    lists = loops.mapped(tasks, loops.method("org.apache.iceberg.FileScanTask", "deletes"))
    flat = jvm.root.java.util.ArrayList()
    loops.mapped(lists, loops.method(_COLLECTION, "addAll", _COLLECTION).bindTo(flat))
    data = {"location": "location", "spec": "specId", "records": "recordCount"}
    facts = {
        "location": "location", "content": "content", "format": "format",
        "records": "recordCount", "sequence": "dataSequenceNumber",
    }  # fmt: skip
    columns = [loops.mapped(files, loops.method(_FILE, name)) for name in data.values()]
    columns += [loops.mapped(flat, loops.method(_FILE, name)) for name in facts.values()]
    columns.append(loops.mapped(flat, loops.method(_DELETE, "contentOffset")))
    columns.append(loops.mapped(lists, loops.method(_COLLECTION, "size")))
    whole = jvm.root.java.util.ArrayList()
    for column in columns:
        whole.add(column)
    mapper = jvm.iceberg.shaded.com.fasterxml.jackson.databind.ObjectMapper()
    *read, counts = json.loads(mapper.writeValueAsString(whole))
    return (
        dict(zip(data, read[: len(data)], strict=True)),
        counts,
        dict(zip([*facts, "offset"], read[len(data) :], strict=True)),
    )
