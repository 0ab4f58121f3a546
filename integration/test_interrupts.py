"""Ctrl-C and SIGTERM at any time: one line, no files left, and no commit half done."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

import zadapter
from integration.kit.interruptions import (
    LINE,
    PYTHON,
    ROWS,
    Stories,
    interrupted,
    small,
)
from integration.kit.kills import data_files
from zadapter_delta import DeltaBackend
from zadapter_iceberg import IcebergBackend
from zadapter_parquet import ParquetBackend


class TestDelta(Stories):
    """Delta leaves the files of failed writes to VACUUM, zadapter does not."""

    format = "delta"

    def backend(self):
        return DeltaBackend

    def make(self, spark, folder):
        path = str(folder / "events")
        small(spark).write.format("delta").save(path)
        return path, path

    @pytest.mark.slow
    def test_ctrl_c_during_a_migration(self, spark, table, tmp_path):
        """The new table is not there, nor a file of it; the old one is untouched."""
        name, _ = table
        rows, target = self.rows(spark, name), tmp_path / "new"
        arguments = (name, "parquet", str(tmp_path / "done"), json.dumps(self.conf()))
        process = self.start(PYTHON, *arguments, json.dumps([self.format, str(target)]))

        written, output, errors = interrupted(process, target, set())

        assert written, (output, errors[-3000:])
        assert process.returncode == 0, errors
        assert "Repeat the call to finish the migration" in json.loads(output)[0]
        assert data_files(target) == set()
        assert self.rows(spark, name) == rows
        made = zadapter.migrate(name, to="parquet", target=target, backend=self.format, spark=spark)
        assert made.proof.rows == ROWS

    @pytest.mark.slow
    def test_sigterm_on_the_command_line(self, spark, table):
        """As Ctrl-C, with the exit code of its own."""
        name, folder = table
        before = data_files(folder)
        settings = [f"--conf={key}={value}" for key, value in self.conf().items()]
        process = self.start(
            *(LINE, "optimize", name, "--by", "a", "--target-file-size", "4KB", *settings)
        )

        _, _, errors = interrupted(process, folder, before, number=signal.SIGTERM)

        assert process.returncode == 143, errors
        assert errors.splitlines()[-1] == "interrupted; nothing was committed"
        assert data_files(folder) == before


class TestIceberg(Stories):
    """Iceberg keeps the files of failed writes, zadapter does not."""

    format = "iceberg"

    @pytest.fixture(autouse=True)
    def _catalog(self, warehouse):
        self.warehouse = warehouse

    def backend(self):
        return IcebergBackend

    def conf(self):
        return super().conf() | {
            "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
            "spark.sql.catalog.ice.type": "jdbc",
            "spark.sql.catalog.ice.uri": f"jdbc:sqlite:{self.warehouse}/catalog.db",
            "spark.sql.catalog.ice.jdbc.schema-version": "V1",
            "spark.sql.catalog.ice.warehouse": f"file://{self.warehouse}",
        }

    def make(self, spark, folder):
        name = f"ice.interrupts.{folder.name}"
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.interrupts")
        small(spark).writeTo(name).using("iceberg").create()
        return name, str(self.warehouse / "interrupts" / folder.name)


class TestParquet(Stories):
    """Folders of Parquet files."""

    format = "parquet"

    def backend(self):
        return ParquetBackend

    def make(self, spark, folder):
        path = str(folder / "events")
        small(spark).write.parquet(path)
        return path, path

    def test_ctrl_c_during_an_append_whose_rows_never_come(self, spark, table):
        """Every verb that writes can be ended."""
        name, folder = table
        before, began = data_files(folder), Path(folder).parent / "began"

        def endless(rows):
            began.touch()
            while True:
                time.sleep(0.01)
            yield from rows

        def stop():
            while not began.exists():
                time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGINT)

        rows = (
            spark.range(9).selectExpr("id AS a", "id AS c").mapInPandas(endless, "a long, c long")
        )
        threading.Thread(target=stop).start()
        with pytest.raises(KeyboardInterrupt, match="nothing was committed"):
            zadapter.append(name, rows, backend="parquet", spark=spark)

        assert data_files(folder) == before
        assert self.rows(spark, name) == [(ROWS, sum(i * 7919 % 60013 for i in range(ROWS)), ROWS)]
