"""Tables with clustering columns (PROTOCOL.md, "Clustered Table").

zadapter is a clustering implementation of its own. Delta's OPTIMIZE leaves its files alone, and
OPTIMIZE FULL clusters them again.
"""

from collections.abc import Iterable, Mapping

from zadapter.base.names import NameParts, join
from zadapter.errors import UnsupportedError
from zadapter.table.snapshot import Snapshot
from zadapter_delta.jvm import JavaObject, Jvm


def is_clustered(jvm: Jvm, snapshot: JavaObject) -> bool:
    """Return whether a table has the feature ``clustering``, even without clustering columns."""
    return bool(_utilities(jvm).isSupported(snapshot.protocol()))


def clustering(
    jvm: Jvm, snapshot: JavaObject, physical: Mapping[NameParts, NameParts]
) -> tuple[NameParts, ...]:
    """Return the logical names of the clustering columns; empty if there are none.

    Args:
        jvm: The session's JVM.
        snapshot: Delta's ``Snapshot``.
        physical: Physical names of all columns, by their logical names.
    """
    if not is_clustered(jvm, snapshot):
        return ()
    columns = _utilities(jvm).getClusteringColumnsOptional(snapshot)
    if columns.isEmpty():
        return ()
    logical = {_fold_case(stored): parts for parts, stored in physical.items()}
    names = [_fold_case(jvm.iterate(each.physicalName())) for each in jvm.iterate(columns.get())]
    return tuple(logical[name] for name in names)


def check(snapshot: Snapshot) -> Snapshot:
    """Return *snapshot*, after checking that zadapter can write stats of its clustering columns.

    Raises:
        UnsupportedError: The log would get no min and max of a clustering column.
    """
    missing = [join(parts) for parts in snapshot.clustering if parts in snapshot.without_stats]
    if missing:
        raise UnsupportedError(
            f"{snapshot.table}: no min and max would be written for its clustering columns "
            f"{', '.join(missing)}, which a table with CLUSTER BY must have; choose other columns "
            "by ALTER TABLE ... CLUSTER BY, or collect stats for them"
        )
    return snapshot


def _fold_case(parts: Iterable[str]) -> NameParts:
    """Return a name in lower case: Delta resolves clustering columns regardless of case."""
    return tuple(part.lower() for part in parts)


def _utilities(jvm: Jvm) -> JavaObject:
    return jvm.module(jvm.delta.skipping.clustering, "ClusteredTableUtils")
