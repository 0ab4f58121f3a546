"""Who is measured on Iceberg; each rewrites a table into about *files* files."""

from dataclasses import dataclass, field
from pathlib import Path

from pyiceberg.catalog.sql import SqlCatalog

import zadapter
from integration.bench.data import KEYS

CATALOG = "bench"


def settings(folder):
    """The session's catalog, in a folder of its own."""
    values = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:sqlite:{folder}/catalog.db",
        ".jdbc.schema-version": "V1",
        ".warehouse": f"file://{folder}/iceberg",
    }
    return {f"spark.sql.catalog.{CATALOG}{key}": value for key, value in values.items()}


@dataclass
class IcebergContenders:
    """The rewrites of Iceberg tables, on one session."""

    spark: object
    source: object
    folder: Path
    files: int
    reports: list = field(default_factory=list)
    bases: dict = field(default_factory=dict)

    def __post_init__(self):
        self.catalog = SqlCatalog(CATALOG, uri=f"sqlite:///{self.folder}/catalog.db")
        self.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {CATALOG}.db")
        self._make("base", self.source)
        self.target = sum(Path(path).stat().st_size for path in self.live("base")) // self.files

    def _make(self, name, rows):
        self.spark.sql(f"DROP TABLE IF EXISTS {CATALOG}.db.{name} PURGE")
        writer = rows.writeTo(f"{CATALOG}.db.{name}").using("iceberg")
        writer = writer.option("use-table-distribution-and-ordering", "false")
        writer.option("target-file-size-bytes", str(1 << 40)).create()

    def fresh(self, name):
        """The table as it was at first: rolled back, where there is one already."""
        table = name.replace(" ", "_")
        if table in self.bases:
            call = f"table => 'db.{table}', snapshot_id => {self.bases[table]}"
            self.spark.sql(f"CALL {CATALOG}.system.rollback_to_snapshot({call})")
        else:
            self._make(table, self.spark.table(f"{CATALOG}.db.base").repartition(self.files))
            self.bases[table] = self._load(table).current_snapshot().snapshot_id
        return table

    def _load(self, table):
        return self.catalog.load_table(f"db.{table}")

    def live(self, table):
        """The live files, found by pyiceberg."""
        tasks = self._load(table).scan().plan_files()
        return [task.file.file_path.removeprefix("file://").removeprefix("file:") for task in tasks]

    def copy(self, table):
        """A plain copy through the same Iceberg writer: the floor."""
        self._make("copied", self.spark.table(f"{CATALOG}.db.base").repartition(self.files))

    def zadapter(self, table):
        """Adaptive z-order."""
        asked = {"backend": "iceberg", "by": KEYS, "target_file_size": self.target}
        name = f"{CATALOG}.db.{table}"
        self.reports.append(zadapter.optimize(name, **asked, spark=self.spark))

    def _rewrite(self, table, curve):
        options = {
            "rewrite-all": "true",
            "target-file-size-bytes": str(self.target),
            "max-file-size-bytes": str(2 * self.target),
        }
        listed = ", ".join(f"'{key}', '{value}'" for key, value in options.items())
        call = f"table => 'db.{table}', strategy => 'sort', options => map({listed})"
        order = f"sort_order => '{curve}({','.join(KEYS)})'"
        self.spark.sql(f"CALL {CATALOG}.system.rewrite_data_files({call}, {order})").collect()

    def zorder(self, table):
        """Iceberg's own rewrite by z-order, at the same file size."""
        self._rewrite(table, "zorder")

    def hilbert(self, table):
        """Iceberg's own rewrite along the Hilbert curve, at the same file size."""
        self._rewrite(table, "hilbert")

    def all(self):
        """Names and rewrites."""
        return {
            "plain copy": self.copy,
            "zadapter adaptive": self.zadapter,
            "Iceberg zorder": self.zorder,
            "Iceberg hilbert": self.hilbert,
        }
