"""A table of each format on a cluster: what readers find in it, and the files that are there."""

import json
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

import deltalake
from pyiceberg.catalog.sql import SqlCatalog

from integration.journeys.settings import on_cluster
from integration.kit.witnesses import of_files, sorted_rows

ICEBERG = "ice.db.events"


class OnDisk:
    """In the user's folder.

    Attributes:
        tables: The format of each table.
        stores: Stores that a session has to load.
    """

    stores = ()

    def __init__(self, folder):
        self.folder = folder
        self.tables = {"lake/delta": "delta", ICEBERG: "iceberg", "lake/parquet": "parquet"}

    def settings(self, master):
        """Return the settings of a session on a cluster."""
        return on_cluster(self.folder, master)

    def rows(self, table, files):
        """Return all rows, read by others; *files* are those that zadapter lists."""
        if self.tables[table] == "parquet":
            return of_files(self.paths(files))
        return sorted_rows(self.arrow(table))

    def named(self, table, files):
        """Return the paths of all files that a version of the table has, or had."""
        if self.tables[table] == "parquet":
            return set(self.paths(files))
        if self.tables[table] == "iceberg":
            every = self.iceberg().inspect.all_data_files()["file_path"].to_pylist()
            return set(self.paths(every))
        lines = [json.loads(line) for entry in self.log(table) for line in entry.splitlines()]
        return {f"{self.root(table)}/{unquote(x['add']['path'])}" for x in lines if "add" in x}

    def found(self, table):
        """Return the paths of all data files that are there."""
        root = self.root(table)
        suffix = ".rows" if self.tables[table] == "parquet" else ".parquet"
        return {path for path in self.under(root) if path.endswith(suffix)}

    def root(self, table):
        """Return the path of a table's folder."""
        if self.tables[table] == "iceberg":
            return self.paths([self.iceberg().location()])[0]
        return f"{self.folder}/{table}"

    def iceberg(self):
        """Return pyiceberg's view of the Iceberg table."""
        catalog = SqlCatalog("ice", uri=f"sqlite:///{self.folder}/iceberg.db", **self.properties())
        return catalog.load_table("db.events")

    def arrow(self, table):
        """Return the rows of a Delta or Iceberg table."""
        if self.tables[table] == "iceberg":
            return self.iceberg().scan().to_arrow()
        return deltalake.DeltaTable(f"{self.folder}/{table}").to_pyarrow_table()

    def properties(self):
        """Return what pyiceberg has to know of the store."""
        return {}

    def paths(self, uris):
        return [uri.removeprefix("file:") for uri in uris]

    def under(self, root):
        return map(str, Path(root).rglob("*"))

    def log(self, table):
        """Return the entries of a Delta table's log."""
        return [
            entry.read_text() for entry in Path(self.folder, table, "_delta_log").glob("*.json")
        ]


class OnS3(OnDisk):
    """In a bucket, with Iceberg's catalog in the user's folder."""

    stores = ("s3",)

    def __init__(self, folder, s3):
        super().__init__(folder)
        self.s3, self.prefix = s3, uuid4().hex
        self.at = f"s3a://lake/{self.prefix}"
        self.tables = {
            f"{self.at}/delta": "delta", ICEBERG: "iceberg", f"{self.at}/parquet": "parquet"
        }  # fmt: skip

    def settings(self, master):
        """Return the settings of a session on a cluster."""
        warehouse = {"spark.sql.catalog.ice.warehouse": f"{self.at}/ice"}
        return super().settings(master) | self.s3.settings() | warehouse

    def rows(self, table, files):
        """Return all rows, read by others; *files* are those that zadapter lists."""
        if self.tables[table] == "parquet":
            return sorted_rows(self.s3.arrow(self.paths(files)))
        return super().rows(table, files)

    def root(self, table):
        """Return the path of a table's folder."""
        if self.tables[table] == "iceberg":
            return super().root(table)
        return self.paths([table])[0]

    def arrow(self, table):
        """Return the rows of a Delta or Iceberg table."""
        if self.tables[table] == "iceberg":
            return super().arrow(table)
        return self.s3.delta(table.replace("s3a:", "s3:"))

    def properties(self):
        """Return what pyiceberg has to know of the store."""
        return self.s3.properties()

    def paths(self, uris):
        return [uri.partition("://")[2] for uri in uris]

    def under(self, root):
        bucket, _, prefix = root.partition("/")
        return (f"{bucket}/{key}" for key in self.s3.keys(f"{prefix}/", bucket))

    def log(self, table):
        """Return the entries of a Delta table's log."""
        bucket, _, prefix = f"{self.root(table)}/_delta_log/".partition("/")
        keys = [key for key in self.s3.keys(prefix, bucket) if key.endswith(".json")]
        return [
            self.s3.client.get_object(Bucket=bucket, Key=key)["Body"].read().decode()
            for key in keys
        ]
