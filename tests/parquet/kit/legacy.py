"""Tables in log format 1, with former file names and without lists of moves."""

import json

import pyarrow as pa
import pyarrow.parquet as pq

from zadapter_parquet.format.entries import digest
from zadapter_parquet.format.paths import HIDDEN, former
from zadapter_parquet.store.guard_files import NOTE

SINCE = ("format", "moves", "visible")
"""Fields that entries of format 1 lack."""


def age(root):
    """Convert a table of the current format, with all files in place, to format 1."""
    for path in [path for path in (root / HIDDEN).rglob("*") if path.is_file()]:
        name = path.relative_to(root).as_posix()
        if path.suffix == ".stats":
            _age_stats(path)
        if name == NOTE:
            path.unlink()
        elif former(name) != name:
            (root / former(name)).parent.mkdir(parents=True, exist_ok=True)
            path.rename(root / former(name))
    previous = ""
    for path in sorted((root / HIDDEN / "log").glob("*.json")):
        entry = json.loads(path.read_text().splitlines()[0])
        for part in entry["parts"]:
            part["path"] = former(part["path"])
        kept = {name: said for name, said in entry.items() if name not in SINCE}
        body = json.dumps(kept | {"previous": previous, "format": 1}).encode()
        data = b'%s\n{"end":"%s"}\n' % (body, digest(body).encode())
        path.write_bytes(data)
        previous = digest(data)


def _age_stats(path):
    table = pq.read_table(path)
    paths = pa.array(map(former, table["path"].to_pylist()), pa.string())
    pq.write_table(table.set_column(table.column_names.index("path"), "path", paths), path)
