"""What is written is what was read: by numbers of rows, or by all of their values."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import zadapter
from integration.migration.tables import Lakes
from tests.kit import extremes
from tests.kit.checkout import python_path
from zadapter.backend.builds import Standing
from zadapter.errors import VerificationError
from zadapter.report.optimize_report import Verification
from zadapter_delta import DeltaBackend
from zadapter_iceberg import IcebergBackend
from zadapter_parquet import ParquetBackend

ROWS = 2_000


def _each(count):
    """Have every row come as often as an expression of its id says."""

    def corrupt(rows):
        copies = F.sequence(F.lit(1), F.expr(count))
        several = F.when(F.expr(count) > 0, copies).otherwise(F.array())
        return rows.withColumn("copy", F.explode(several)).drop("copy")

    return corrupt


CORRUPTIONS = {
    "a value": lambda rows: rows.withColumn("b", F.expr("if(id = 1234, b + 1, b)")),
    "two columns": lambda rows: rows.withColumns({"b": F.col("c"), "c": F.col("b")}),
    "two values of a row": lambda rows: rows.withColumns(
        {"b": F.expr("if(id = 7, c, b)"), "c": F.expr("if(id = 7, b, c)")}
    ),
    "two rows": lambda rows: rows.withColumn(
        "b", F.expr("CASE id WHEN 7 THEN 2 * 8 WHEN 8 THEN 2 * 7 ELSE b END")
    ),
    "one row twice, one not at all": _each("CASE id WHEN 7 THEN 2 WHEN 8 THEN 0 ELSE 1 END"),
    "a null": lambda rows: rows.withColumn("s", F.expr("if(id = 6, '', s)")),
}
"""What may become of rows on their way to the writer, without a change of their number."""


def numbers(spark):
    """Rows whose columns b and c are never the same in a row."""
    return spark.range(ROWS).selectExpr(
        "id", "id * 7919 % 2003 AS a", "2 * id AS b", "2 * id + 1 AS c",
        "nullif(concat('s', id % 97), 's6') AS s",
    )  # fmt: skip


@pytest.fixture(scope="module")
def lakes(spark, catalog, tmp_path_factory):
    """Tables of all formats."""
    return Lakes(spark, catalog, tmp_path_factory.mktemp("verified"))


@pytest.fixture(scope="module")
def extreme(spark):
    """Nasty values of every type, alone and as fields, elements and values."""
    table = extremes.table()
    rows = spark.createDataFrame(table, extremes.ddl(table.schema))
    odd = F.struct("float", F.struct("text", F.col("ntz").alias("ntz")).alias("deep"))
    nested = {
        "fields": odd,
        "list": F.array("double", F.lit(0.0), -F.col("double")),
        "map": F.create_map(F.lit("k"), F.array(odd)),
        "tiny": F.col("tiny").cast("int"),  # Iceberg has no smaller ones
        "small": F.col("small").cast("int"),
    }
    return rows.withColumns(nested)


class Stories:
    """What all formats have in common."""

    format: str
    backend: type

    @pytest.fixture(autouse=True)
    def _lakes(self, lakes):
        self.lakes = lakes

    def make(self, rows, *partition_by, **properties):
        return self.lakes.make(self.format, rows, *partition_by, **properties)

    def read(self, table):
        return self.lakes.read(self.format, table)

    def optimize(self, table, **arguments):
        asked = {"by": ["a"], "target_file_size": "8KB", "backend": self.format}
        return zadapter.optimize(table, **asked | {"spark": self.lakes.spark} | arguments)

    def files(self, table):
        """All Parquet files that are there, whether a log names them or not."""
        folder = self.folder(table)
        return {path for path in folder.rglob("*.parquet") if "stats" not in path.parts}

    def folder(self, table):
        return Path(table)

    def live(self, table):
        """The rows of each live file, in their order."""
        named = zadapter.files(table, backend=self.format, spark=self.lakes.spark)
        paths = named["path"].to_pylist()
        return sorted(str(pq.ParquetFile(path).read().to_pydict()) for path in paths)

    def through(self, change):
        """Make a backend whose writer gets *change* of the rows."""

        class Changed(self.backend):
            def write(self, snapshot, rows, layout, encoding):
                return super().write(snapshot, change(rows), layout, encoding)

        return Changed

    def test_rows_that_change_on_the_way_are_found_by_the_checksum(self, spark):
        """Nothing is committed, and nothing is left behind; numbers of rows alone say nothing."""
        table = self.make(numbers(spark))
        rows, files = self.read(table), self.files(table)

        for corrupt in CORRUPTIONS.values():
            broken = self.through(corrupt)
            with pytest.raises(VerificationError, match="rows written differ from the rows read"):
                self.optimize(table, backend=broken, verify="checksum")

        assert rows == self.read(table)
        assert files == self.files(table)
        doubled = self.through(CORRUPTIONS["one row twice, one not at all"])
        counted = self.optimize(table, backend=doubled)
        assert counted.verification == Verification(by="counts")
        assert counted.rows_added == ROWS
        assert rows != self.read(table)

    def test_values_of_every_type_are_no_false_alarm(self, extreme):
        """NaN of any bits, zeros of both signs, texts without a shape, moments of all ages."""
        table = self.make(extreme)
        before = self.read(table)

        report = self.optimize(
            table, by=["big", "text"], target_file_size="20KB", verify="checksum"
        )

        assert str(report.verification) == "checksum"
        assert report.files_added > 2
        assert before == self.read(table)

    def test_a_patch_that_no_list_names_reads_no_more_than_others(self, spark, monkeypatch):
        """The self-test of rows is no read of the table, and it stands for the checksum."""
        known, unlisted = (self.make(numbers(spark)) for _ in range(2))
        one = self.optimize(known)
        monkeypatch.setattr("zadapter.backend.builds.standing", lambda _: Standing.PATCH)

        two = self.optimize(unlisted)

        assert one.verification == two.verification == Verification(by="counts")
        assert two.cost.bytes_read == two.bytes_removed
        assert self.live(unlisted) == self.live(known)

    def test_a_spark_that_fails_the_self_test_places_rows_by_plain_operations(
        self, spark, monkeypatch
    ):
        """Each file has the same rows in the same order; the checksum reads them twice more."""
        known, plain = (self.make(numbers(spark)) for _ in range(2))
        one = self.optimize(known)
        monkeypatch.setattr("zadapter.backend.builds.standing", lambda _: Standing.PATCH)
        monkeypatch.setattr("zadapter.rewrite.write.failure", lambda _: "rows differ")

        two = self.optimize(plain)

        assert one.verification == Verification(by="counts")
        assert two.verification == Verification(
            by="checksum",
            read_twice=True,
            untested=f"Spark {spark.version} (its self-test failed: rows differ)",
        )
        assert two.cost.bytes_read == 2 * two.bytes_removed + two.bytes_added
        assert two.share_after == one.share_after
        assert self.live(plain) == self.live(known)
        assert self.read(plain) == self.read(known)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["parquet", "delta", "iceberg"])
def test_rows_whose_shuffle_files_were_lost_are_read_twice(tmp_path, name):
    """Spark then observes them twice, so what it has observed proves nothing."""
    ended = subprocess.run(
        [sys.executable, "-m", "integration.kit.lost_shuffle_files", name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": python_path()},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr[-3_000:]
    verified, share, files = json.loads(ended.stdout)
    assert verified == "checksum, with a second read of the rows"
    assert share < 0.5
    rows = pa.concat_tables(pq.ParquetFile(tmp_path / path).read(["id"]) for path in files)
    assert sorted(rows["id"].to_pylist()) == [*range(ROWS)]


def _rows(rows):
    """Rows as Spark writes them, of types that others do not read."""
    return sorted(row[0] for row in rows.select(F.to_json(F.struct("*"))).collect())


class TestDelta(Stories):
    """Delta."""

    format, backend = "delta", DeltaBackend

    @pytest.mark.slow
    def test_what_a_rewrite_changes_on_purpose_is_no_false_alarm(self, spark):
        """Vectors are applied, row ids kept, columns found by id; texts of CHAR are as stored."""
        table = self.lakes.name("delta")
        on = ", ".join(
            f"'delta.{key}' = '{value}'"
            for key, value in {
                "enableDeletionVectors": "true",
                "enableRowTracking": "true",
                "columnMapping.mode": "name",
            }.items()
        )
        columns = "a bigint, ch char(5), va varchar(9), p double, v variant"
        spark.sql(
            f"CREATE TABLE delta.`{table}` ({columns}) USING delta PARTITIONED BY (p) "
            f"TBLPROPERTIES ({on})"
        )
        spark.range(600).selectExpr(
            "id a", "concat('c', id % 7) ch", "concat('v', id % 5) va",
            "element_at(array(-0.0D, 0.0D, double('NaN'), NULL), int(id % 4) + 1) p",
            "to_variant_object(named_struct('k', id)) v",
        ).writeTo(f"delta.`{table}`").append()  # fmt: skip
        spark.sql(f"ALTER TABLE delta.`{table}` RENAME COLUMN va TO renamed")
        spark.sql(f"DELETE FROM delta.`{table}` WHERE a % 10 = 3")
        before = _rows(spark.read.format("delta").load(table))

        report = self.optimize(table, target_file_size="2KB", verify="checksum")

        assert str(report.verification) == "checksum"
        assert report.rows_added == 540
        assert _rows(spark.read.format("delta").load(table)) == before


class TestIceberg(Stories):
    """Iceberg."""

    format, backend = "iceberg", IcebergBackend

    @pytest.mark.slow
    @pytest.mark.parametrize("version", [2, 3])
    def test_what_a_rewrite_changes_on_purpose_is_no_false_alarm(self, spark, version):
        """Deletes are applied, lineage is kept, partitions are transforms of columns."""
        table = self.lakes.name("iceberg")
        spark.sql(
            f"CREATE TABLE {table} (a bigint, old string, t timestamp, p double) USING iceberg "
            "PARTITIONED BY (bucket(2, a), years(t), p) TBLPROPERTIES "
            f"('format-version' = '{version}', 'write.delete.mode' = 'merge-on-read')"
        )
        spark.range(600).selectExpr(
            "id a", "concat('v', id % 5) old", "timestamp_seconds(id * 100000) t",
            "element_at(array(-0.0D, 0.0D, double('NaN'), NULL), int(id % 4) + 1) p",
        ).writeTo(table).append()  # fmt: skip
        spark.sql(f"ALTER TABLE {table} RENAME COLUMN old TO renamed")
        spark.sql(f"ALTER TABLE {table} ADD COLUMN more array<int>")
        spark.sql(f"DELETE FROM {table} WHERE a % 10 = 3")
        spark.sql(f"UPDATE {table} SET more = array(int(a), NULL) WHERE a % 10 = 4")
        before = self.read(table)

        report = self.optimize(table, target_file_size="2KB", verify="checksum")

        assert str(report.verification) == "checksum"
        assert report.rows_added == 540
        assert self.read(table) == before

    def folder(self, table):
        return Path(self.lakes.iceberg(table).location().removeprefix("file://"))


class TestParquet(Stories):
    """Plain Parquet."""

    format, backend = "parquet", ParquetBackend
