"""Whoever looks at a table of any format sees the same facts, and they are true."""

import json
from pathlib import Path
from urllib.parse import unquote, urlparse

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import zadapter
from integration.fuzz.pruning.engines import EngineTrial
from integration.fuzz.pruning.trials import SESSION
from integration.kit.lakes import settings
from integration.migration.tables import Lakes
from tests.kit.variants import slow
from zadapter.backend.plugins import load
from zadapter.errors import ConflictError, UnknownColumnError, UnsupportedError, UsageError
from zadapter_delta.commits.rewrites import refuse_another

ROWS = 4_000


class Insight:
    """What all formats have in common."""

    format: str

    @pytest.fixture(scope="class")
    def lakes(self, spark, catalog, tmp_path_factory):
        return Lakes(spark, catalog, tmp_path_factory.mktemp("seen"))

    @pytest.fixture(scope="class")
    def table(self, lakes):
        """Files that all overlap, in two partitions."""
        rows = lakes.spark.range(ROWS).select(
            F.col("id"),
            (F.col("id") * 31337 % 9973).alias("k"),
            F.sha2(F.col("id").cast("string"), 256).alias("s"),
            F.when(F.col("id") % 5 > 0, F.col("id") / 7).alias("f"),
            F.col("id").cast("decimal(12, 2)").alias("amount"),
            (F.col("id") % 2 == 0).alias("even"),
            F.array("id").alias("list"),
        )
        return lakes.make(self.format, rows, files=6)

    def asked(self, spark):
        return {"backend": self.format, "spark": spark}

    def test_explain_names_the_files_that_spark_reads(self, lakes):
        """Conditions on values of every type, before and after an optimize."""
        trial = EngineTrial(lakes, self.format, "spark", 0, rows=300, conditions=10)

        with settings(lakes.spark, SESSION):
            found = trial.run()

        assert found.wrong == []
        assert found.asked["after, explain"] > 4
        assert sum(found.pruned["after, explain"]) > 0

    @pytest.mark.slow
    def test_a_table_is_due_until_it_is_clustered(self, table, spark):
        """The verdict is that of optimize; conditions, functions and columns are told apart."""
        asked, by = self.asked(spark), ["id", "k"]
        queries = ["k < 100", "upper(s) = 'A'", "CAST(id AS STRING) = '7'"]
        before = zadapter.analyze(table, by=by, queries=queries, row_groups=True, **asked)
        unkeyed = zadapter.analyze(table, **asked)
        joined = zadapter.plan(table, **asked)

        report = zadapter.optimize(table, by=by, target_file_size="16KB", **asked)
        after = zadapter.analyze(table, queries=queries, row_groups=True, sample_files=3, **asked)

        assert (unkeyed.by, unkeyed.rewrite.gain) == ((), 0)
        assert unkeyed.due == (not joined.nothing_to_do)
        assert before.due
        assert before.share == before.row_groups.share_by_file == 1
        assert before.columns[0].depth.largest == 6
        assert (after.due, after.by) == (False, ("id", "k"))
        assert after.totals.files == report.files_added > 4
        assert abs(after.share - report.share_after) < 0.15
        assert after.row_groups.files == 3
        assert after.row_groups.share <= after.row_groups.share_by_file
        few, all_, cast = after.queries
        assert few.read.files < after.totals.files == all_.read.files == cast.read.files
        assert "upper(s)" in all_.unused[0].lower()
        assert "cast" in cast.unused[0]
        assert "list" not in {column.column for column in after.columns}
        json.dumps(after.to_dict(files=True), allow_nan=False)
        assert len(report.plot().axes) == 3

    def test_wrong_conditions_are_refused_and_others_told(self, table, spark):
        """With Spark's position; what a function hides is said."""
        asked = self.asked(spark)
        with pytest.raises(UsageError, match=r"pos 4|near"):
            zadapter.explain(table, "id ==== 3", **asked)
        with pytest.raises(UnknownColumnError, match="nosuch"):
            zadapter.analyze(table, queries=["nosuch = 1"], **asked)
        with pytest.raises(UsageError, match="subquery"):
            zadapter.explain(table, "id IN (SELECT 1)", **asked)
        with pytest.raises(UnknownColumnError, match="nosuch"):
            zadapter.analyze(table, by="nosuch", **asked)

        assert "an array" in zadapter.analyze(table, by="list", **asked).note
        told = zadapter.explain(table, "size(list) = 1 AND id >= 0", row_groups=True, **asked)
        assert told.kept == told.totals
        assert any("size(list)" in part.why for part in told.parts)
        assert zadapter.explain(table, "false", **asked).engine.read.files == 0

    def test_an_audit_finds_what_it_wrote_to_be_sound(self, table, spark):
        """By footers and by values; nothing is left to repair."""
        for deep in (False, True):
            found = zadapter.audit(table, deep=deep, repair=True, **self.asked(spark))

            assert (found.unsound, found.missing, found.unsure) == (0, 0, 0)
            assert found.repaired_version is None
            assert "id" in found.columns

    def test_an_audit_lists_the_files_that_are_lost(self, lakes, spark):
        """One is missing, one is damaged; the others are compared."""
        rows = lakes.spark.range(40_000).selectExpr("id", "id * 31 % 997 AS k")
        table = lakes.make(self.format, rows, files=4)
        layout = {"by": ["id"], "target_file_size": "16KB", "force": True}
        zadapter.optimize(table, **layout, **self.asked(spark))  # a folder gets a log
        backend = load(self.format)(spark)
        snapshot = backend.snapshot(table)
        paths = backend.files(snapshot)["path"].to_pylist()
        first, second = (
            Path(unquote(urlparse(uri).path)) for uri in backend.uris(snapshot, paths[:2])
        )
        first.unlink()
        second.write_bytes(second.read_bytes()[:-9])
        second.with_name(f".{second.name}.crc").unlink(missing_ok=True)

        for deep in (False, True):
            found = zadapter.audit(table, deep=deep, **self.asked(spark))

            assert (found.unreadable, found.files_audited) == (2, len(paths) - 2)
            assert found.files_audited > 1
            assert not found.sound_now
            lost = [row for row in found.findings.to_pylist() if row["kind"] == "unreadable"]
            assert [row["path"] for row in lost] == paths[:2]
            assert "is missing" in lost[0]["found"]
            assert "is damaged" in lost[1]["found"]
            assert first.name in str(found)


class TestDelta(Insight):
    """Delta."""

    format = "delta"

    @pytest.mark.slow
    def test_wrong_stats_are_repaired_without_new_data(self, lakes, spark):
        """A lower bound that is too high hides a row; one commit of add actions brings it back."""
        table = lakes.make("delta", spark.range(100).selectExpr("id", "id * 3 AS k"), files=2)
        falsify(table, spark)
        hidden = zadapter.explain(table, "id = 0", backend="delta", spark=spark)

        wrong = zadapter.audit(table, backend="delta", spark=spark)
        done = zadapter.audit(table, repair=True, backend="delta", spark=spark)
        after = zadapter.audit(table, deep=True, backend="delta", spark=spark)

        assert hidden.kept.files < 2
        assert (wrong.sound, wrong.repaired_version) == (False, None)
        assert {row["what"] for row in wrong.findings.to_pylist()} == {
            "lower bound", "upper bound", "number of nulls"
        }  # fmt: skip
        assert (len(done.repaired), done.repaired_version) == (2, 1)
        assert (after.unsound, after.missing) == (0, 0)
        actions = [json.loads(line) for line in commit(table, 1).read_text().splitlines()]
        adds = [action["add"] for action in actions if "add" in action]
        assert len(adds) == 2
        assert not any(add["dataChange"] for add in adds)
        assert not any("remove" in action for action in actions)
        assert lakes.load("delta", table).where("id = 0").count() == 1
        assert deltalake.DeltaTable(table).to_pyarrow_table().num_rows == 100

    def test_a_repair_names_each_file_as_the_log_does(self, lakes, spark):
        """Under another spelling of its path, a file would be live twice, and so its rows."""
        rows = spark.range(100).selectExpr("id", "id * 3 AS k", "id % 2 = 0 AS even", "'Zürich' c")
        table = lakes.make("delta", rows, "c", files=1)
        falsify(table, spark)

        done = zadapter.audit(table, repair=True, backend="delta", spark=spark)

        added = [json.loads(line) for line in commit(table, 1).read_text().splitlines()]
        (stats,) = [json.loads(action["add"]["stats"]) for action in added if "add" in action]
        assert len(done.repaired) == 1
        assert lakes.load("delta", table).count() == 100
        assert stats["nullCount"] == {"id": 0, "k": 0, "even": 0}

    @pytest.mark.parametrize("vectors", ["true", *slow("false")])
    def test_a_repair_brings_no_deleted_row_back(self, lakes, spark, monkeypatch, vectors):
        """Another writer deletes rows after the stats were compared: the repair loses the race."""
        rows = spark.range(100).selectExpr("id", "id * 3 AS k")
        table = lakes.make("delta", rows, files=2, enableDeletionVectors=vectors)
        falsify(table, spark)

        def refuse(jvm, snapshot):
            refuse_another(jvm, snapshot)
            gone = "k < 9" if vectors == "true" else "k >= 0"
            lakes.sql(f"DELETE FROM delta.`{table}` WHERE {gone}")

        monkeypatch.setattr("zadapter_delta.commits.rewrites.refuse_another", refuse)
        with pytest.raises(ConflictError):
            zadapter.audit(table, repair=True, backend="delta", spark=spark)

        left = 97 if vectors == "true" else 0
        assert lakes.load("delta", table).count() == left
        assert deltalake.DeltaTable(table).version() == 1


class TestIceberg(Insight):
    """Iceberg."""

    format = "iceberg"

    def test_stats_of_manifests_cannot_be_replaced_alone(self, table, spark):
        """The audit would say so."""
        backend = load("iceberg")(spark)
        snapshot = backend.snapshot(table)

        with pytest.raises(UnsupportedError, match="manifest entry"):
            backend.restate(snapshot, backend.files(snapshot))


class TestParquet(Insight):
    """Plain Parquet."""

    format = "parquet"

    def test_folders_in_hives_layout_are_seen_as_they_are(self, lakes, spark):
        """Without a log: partitions, one of them null, exclude files for Spark, too."""
        rows = spark.range(60).selectExpr(
            "id", "if(id % 4 = 3, null, date_add(DATE '2024-01-01', int(id % 4))) AS day",
            "int(id % 2) AS hour",
        )  # fmt: skip
        table = lakes.make("parquet", rows, "day", "hour", files=1)
        asked = {"backend": "parquet", "spark": spark}

        found = zadapter.analyze(table, by="id", where="day IS NOT NULL", **asked)
        read = zadapter.explain(table, "day = DATE '2024-01-02' AND id >= 0", **asked)

        assert (found.version, found.totals.files, found.partitions) == (None, 3, 3)
        assert (read.kept.files, read.totals.files) == (1, 4)
        assert {row["column"] for row in read.files.to_pylist() if not row["kept"]} == {"day"}
        assert read.engine.read.files >= 1
        with pytest.raises(UsageError, match="partition column"):
            zadapter.optimize(table, by="day", **asked)
        assert "partition column" in zadapter.analyze(table, by="day", **asked).verdict

    def test_wrong_stats_are_repaired_in_new_parts(self, lakes, spark):
        """The stats table's parts are replaced by one entry of the log; rows and files stay."""
        table = lakes.make("parquet", spark.range(100).selectExpr("id", "id * 3 AS k"), files=4)
        asked = {"backend": "parquet", "spark": spark}
        zadapter.optimize(table, by=["id"], target_file_size="1KB", force=True, **asked)
        for part in Path(table, "_zadapter", "stats").glob("*.stats"):
            stats = pq.read_table(part)
            raised = pa.array([70] * stats.num_rows, stats.schema.field("id_minValue").type)
            at = stats.column_names.index("id_minValue")
            pq.write_table(stats.set_column(at, stats.schema.field(at), raised), part)

        wrong = zadapter.audit(table, **asked)
        done = zadapter.audit(table, repair=True, **asked)

        assert wrong.unsound > 0
        assert done.repaired_version == wrong.version + 1
        assert zadapter.audit(table, deep=True, **asked).sound
        assert zadapter.read(table, where="id = 0", **asked).count() == 1
        assert zadapter.read(table, **asked).count() == 100
        assert not zadapter.analyze(table, **asked).due  # the layout is kept


def commit(table, version):
    """Return an entry of a Delta log."""
    return Path(table, "_delta_log", f"{version:020}.json")


def falsify(table, spark):
    """Write wrong stats to the first entry of a Delta log: no nulls counted, bounds moved."""
    entry = commit(table, 0)
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for add in (action["add"] for action in actions if "add" in action):
        stats = json.loads(add["stats"])
        stats["minValues"]["id"] = 90
        stats["maxValues"].pop("k")
        stats["nullCount"]["k"] = 7
        add["stats"] = json.dumps(stats)
    entry.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    for checksum in entry.parent.glob("*.crc"):
        checksum.unlink()
    for checksum in entry.parent.glob(".*.crc"):
        checksum.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # noqa: SLF001
