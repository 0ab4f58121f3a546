"""The toy backend of ``backends/README.md``, installed as a plug-in, keeps the contract."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from tests.contract import BackendContract, MigrationContract, sort_rows
from zadapter.backend.plugins import load

HERE = Path(__file__).parent
SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "a", "type": "long", "nullable": True, "metadata": {}},
        {"name": "b", "type": "string", "nullable": True, "metadata": {}},
    ],
}
STATS = [("nulls", pa.int64()), ("nans", pa.int64()), ("bounds", pa.int8())]


@pytest.fixture(scope="module", autouse=True)
def _plugin(tmp_path_factory):
    """Install the backend as its users would, into a folder of its own."""
    site = tmp_path_factory.mktemp("site")
    source = shutil.copytree(HERE, tmp_path_factory.mktemp("toy") / "source")
    command = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", site, source]
    subprocess.run([sys.executable, *command, "--no-build-isolation"], check=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(site))
        yield
    sys.modules.pop("zadapter_toy", None)


class TestToy(BackendContract, MigrationContract):
    """Every test of the suite, ``optimize`` and ``migrate`` included."""

    @pytest.fixture
    def backend(self, spark):
        return load("toy")(spark)

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path):
        self.folder = tmp_path

    def target(self, name):
        return f"{self.folder}/sp ace %25/{name}"

    def make(self, spark, name, rows):
        add(self.target(name), rows)
        return self.target(name)

    def append(self, spark, table, rows):
        add(table, rows)

    def rows_behind(self, spark, table):
        (*_, newest) = sorted(Path(table).glob("_toy/log/*.arrow"))
        paths = [f"{table}/{path}" for path in feather.read_table(newest)["path"].to_pylist()]
        return sort_rows(duckdb.read_parquet(paths).select("a", "b").fetchall())


def add(table, rows):
    """Append rows to a toy table as a writer that is not zadapter's."""
    folder = f"_toy/data/{uuid4().hex}"
    rows.write.parquet(f"{table}/{folder}")
    paths = sorted(path.name for path in Path(table, folder).glob("*.parquet"))
    files = pa.concat_tables([entry(table, f"{folder}/{name}") for name in paths])
    log = Path(table, "_toy/log")
    log.mkdir(exist_ok=True)
    older = sorted(log.glob("*.arrow"))
    metadata = {"id": uuid4().hex, "schema": SCHEMA, "source": None}
    if older:
        before = feather.read_table(older[-1])
        metadata = json.loads(before.schema.metadata[b"toy"])
        files = pa.concat_tables([before.replace_schema_metadata(), files])
    metadata |= {"commit": uuid4().hex}
    files = files.replace_schema_metadata({"toy": json.dumps(metadata)})
    feather.write_feather(files, log / f"{len(older):08}.arrow", compression="uncompressed")


def entry(table, path):
    """Return the entry of a file, with its smallest and largest values."""
    file = Path(table, path)
    rows = pq.read_table(file)
    stats, types = {}, {}
    for name, type_ in (("a", pa.int64()), ("b", pa.string())):
        values = sorted(value for value in rows[name].to_pylist() if value is not None)
        bounds = {"min": values[0], "max": values[-1], "bounds": 0}
        stats[name] = bounds | {"nulls": rows[name].null_count, "nans": None}
        types[name] = pa.struct([("min", type_), ("max", type_), *STATS])
    columns = {
        "path": pa.array([path]),
        "deletes": pa.nulls(1, pa.string()),
        "size": pa.array([file.stat().st_size]),
        "rows": pa.array([rows.num_rows]),
        "layout": pa.nulls(1, pa.string()),
        "partition": pa.array([{}], pa.struct([])),
        "stats": pa.array([stats], pa.struct(list(types.items()))),
    }
    required = {"path", "size"}
    fields = [pa.field(n, c.type, nullable=n not in required) for n, c in columns.items()]
    return pa.table(list(columns.values()), schema=pa.schema(fields))
