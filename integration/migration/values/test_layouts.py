"""The layout comes along: what was clustered is clustered still."""

from functools import cache

import pyarrow.parquet as pq
import pytest

import zadapter
from integration.kit.lakes import settings
from integration.migration.tables import FORMATS, MICROS
from integration.migration.values.test_pairs import COPIED, SHARED
from zadapter.base.locations import bare
from zadapter.errors import UsageError
from zadapter.table.spec import Status

ASKED = {"by": ["a", "s", "t"], "target_file_size": "12KB"}


def events(spark, first=0, rows=4_000):
    return spark.range(first, first + rows).selectExpr(
        "id * 7919 % 4001 AS a",
        "concat('v', id % 50) AS s",
        "timestamp_micros(id * 1234567) AS t",
        "id",
        "id % 2 AS p",
    )


@pytest.fixture(scope="module")
def clustered(lakes, spark):
    """Clustered tables of each format, made once."""

    @cache
    def made(format_, *partition_by):
        table = lakes.make(format_, events(spark), *partition_by)
        report = zadapter.optimize(table, backend=format_, spark=spark, **ASKED)
        assert report.files_added >= 3
        return table

    return made


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to", "mode"), COPIED + SHARED)
def test_what_was_clustered_stays_clustered(lakes, spark, clustered, format_, to, mode):
    """The same request finds nothing to do, and filters read as few rows as before."""
    partition_by = ("p",) if mode == "copy" else ()

    report = lakes.migrate(format_, clustered(format_, *partition_by), to, mode=mode)

    assert report.layout == "adaptive by a, s, t, kept"
    assert report.proof.filters > 0
    assert report.proof.share_source < 0.8
    assert report.proof.share_target <= report.proof.share_source + 0.05
    again = zadapter.optimize(report.target, backend=to, spark=spark, **ASKED)
    assert again.nothing_to_do


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "to"), [("delta", "parquet"), ("parquet", "iceberg")])
@pytest.mark.parametrize("files", [1, 3])
def test_a_copy_of_unclustered_rows_reads_as_much(lakes, spark, format_, to, files):
    """The filters mean the same on both sides: one file is read as a whole, before and after."""
    table = lakes.make(format_, events(spark), files=files)

    report = lakes.migrate(format_, table, to, mode="copy")

    if files == 1:
        assert (report.proof.share_source, report.proof.share_target) == (1.0, 1.0)
    assert report.proof.share_target == pytest.approx(report.proof.share_source, abs=1e-6)


@pytest.mark.slow
def test_around_the_formats_and_back(lakes, spark, clustered):
    """One checksum all the way, nothing to do at the end, and the rows of the beginning."""
    table, format_ = clustered("delta"), "delta"
    before, found = lakes.read(format_, table), []
    for to in ("iceberg", "parquet", "delta"):
        report = lakes.migrate(format_, table, to)
        found.append(report.proof.checksum)
        table, format_ = report.target, to

    assert len(set(found)) == 1
    assert lakes.read("delta", table) == before
    assert lakes.load("delta", table).dtypes == events(spark).dtypes
    assert zadapter.optimize(table, backend="delta", spark=spark, **ASKED).nothing_to_do


@pytest.mark.slow
@pytest.mark.parametrize("to", FORMATS[1:])
def test_a_new_layout_is_fitted_anew(lakes, spark, clustered, to):
    """As if the new table had been clustered by these columns itself."""
    wanted = {"by": ["id"], "target_file_size": "12KB"}

    report = lakes.migrate("delta", clustered("delta"), to, **wanted)

    assert report.layout == "adaptive by id, newly fitted"
    assert zadapter.optimize(report.target, backend=to, spark=spark, **wanted).nothing_to_do
    assert lakes.read(to, report.target) == lakes.read("delta", clustered("delta"))


@pytest.mark.parametrize("more", [{"mode": "in_place"}, {"follow": True}])
def test_rows_that_stay_cannot_be_placed_anew(lakes, clustered, more):
    with pytest.raises(UsageError, match="by="):
        lakes.migrate("delta", clustered("delta"), "iceberg", by=["id"], **more)


def test_auto_copies_where_rows_are_placed_anew(lakes, clustered):
    report = lakes.migrate("delta", clustered("delta"), "iceberg", mode="auto", by=["id"])

    assert report.mode.value == "copy"
    assert "new layout" in report.why


@pytest.mark.slow
def test_half_a_layout_is_kept(lakes, spark):
    """What came after the clustering is placed by the same cuts, and is clustered then, too."""
    table = lakes.make("delta", events(spark))
    zadapter.optimize(table, backend="delta", spark=spark, **ASKED)
    lakes.append("delta", table, events(spark, first=4_000, rows=500))

    report = lakes.migrate("delta", table, "iceberg")

    assert report.layout.endswith("kept")
    assert lakes.read("iceberg", report.target) == lakes.read("delta", table)
    assert zadapter.optimize(report.target, backend="iceberg", spark=spark, **ASKED).nothing_to_do


def test_a_table_that_delta_has_clustered_too_is_carried(lakes, spark):
    """Rows and zadapter's layout come along; that its columns are stated does not."""
    table = lakes.make("delta", events(spark))
    lakes.sql(f"ALTER TABLE delta.`{table}` CLUSTER BY (a, s)")
    zadapter.optimize(table, backend="delta", spark=spark, **ASKED)
    lakes.append("delta", table, events(spark, first=4_000, rows=500))
    with settings(spark, MICROS):
        lakes.sql(f"OPTIMIZE delta.`{table}`")

    report = lakes.migrate("delta", table, "iceberg", mode="in_place")

    assert report.layout.endswith("kept")
    assert lakes.read("iceberg", report.target) == lakes.read("delta", table)
    (lost,) = (item for item in report.items if item.what == "CLUSTER BY (a, s)")
    assert (lost.status, "by=" in lost.how) == (Status.LOST, True)


@pytest.mark.slow
def test_no_layout_is_none(lakes, spark):
    """Rows stay as they lie."""
    report = lakes.migrate("delta", lakes.make("delta", events(spark, rows=50)), "iceberg")

    assert report.layout.startswith("none")


@pytest.mark.parametrize(("format_", "to"), [("delta", "iceberg"), ("iceberg", "parquet")])
def test_bloom_filters_come_along(lakes, spark, format_, to):
    """A copy writes them, and a call without arguments on the new table has nothing to do."""
    table = lakes.make(format_, events(spark))
    zadapter.optimize(
        table, backend=format_, spark=spark, **ASKED, bloom_filters=["id"], row_groups=2
    )

    report = lakes.migrate(format_, table, to)

    plan = zadapter.plan(report.target, backend=to, spark=spark)
    assert (plan.bloom_filters, plan.nothing_to_do) == (("id",), True)
    path, *_ = zadapter.files(report.target, backend=to, spark=spark)["path"].to_pylist()
    footer = pq.read_metadata(bare(path))
    chunks = [footer.row_group(0).column(at) for at in range(footer.num_columns)]
    (chunk,) = (each for each in chunks if each.path_in_schema == "id")
    assert chunk.bloom_filter_length
