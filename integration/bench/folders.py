"""Who is measured on folders of Parquet files, and what the log of one costs."""

import shutil
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import zadapter
from integration.bench.data import KEYS
from integration.bench.planning import million
from zadapter import pruning, sql
from zadapter_parquet import changes, registration, stats
from zadapter_parquet.entries import Entry, Operation
from zadapter_parquet.local import LocalFiles
from zadapter_parquet.log import Log


@dataclass
class FolderContenders:
    """The rewrites of folders, on one session."""

    spark: object
    source: object
    folder: Path
    files: int
    reports: list = field(default_factory=list)

    def __post_init__(self):
        self.base = self.folder / "plain-base"
        if self.base.exists():
            shutil.rmtree(self.base)
        self.source.write.parquet(str(self.base))
        self.target = sum(Path(path).stat().st_size for path in self._listed()) // self.files

    def _listed(self, path=None):
        return [str(found) for found in Path(path or self.base).glob("*.parquet")]

    def fresh(self, name):
        """Copy the folder, so that every contender starts from the same files."""
        path = self.folder / f"plain-{name.replace(' ', '-')}"
        if path.exists():
            shutil.rmtree(path)
        shutil.copytree(self.base, path)
        return str(path)

    def live(self, path):
        """The live files."""
        if (Path(path) / "_zadapter").exists():
            return zadapter.files(path, spark=self.spark)["path"].to_pylist()
        return self._listed(path)

    def copy(self, path):
        """A plain copy by Spark: the floor."""
        shutil.rmtree(path)
        self.spark.read.parquet(str(self.base)).repartition(self.files).write.parquet(path)

    def zadapter(self, path):
        """Adaptive z-order."""
        asked = {"backend": "parquet", "by": KEYS, "target_file_size": self.target}
        self.reports.append(zadapter.optimize(path, **asked, spark=self.spark))

    def sort(self, path):
        """A plain sort by the first key, as Spark does it."""
        shutil.rmtree(path)
        rows = self.spark.read.parquet(str(self.base))
        rows.repartitionByRange(self.files, *KEYS).sortWithinPartitions(*KEYS).write.parquet(path)

    def all(self):
        """Names and rewrites."""
        return {
            "plain copy": self.copy,
            "zadapter adaptive": self.zadapter,
            "plain sort": self.sort,
        }


EMPTY = Entry(
    version=0, previous="", transaction="0", operation=Operation.REGISTER, read_version=-1,
    timestamp=1, table="t", schema='{"type":"struct","fields":[]}', partition=(), parts=(),
    files=0, size=0, rows=0, oldest=0,
)  # fmt: skip


def log(versions=10_000, registered=10_000):
    """Return what the log costs on local disk, in seconds, without Spark."""
    with tempfile.TemporaryDirectory(prefix="zadapter-bench-") as folder:
        return {**_commits(folder, versions), **_stats(folder), **_footers(folder, registered)}


def _commits(folder, versions):
    files = LocalFiles(Path(folder))
    found = Log(files, "t")
    found.claim(EMPTY)
    for number in range(1, versions):
        said = {"transaction": str(number)}
        found.claim(changes.following(found, found.entry(number - 1), Operation.VACUUM, **said))
    start = time.perf_counter()
    for _ in range(10):
        head = found.head()
        transaction = f"last {head.version}"
        found.claim(changes.following(found, head, Operation.VACUUM, transaction=transaction))
    return {f"commit without data at version {versions}, s": _since(start) / 10}


def _stats(folder):
    files, table = LocalFiles(Path(folder)), million()
    parts = stats.rewritten(files, (), set(), table)
    types, partition = {("a",): pa.int64(), ("b",): pa.int64()}, {"p": pa.int64()}
    start = time.perf_counter()
    loaded = stats.load(files, parts, types, partition)
    loading = _since(start)
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("p", pa.int64())])
    predicate = sql.parse("a BETWEEN 5 AND 10000000 AND b > 7 AND p < 900", schema)
    start = time.perf_counter()
    pruning.matching(predicate, loaded)
    return {"loading 1 000 000 files, s": loading, "pruning them, s": _since(start)}


def _footers(folder, number):
    columns = {f"c{n}": range(100) for n in range(16)}
    place = Path(folder, "many")
    place.mkdir()
    pq.write_table(pa.table(columns), place / "0.parquet")
    data = (place / "0.parquet").read_bytes()
    for at in range(1, number):
        (place / f"{at}.parquet").write_bytes(data)
    start = time.perf_counter()
    registration.read_footers(LocalFiles(place), [f"{at}.parquet" for at in range(number)])
    return {f"footers of {number} files of 16 columns, files/s": round(number / _since(start))}


def _since(start):
    return round(time.perf_counter() - start, 4)
