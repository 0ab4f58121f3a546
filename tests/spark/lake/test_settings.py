"""Weights by a query log, and settings that tables state themselves, in runs over real tables."""

import pytest

import zadapter
from tests.spark.lake.test_maintain import by_table, make_delta, make_iceberg, rows, verdicts
from zadapter.lake import journal, tables

DELTA, ICEBERG = "delta", "iceberg"


def state(spark, table, **properties):
    """Set properties of a table; two underscores stand for a dot."""
    listed = ", ".join(
        f"'zadapter.maintain.{name.replace('__', '.')}' = '{text}'"
        for name, text in properties.items()
    )
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ({listed})")


@pytest.fixture
def raw(tmp_path):
    """A lake of two Delta tables alike, which holds one of them in its budget."""
    for seed, name in enumerate(("a", "b")):
        make_delta(tmp_path / f"raw/{name}", seed)
    size = max(
        sum(file.stat().st_size for file in (tmp_path / f"raw/{name}").glob("*.parquet"))
        for name in ("a", "b")
    )
    return {
        "budget": {"bytes": size + 1_000},
        "defaults": {"by": ["id"], "target_file_size": "16KB"},
        "tables": [{"match": f"{tmp_path}/raw/*"}],
    }


@pytest.mark.slow
def test_the_table_that_queries_read_comes_first(spark, raw, tmp_path):
    """Of two tables alike, as the log says, unless a stated weight says more."""
    for read, other in (("a", "b"), ("b", "a")):
        log = {"queries": [f"SELECT * FROM raw.{read} WHERE id = {n}" for n in range(20)]}
        report = zadapter.maintain(raw | {"reads": log}, dry_run=True, spark=spark)

        assert verdicts(report) == {read: journal.DUE, other: journal.WAITS}
        lines = by_table(report)
        assert (lines[read].weight, lines[other].weight) == (2.0, 0.01)
        (listing, *_) = report.listings()
        assert [row[listing.columns.index("weight")] for row in listing.rows] == ["2", "0.01"]

    state(spark, f"delta.`{tmp_path}/raw/a`", weight="1000")
    report = zadapter.maintain(raw | {"reads": log}, dry_run=True, spark=spark)
    assert verdicts(report) == {"a": journal.DUE, "b": journal.WAITS}
    assert by_table(report)["a"].weight == 10.0


@pytest.mark.slow
def test_a_log_that_cannot_be_read_is_a_failure_that_stops_no_rewrite(spark, raw, tmp_path):
    """The scheduler is told, and the tables are maintained."""
    (tmp_path / "empty").mkdir()
    for queries in (str(tmp_path / "empty"), ["SELECT * FROM elsewhere.t"]):
        reads = {"reads": {"queries": queries}}
        report = zadapter.maintain(raw | reads, dry_run=True, spark=spark)

        assert report.failed == ("[reads]",)
        lines = by_table(report)
        assert "took all tables to be read equally often" in lines.pop("[reads]").error
        assert sorted(each.verdict for each in lines.values()) == [journal.DUE, journal.WAITS]
        assert {each.weight for each in lines.values()} == {1.0}


@pytest.fixture(params=[DELTA, ICEBERG])
def table(request, spark, tmp_path):
    """A table, by its name in SQL, and a lake of it."""
    if request.param == DELTA:
        make_delta(tmp_path / "raw/t", 1)
        name, match = f"delta.`{tmp_path}/raw/t`", f"{tmp_path}/raw/*"
    else:
        spark.sql("CREATE NAMESPACE iceberg.stated")
        name, match = "iceberg.stated.t", "iceberg.stated.*"
        make_iceberg(spark, name, 1)
    yield (
        name,
        {
            "journal": {"table": str(tmp_path / "journal"), "format": "delta"},
            "tables": [{"match": match, "by": ["id"], "target_file_size": "16KB"}],
        },
    )
    if request.param == ICEBERG:
        spark.sql(f"DROP TABLE {name} PURGE")
        spark.sql("DROP NAMESPACE iceberg.stated")


@pytest.mark.slow
def test_properties_override_the_file(spark, table, tmp_path, monkeypatch):
    """Night by night, as its owner changes them; nothing is deleted of a table that is not read."""
    name, lake = table
    lake["tables"][0]["keep"] = {"versions": "30d"}
    (tmp_path / "raw").mkdir(exist_ok=True)

    def night(**keywords):
        report = zadapter.maintain(lake, spark=spark, **keywords)
        return report, by_table(report)["t"]

    state(spark, name, enabled="false")
    report, line = night()
    assert (line.verdict, report.cleaned) == (journal.LEFT_OUT, {})
    assert line.remark == "its property zadapter.maintain.enabled is false"

    state(spark, name, enabled="true", weight="lots")
    report, line = night()
    assert (line.verdict, report.cleaned) == (journal.FAILED, {})
    assert "zadapter.maintain.weight: 'lots' is not a weight; write a number above 0" in line.error

    state(spark, name, weight="3", by='["other"]', keep__versions="40d")
    report, line = night()
    assert (line.verdict, line.weight) == (journal.REWRITTEN, 3.0)
    assert 'zadapter.maintain.by = ["other"]' in report.own[line.table]
    plan = zadapter.plan(line.table, backend=line.format, spark=spark)
    assert (plan.columns, plan.nothing_to_do) == (("other",), True)
    if line.format == DELTA:  # 40 days are 960 hours
        assert "VACUUM" in [step.step for step in report.cleaned[line.table]]

    night()
    with monkeypatch.context() as patched:
        patched.delattr(tables, "_judge_files")  # nothing is judged again
        assert night()[1].verdict == journal.NOTHING_TO_DO
    state(spark, name, by="id")  # no new version of an Iceberg table
    assert night(dry_run=True)[1].verdict == journal.DUE


@pytest.mark.slow
def test_keys_of_the_definition_override_the_file(spark, tmp_path):
    """``CLUSTER BY`` of Delta, and the sort order of Iceberg, which also stands for no keys."""
    spark.sql(
        f"CREATE TABLE delta.`{tmp_path}/raw/c` (id BIGINT, other BIGINT, text STRING) USING delta "
        "CLUSTER BY (other)"
    )
    deltalake_rows = rows(1)
    spark.createDataFrame(deltalake_rows.to_pandas()).repartition(3).write.format("delta").mode(
        "append"
    ).save(f"{tmp_path}/raw/c")
    spark.sql("CREATE NAMESPACE iceberg.ordered")
    try:
        make_iceberg(spark, "iceberg.ordered.s", 1)
        spark.sql("ALTER TABLE iceberg.ordered.s WRITE ORDERED BY bucket(4, id), other DESC")
        entries = [{"match": f"{tmp_path}/raw/*"}, {"match": "iceberg.ordered.*"}]
        size = {"target_file_size": "16KB"}
        lake = {"defaults": size | {"by": ["id"]}, "tables": entries}

        report = zadapter.maintain(lake, dry_run=True, spark=spark)
        assert {name.replace("/", ".").split(".")[-1]: own for name, own in report.own.items()} == {
            "c": ("by = ['other'], by its CLUSTER BY",),
            "s": ("by = ['other'], by its sort order",),
        }

        report = zadapter.maintain(lake | {"defaults": size}, spark=spark)
        assert verdicts(report) == dict.fromkeys("cs", journal.REWRITTEN)
        for line in report.lines:
            plan = zadapter.plan(line.table, backend=line.format, spark=spark)
            assert (plan.columns, plan.nothing_to_do) == (("other",), True)
    finally:
        spark.sql("DROP TABLE IF EXISTS iceberg.ordered.s PURGE")
        spark.sql("DROP NAMESPACE iceberg.ordered")
