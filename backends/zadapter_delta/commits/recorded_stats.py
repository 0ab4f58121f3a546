"""Stats of files as a table's log records them, for its columns and lengths of texts."""

from collections.abc import Sequence

import pyarrow as pa

from zadapter.base.names import Parts, leaves
from zadapter.table.encoding import KEPT
from zadapter.table.snapshot import Snapshot
from zadapter_delta.jvm import Jvm
from zadapter_delta.stats.stats_json import stats_json
from zadapter_delta.table.snapshots import collected, prefix_length


def texts(jvm: Jvm, snapshot: Snapshot, files: pa.Table, keys: Sequence[Parts]) -> list[str]:
    """Return the stats of *files* as JSON; texts of the *keys* keep longer prefixes."""
    base = snapshot.handle.snapshot
    columns = {parts: snapshot.physical[parts] for parts, _ in leaves(collected(base))}
    prefix = prefix_length(jvm, base)
    prefixes = {parts: max(prefix, KEPT) if parts in keys else prefix for parts in columns}
    return stats_json(jvm, files, columns, prefixes)
