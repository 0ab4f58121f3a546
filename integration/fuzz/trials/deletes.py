"""Iceberg's equality deletes, position deletes and deletion vectors, over several rewrites."""

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import zadapter
from integration.fuzz.trials.model import Model
from integration.fuzz.trials.tally import Row, Tally
from integration.migration.tables import Lakes

STEPS = 8
_numbers = count()


def equality(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Upsert between rewrites as Flink does: one commit has equality deletes and rows."""
    Story(lakes, draw, str(draw.choice([2, 3]))).run(tally, scale)


def vectors(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Delete, update and merge in a table of format version 3; rewrites keep the row ids."""
    Lineage(lakes, draw, "3").run(tally, scale)


class Story:
    """Table with row-level deletes, and its expected rows."""

    def __init__(self, lakes: Lakes, draw: Random, version: str) -> None:
        self.lakes, self.draw, self.model = lakes, draw, Model(draw)
        self.name, self.told = lakes.name("iceberg"), [f"version {version}"]
        self.partition = draw.choice(["", "PARTITIONED BY (p)", "PARTITIONED BY (bucket(2, a))"])
        modes = ", ".join(
            f"'write.{m}.mode'='merge-on-read'" for m in ("delete", "update", "merge")
        )
        lakes.sql(
            f"CREATE TABLE {self.name} (a bigint, p bigint, b string) USING iceberg "
            f"{self.partition} TBLPROPERTIES ('format-version'='{version}', {modes})"
        )
        self.append(200)

    def run(self, tally: Tally, scale: float) -> None:
        """Change and rewrite the table, and compare its rows after each rewrite."""
        for _ in range(max(3, int(STEPS * scale))):
            self.step()
            if self.draw.random() < 0.6:
                self.optimize(tally)
        self.optimize(tally, force=True)

    def step(self) -> None:
        """Run one random change."""
        step = self.draw.choice([self.equal, self.equal, self.upsert, self.positions, self.append])
        step(self.draw.randrange(1, 40))
        self.told.append(step.__name__)

    def spark_rows(self, rows: Sequence[Row]):
        """Return rows as a Spark DataFrame."""
        return self.lakes.spark.createDataFrame(list(rows), "a bigint, p bigint, b string")

    def append(self, number: int) -> None:
        self.spark_rows(self.model.fresh(number)).writeTo(self.name).append()

    def positions(self, number: int) -> None:
        low = self.draw.randrange(self.model.next)
        self.lakes.sql(f"DELETE FROM {self.name} WHERE a >= {low} AND a < {low + number}")
        self.model.drop(lambda row: low <= row["a"] < low + number)

    def equal(self, number: int) -> None:
        """Delete some keys, or all rows with one value, by one delete for all partitions."""
        column = self.draw.choice(["a", "b"])
        values = {self.model.rows[key][column] for key in self.model.some(number)}
        self.commit({column: sorted(values)}, [])
        self.model.drop(lambda row: row[column] in values)

    def upsert(self, number: int) -> None:
        """Delete keys and add rows with the same keys: the deletes apply to older rows only."""
        keys = self.model.some(number)
        self.commit({"a": keys}, self.model.put(keys) + self.model.fresh(5))

    def java(self) -> Any:
        """Return Iceberg's ``Table``."""
        jvm, session = self.lakes.spark._jvm, self.lakes.spark._jsparkSession  # noqa: SLF001
        table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(session, self.name)
        table.refresh()
        return table

    def commit(self, deletes: dict[str, list[Any]], rows: list[Row]) -> None:
        """Commit equality deletes of all partitions, and rows, at once."""
        self.lakes.sql(f"REFRESH TABLE {self.name}")
        table = self.java()
        change = table.newRowDelta()
        change.addDeletes(self.equality(table, deletes))
        for part in self.parts(rows):
            change.addRows(self.data(table, part))
        change.commit()
        self.lakes.sql(f"REFRESH TABLE {self.name}")
        if "bucket" in self.partition and rows:
            # Spark computes the buckets; rows of an earlier commit would be deleted
            self.spark_rows(rows).writeTo(self.name).append()

    def parts(self, rows: list[Row]) -> list[list[Row]]:
        """Split rows by partition; empty if the partitions are buckets."""
        if "bucket" in self.partition:
            return []
        keys = sorted({row["p"] for row in rows}) if self.partition else []
        return [[r for r in rows if r["p"] == key] for key in keys] or ([rows] if rows else [])

    def equality(self, table: Any, deletes: dict[str, list[Any]]) -> Any:
        """Write an equality delete file without partition, which applies to all partitions."""
        jvm = self.lakes.spark._jvm  # noqa: SLF001
        ((column, values),) = deletes.items()
        path, field = self.written(table, pa.table({column: values}))
        ids = self.lakes.spark.sparkContext._gateway.new_array(jvm.int, 1)  # noqa: SLF001
        ids[0] = field
        spec = jvm.org.apache.iceberg.PartitionSpec.unpartitioned()
        if self.partition:
            spec = self.global_spec(table)
        builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(spec)
        return (
            builder.ofEqualityDeletes(ids).withPath(f"file:{path}").withFormat("parquet")
            .withFileSizeInBytes(path.stat().st_size).withRecordCount(len(values)).build()
        )  # fmt: skip

    def global_spec(self, table: Any) -> Any:
        """Return the spec without fields, created on first use."""
        for spec in table.specs().values():
            if spec.isUnpartitioned():
                return spec
        current = table.spec()
        change, back = table.updateSpec(), table.updateSpec
        for field in current.fields():
            change.removeField(field.name())
        change.commit()
        empty, restored = table.spec(), back()
        if "bucket" in self.partition:
            expressions = self.lakes.spark._jvm.org.apache.iceberg.expressions.Expressions  # noqa: SLF001
            restored.addField("a_bucket", expressions.bucket("a", 2))
        else:
            restored.addField("p")
        restored.commit()
        return empty

    def data(self, table: Any, rows: list[Row]) -> Any:
        """Write a data file of one partition."""
        jvm = self.lakes.spark._jvm  # noqa: SLF001
        path, _ = self.written(table, pa.Table.from_pylist(rows))
        builder = jvm.org.apache.iceberg.DataFiles.builder(table.spec())
        if self.partition:
            builder.withPartitionPath(f"p={rows[0]['p']}")
        return (
            builder.withPath(f"file:{path}").withFormat("parquet")
            .withFileSizeInBytes(path.stat().st_size).withRecordCount(len(rows)).build()
        )  # fmt: skip

    def written(self, table: Any, rows: pa.Table) -> tuple[Path, int]:
        """Write rows with Iceberg's field ids; return the path and the first id."""
        ids = [table.schema().findField(name).fieldId() for name in rows.column_names]
        fields = [
            field.with_metadata({"PARQUET:field_id": str(number)})
            for field, number in zip(rows.schema, ids, strict=True)
        ]
        folder = Path(table.location().removeprefix("file://").removeprefix("file:"), "data")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"by-hand-{next(_numbers)}.parquet"
        pq.write_table(rows.cast(pa.schema(fields)), path)
        return path, ids[0]

    def optimize(self, tally: Tally, *, force: bool = False) -> None:
        """Rewrite, and compare."""
        where = f"a < {self.model.next // 2}" if not force and self.draw.random() < 0.3 else None
        zadapter.optimize(
            self.name, by=self.draw.choice(["a", "b"]), where=where, force=force,
            target_file_size="3KB", row_groups=2, backend="iceberg", spark=self.lakes.spark,
        )  # fmt: skip
        self.told.append("optimize" if where is None else f"optimize where {where}")
        found = [row.asDict() for row in self.lakes.load("iceberg", self.name).collect()]
        tally.compare(f"Spark, {self.told}", self.model.listed(), found, "a")
        if force:
            # all deletes have been applied, so the data files alone contain the rows
            files = self.lakes.sql(f"SELECT file_path FROM {self.name}.data_files").collect()
            paths = [row.file_path.removeprefix("file://").removeprefix("file:") for row in files]
            bare = pa.concat_tables([pq.ParquetFile(each).read() for each in paths])
            bare = bare.select(["a", "p", "b"])
            tally.compare(f"pyarrow, {self.told}", self.model.listed(), bare, "a")


class Lineage(Story):
    """Table of format version 3, whose rows have ids."""

    def step(self) -> None:
        step = self.draw.choice([self.positions, self.update, self.merge, self.append])
        step(self.draw.randrange(1, 40))
        self.told.append(step.__name__)

    def update(self, number: int) -> None:
        low, text = self.draw.randrange(self.model.next), f"u{self.draw.randrange(99)}"
        condition = f"a >= {low} AND a < {low + number}"
        self.lakes.sql(f"UPDATE {self.name} SET b = '{text}' WHERE {condition}")
        self.model.change(lambda row: low <= row["a"] < low + number, text)

    def merge(self, number: int) -> None:
        keys = self.model.some(number)
        rows = self.model.put(keys[1:]) + self.model.fresh(3)
        gone = [{"a": key, "p": key % 3, "b": None} for key in keys[:1]]
        self.spark_rows([*rows, *gone]).createOrReplaceTempView("news")
        self.lakes.sql(
            f"MERGE INTO {self.name} t USING news n ON t.a = n.a "
            "WHEN MATCHED AND n.b IS NULL THEN DELETE WHEN MATCHED THEN UPDATE SET * "
            "WHEN NOT MATCHED THEN INSERT *"
        )
        self.model.drop(lambda row: row["a"] in keys[:1])

    def lineage(self) -> list[Row]:
        """Return the id of each row, and the sequence number of its last change."""
        self.lakes.sql(f"REFRESH TABLE {self.name}")
        ids = "_row_id, _last_updated_sequence_number"
        return [r.asDict() for r in self.lakes.sql(f"SELECT a, {ids} FROM {self.name}").collect()]

    def optimize(self, tally: Tally, *, force: bool = False) -> None:
        before = self.lineage()
        super().optimize(tally, force=force)
        tally.compare(f"row ids, {self.told}", before, self.lineage(), "a")
        found = self.lakes.iceberg(self.name).scan().to_arrow()
        tally.compare(f"pyiceberg, {self.told}", self.model.listed(), found, "a")
