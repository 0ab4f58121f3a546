"""What tables may hold, and a rewrite may meet."""

from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.kit.variants import slow
from zadapter.errors import UnknownOutcomeError, VerificationError
from zadapter.table import file_stats
from zadapter_iceberg import IcebergBackend


def numbers(spark, rows=2_000):
    return spark.range(rows).selectExpr("id * 7919 % 2003 AS a", "id AS b")


@pytest.mark.slow
def test_more_rows_than_were_replaced(lake, spark):
    """Iceberg's own check surfaces, and nothing is committed."""
    name = lake.make(numbers(spark))
    before = lake.read(name)

    class Adding(IcebergBackend):
        def commit(self, rewrite):
            (exchange,) = rewrite.exchanges
            fewer = replace(exchange, removed=exchange.removed.slice(1))
            return super().commit(replace(rewrite, exchanges=(fewer,)))

    with pytest.raises(UnknownOutcomeError) as raised:
        lake.optimize(name, backend=Adding)

    assert "Invalid REPLACE operation" in str(raised.value.__cause__)
    assert before == lake.read(name)


def test_a_filter_that_few_rows_of_a_file_match(lake, spark):
    """Files are rewritten whole."""
    name = lake.make(numbers(spark))
    before = lake.read(name)

    report = lake.optimize(name, where="b = 3")

    assert report.rows_added > report.files_removed * 100
    assert before == lake.read(name)


def test_rows_that_spark_does_not_read(lake, spark):
    """A reader that skips rows is found out before the commit."""
    name = lake.make(numbers(spark))
    before = lake.read(name)

    class Skipping(IcebergBackend):
        def read(self, snapshot, files):
            return super().read(snapshot, files).where("a <> 7")

    with pytest.raises(VerificationError, match="1999"):
        lake.optimize(name, backend=Skipping)

    assert before == lake.read(name)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["none", "counts", "truncate(4)", "full"])
def test_no_metrics_mode_hides_a_row(lake, spark, mode):
    """What a manifest does not say is unknown: no file that holds a match is pruned."""
    texts = numbers(spark).selectExpr("concat('prefix ', a) a", "b")
    name = lake.make(texts, **{"write.metadata.metrics.default": mode})
    snapshot = (backend := IcebergBackend(spark)).snapshot(name)
    files = backend.files(snapshot, [("a",), ("b",)])

    for number in range(files.num_rows):
        one = files.slice(number, 1)
        held = backend.read(snapshot, one).selectExpr("min(a)", "max(a)").first()
        found = file_stats.column(one, ("a",))
        (stats,) = found.to_pylist() if found is not None else [{"min": None, "max": None}]
        assert stats["min"] is None or stats["min"] <= held[0]
        assert stats["max"] is None or stats["max"] >= held[1]
        assert (mode in {"none", "counts"}) == (stats["min"] is None)
    backend.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "type_", ["timestamp", "double", *slow("timestamp_ntz", "date", "decimal(20,3)")]
)
def test_times_and_numbers_are_keys_and_conditions(lake, spark, type_):
    """Their bounds are used: files are left out by a condition, and clustering helps."""
    made = "timestamp_seconds(id * 86400)" if type_[:4] in {"time", "date"} else "id"
    rows = spark.range(2_000).selectExpr(f"CAST({made} AS {type_}) AS a", "id AS b")
    name = lake.make(rows)

    report = lake.optimize(name, target_file_size="4KB")

    assert report.share_after < 0.5
    early = rows.where("b = 7").first().a
    literal = "7" if made == "id" else f"{type_} '{early}'"
    asked = lake.plan(name, by="b", where=f"a <= {literal}")
    assert asked.files_asked == 1 < asked.files_before


@pytest.mark.parametrize("version", [2, 3])
def test_row_groups_are_as_asked_although_rows_are_deleted(lake, spark, version):
    """Where the live rows are not counted, the files say about how many there are."""
    name = lake.make(
        numbers(spark), format_version=version, **{"write.delete.mode": "merge-on-read"}
    )
    lake.sql(f"DELETE FROM {name} WHERE b = 7")

    lake.optimize(name, target_file_size="4KB", row_groups=4)

    assert {footer.num_row_groups for footer in lake.footers(name)} <= {4, 5}


@pytest.mark.slow
def test_files_without_ids_under_renamed_columns(lake, spark, tmp_path):
    """Files that add_files has brought in keep their values under the columns' new names."""
    name = lake.make(numbers(spark, 0))
    for part in range(3):
        rows = range(part * 100, part * 100 + 100)
        pq.write_table(
            pa.table({"a": [n * 37 % 301 for n in rows], "b": rows}), tmp_path / f"{part}.parquet"
        )
    source = f"source_table => '`parquet`.`{tmp_path}`'"
    lake.sql(f"CALL ice.system.add_files(table => '{name}', {source})")
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN b TO c")

    report = lake.optimize(name, by=["a", "c"])

    assert report.rows_added == 300
    assert sorted(row.c for row in lake.load(name).collect()) == list(range(300))
    assert {file["c"] for file in lake.table(name).scan().to_arrow().to_pylist()} == {*range(300)}


@pytest.mark.slow
def test_a_history_of_many_rewrites(lake, spark):
    """What an old rewrite has removed stays removed."""
    name = lake.make(numbers(spark))
    before = lake.read(name)

    for by in ("a", "b", "a"):
        report = lake.optimize(name, by=[by])

    assert before == lake.read(name)
    assert len(lake.files(name)) == report.files_added
    backend = IcebergBackend(spark)
    found = backend.files(backend.snapshot(name))["path"].to_pylist()
    assert sorted(found) == sorted(file.file_path for file in lake.files(name))
