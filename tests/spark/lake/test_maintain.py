"""Runs over lakes of real tables, as a user starts them night by night."""

import json
import re
import shutil
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from uuid import UUID

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pyiceberg.catalog.sql import SqlCatalog
from typer.testing import CliRunner

import zadapter
from tests.kit.lineage import send_to_file
from zadapter.base.phases import observing
from zadapter.cli.app import app
from zadapter.errors import ReportError, UsageError
from zadapter.lake import journal, maintain, tables

ROWS = 3_000
DOWN = {
    "spark.sql.catalog.down": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.down.type": "rest",
    "spark.sql.catalog.down.uri": "http://localhost:1/",
}


def rows(seed):
    """Rows in no order of their key."""
    ids = [(i * 7919 + seed) % ROWS for i in range(ROWS)]
    texts = [f"{seed} {i * i:040}" for i in range(ROWS)]
    return pa.table({"id": ids, "other": [i * 31 % 997 for i in ids], "text": texts})


def parts(seed):
    """The rows of three files."""
    return [rows(seed).slice(part * ROWS // 3, ROWS // 3) for part in range(3)]


def make_delta(folder, seed, **keywords):
    for part in parts(seed):
        deltalake.write_deltalake(str(folder), part, mode="append", **keywords)


def make_iceberg(spark, name, seed):
    made = spark.createDataFrame(rows(seed).to_pandas()).repartition(3)
    made.writeTo(name).using("iceberg").create()


def make_parquet(folder, seed):
    folder.mkdir(parents=True)
    for number, part in enumerate(parts(seed)):
        pq.write_table(part, folder / f"part-{number}.parquet")


def read_delta(folder):
    return deltalake.DeltaTable(str(folder)).to_pyarrow_table()


def read_iceberg(spark, name):
    prefix = "spark.sql.catalog.iceberg"
    uri = spark.conf.get(f"{prefix}.uri").removeprefix("jdbc:").replace("sqlite:", "sqlite:///")
    catalog = SqlCatalog("iceberg", uri=uri, warehouse=spark.conf.get(f"{prefix}.warehouse"))
    return catalog.load_table(name.removeprefix("iceberg.")).scan().to_arrow()


def read_parquet(spark, folder):
    return pq.read_table(zadapter.files(folder, spark=spark)["path"].to_pylist())


def in_order(table):
    return table.select(["id", "other", "text"]).sort_by("text").to_pylist()


def by_table(report):
    """Return the lines of a report by the last part of the table's name."""
    return {line.table.replace("/", ".").split(".")[-1]: line for line in report.lines}


def verdicts(report):
    return {name: line.verdict for name, line in by_table(report).items()}


def rewritten(report):
    """Return the number of tables that were rewritten."""
    return sum(line.verdict == journal.REWRITTEN for line in report.lines)


def read_failing(metrics):
    """Return the tables that have failed by the metrics of a run."""
    families = text_string_to_metric_families(metrics.read_text())
    every = {family.name: family.samples for family in families}
    return {each.labels["table"] for each in every["zadapter_table_failed"] if each.value == 1}


def check_rows(spark, folder):
    """No row of the mixed lake is lost, doubled or changed."""
    assert in_order(read_delta(folder / "delta/a")) == in_order(rows(1))
    assert in_order(read_iceberg(spark, "iceberg.nightly.b")) == in_order(rows(2))
    assert in_order(read_parquet(spark, str(folder / "plain/c"))) == in_order(rows(3))


def told_of(event, location, state):
    """Tell whether an event is that of a state of a local table."""
    (output,) = event["outputs"]
    place = (output["namespace"], output["name"], event["eventType"])
    return place == ("file", str(location), state)


@pytest.fixture
def mixed(spark, tmp_path):
    """A lake of three formats."""
    make_delta(tmp_path / "delta/a", 1)
    spark.sql("CREATE NAMESPACE iceberg.nightly")
    make_iceberg(spark, "iceberg.nightly.b", 2)
    make_parquet(tmp_path / "plain/c", 3)
    yield {
        "journal": {"table": str(tmp_path / "journal"), "format": "parquet"},
        "defaults": {"by": ["id"], "target_file_size": "16KB"},
        "tables": [
            {"match": f"{tmp_path}/delta/*"},
            {"match": "iceberg.nightly.*"},
            {
                "match": f"{tmp_path}/plain/*",
                "format": "parquet",
                "keep": {"versions": "30d"},
            },
        ],
    }
    spark.sql("DROP TABLE iceberg.nightly.b PURGE")
    spark.sql("DROP NAMESPACE iceberg.nightly")


def test_night_by_night_each_table_has_its_turn(  # noqa: PLR0915 - the story of three nights
    spark, mixed, tmp_path, monkeypatch
):
    """Under a budget that is too small for one night; only rewrites tell OpenLineage of it."""
    config, events = send_to_file(tmp_path)
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    before = sorted(tmp_path.rglob("*"))
    due = zadapter.maintain(mixed, dry_run=True, spark=spark)

    # a folder without a log has no older version to clean up
    assert (set(verdicts(due).values()), due.failed) == ({journal.DUE}, ())
    assert sorted(tmp_path.rglob("*")) == before

    limit = due.bytes_rewritten - 1
    limited = mixed | {"budget": {"bytes": limit}}
    nights = [zadapter.maintain(limited, spark=spark) for _ in range(2)]
    first, second = map(verdicts, nights)

    assert sorted(first.values()) == [journal.REWRITTEN, journal.REWRITTEN, journal.WAITS]
    (waits,) = (name for name, verdict in first.items() if verdict == journal.WAITS)
    assert by_table(nights[0])[waits].waited == 1
    assert second == dict.fromkeys(second, journal.NOTHING_TO_DO) | {waits: journal.REWRITTEN}
    assert all(0 < night.bytes_rewritten <= limit for night in nights)
    assert sum(night.bytes_rewritten for night in nights) == due.bytes_rewritten

    nights.append(zadapter.maintain(limited, spark=spark))
    with monkeypatch.context() as patched:
        patched.delattr(tables, "opening")  # discovery has opened all tables, and nothing is judged
        settled = zadapter.maintain(limited, dry_run=True, spark=spark)
    for night in (nights[2], settled):
        assert set(verdicts(night).values()) == {journal.NOTHING_TO_DO}
    after = {name: (line.files, line.share_after) for name, line in by_table(settled).items()}
    assert after == {
        name: (line.files, line.share_after) for name, line in by_table(nights[1]).items()
    }

    stored = read_parquet(spark, str(tmp_path / "journal"))
    assert sorted(zip(*(stored[name].to_pylist() for name in ("run", "table")), strict=True)) == (
        sorted((night.run, line.table) for night in nights for line in night.lines)
    )
    parts_of = [each["run"]["facets"]["parent"]["run"]["runId"] for each in events()]
    expected = [str(UUID(night.run)) for night in nights for _ in range(2 * rewritten(night))]
    assert parts_of == expected
    assert Counter(each["eventType"] for each in events()) == {"START": 3, "COMPLETE": 3}
    (done,) = (each for each in events() if told_of(each, tmp_path / "delta/a", "COMPLETE"))
    actions = deltalake.DeltaTable(str(tmp_path / "delta/a")).get_add_actions()
    sizes = actions["size_bytes"].to_pylist()
    written = done["outputs"][0]["outputFacets"]["outputStatistics"]
    assert (written["fileCount"], written["size"]) == (len(sizes), sum(sizes))
    assert written["rowCount"] == ROWS

    check_rows(spark, tmp_path)

    mixed["tables"][0]["by"] = ["other"]
    again = verdicts(zadapter.maintain(limited, dry_run=True, spark=spark))
    assert again == {"a": journal.DUE, "b": journal.NOTHING_TO_DO, "c": journal.NOTHING_TO_DO}


@pytest.fixture
def written(tmp_path):
    """Writes the file of a lake of the Delta tables in a folder."""

    def write(*, keep="", journal="", match="*"):
        file = tmp_path / "lake.toml"
        file.write_text(
            f"""
            {journal}
            [[tables]]
            match = "{tmp_path}/raw/{match}"
            by = ["id"]
            target_file_size = "16KB"
            {keep}
            """
        )
        return file

    return write


def test_failures_stay_with_their_table(  # noqa: PLR0915 - one run over all of them
    spark, conf, tmp_path, written, monkeypatch
):
    """Each line says what is wrong, and the command line tells the scheduler."""
    conf(DOWN)
    raw = tmp_path / "raw"
    for seed, name in enumerate(("bug", "changed", "damaged", "gone", "lost", "well")):
        make_delta(raw / name, seed)
    make_delta(raw / "blind", 0, configuration={"delta.dataSkippingNumIndexedCols": "0"})
    deltalake.write_deltalake(str(raw / "narrow"), rows(0).select(["text"]))
    next(raw.glob("lost/*.parquet")).unlink()
    (raw / "damaged/_delta_log/00000000000000000001.json").write_text("{")
    judge, choose = maintain.judge, maintain.choose
    monkeypatch.setattr(maintain, "judge", lambda *a: 1 / ("bug" not in a[1].table) and judge(*a))

    def meanwhile(candidates, *arguments):
        """Others delete a table and write to one."""
        shutil.rmtree(raw / "gone")
        deltalake.write_deltalake(str(raw / "changed"), rows(99), mode="append")
        return choose(candidates, *arguments)

    monkeypatch.setattr(maintain, "choose", meanwhile)
    lake = written(
        keep='keep = { versions = "8d" }',
        journal=f"""
            [journal]
            table = "{tmp_path}/journal"
            [[tables]]
            match = "down.*.*"
        """,
    )

    metrics = tmp_path / "lake.prom"
    answer = CliRunner().invoke(app, ["maintain", str(lake), "--json", "--metrics", str(metrics)])

    assert answer.exit_code == 3, answer.output
    report = json.loads(answer.stdout)
    lines = {line["table"].rpartition("/")[2]: line for line in report["lines"]}
    failed = {name: line["error"] for name, line in lines.items() if line["verdict"] == "failed"}
    assert failed.pop("bug") == "ZeroDivisionError: division by zero"
    assert "no column 'id'" in failed.pop("narrow")
    assert "no stats are collected for id" in failed.pop("blind")
    assert "missing" in failed.pop("lost")
    assert "gone" in failed.pop("gone")
    assert "damaged" in failed.pop("damaged")
    assert "cannot be listed" in failed.pop("down.*.*")
    assert failed == {}
    assert lines["well"]["verdict"] == "rewritten"
    assert lines["changed"]["verdict"] == "rewritten in part"
    assert in_order(read_delta(raw / "well")) == in_order(rows(5))
    assert in_order(read_delta(raw / "changed")) == in_order(pa.concat_tables([rows(1), rows(99)]))
    assert {table.rpartition("/")[2] for table in report["cleaned"]} == {"well", "changed"}
    assert all(steps[-1]["error"] is None for steps in report["cleaned"].values())
    assert len(read_failing(metrics)) == 7
    assert read_failing(metrics) == set(report["failed"])
    assert read_parquet(spark, str(tmp_path / "journal")).num_rows == len(lines) == 9


@pytest.mark.slow
def test_the_journal_alone_gives_the_page_of_its_last_run(spark, tmp_path, written):
    """But for the duration, and with the same trend."""
    make_delta(tmp_path / "raw/a", 1)
    make_delta(tmp_path / "raw/b", 2)
    lake, file = written(journal=f'journal.table = "{tmp_path}/journal"'), tmp_path / "lake.html"
    zadapter.maintain(lake, spark=spark)
    settled = replace(zadapter.maintain(lake, spark=spark), seconds=0.0)

    answer = CliRunner().invoke(app, ["history", str(lake), "--html", str(file)])

    assert answer.exit_code == 0, answer.output
    page = file.read_text(encoding="utf-8")
    assert page == settled.to_html().replace("<div><dt>seconds</dt><dd>0</dd></div>", "")
    assert "rewritten in 1 of 2 runs" in page


def test_a_journal_that_is_no_journal_is_refused_before_any_rewrite(spark, tmp_path, written):
    make_delta(tmp_path / "raw/a", 1)
    make_parquet(tmp_path / "other", 1)

    with pytest.raises(UsageError, match="not a journal"):
        zadapter.maintain(written(journal=f'journal.table = "{tmp_path}/other"'), spark=spark)

    assert deltalake.DeltaTable(str(tmp_path / "raw/a")).version() == 2


@pytest.mark.slow
def test_a_journal_that_fails_at_the_end_does_not_hide_what_was_done(
    spark, tmp_path, written, monkeypatch
):
    make_delta(tmp_path / "raw/a", 1)
    choose = maintain.choose

    def meanwhile(*arguments):
        shutil.rmtree(tmp_path / "journal")
        (tmp_path / "journal").touch()
        return choose(*arguments)

    monkeypatch.setattr(maintain, "choose", meanwhile)
    with pytest.raises(ReportError, match=f"{tmp_path}/raw/a") as failure:
        zadapter.maintain(written(journal=f'journal.table = "{tmp_path}/journal"'), spark=spark)

    assert failure.value.committed
    assert deltalake.DeltaTable(str(tmp_path / "raw/a")).version() == 3


def test_a_table_that_was_dropped_and_created_again_is_judged_again(spark, tmp_path):
    """Its path, format and version are those of the table that the last run has left."""
    table = tmp_path / "raw/a"
    make_delta(table, 1)
    entry = {"match": str(table), "by": ["id"], "target_file_size": "16KB"}
    lake = {"journal": {"table": f"{tmp_path}/journal", "format": "parquet"}, "tables": [entry]}

    (first,) = zadapter.maintain(lake, spark=spark).lines
    shutil.rmtree(table)
    make_delta(table, 2)
    deltalake.write_deltalake(str(table), parts(3)[0], mode="append")
    (second,) = zadapter.maintain(lake, dry_run=True, spark=spark).lines

    assert (first.verdict, second.verdict) == (journal.REWRITTEN, journal.DUE)
    assert first.version == second.version


def test_a_clean_up_that_is_refused_costs_no_rewrite(spark, tmp_path, written):
    """Delta keeps files for a week: the rewrite would leave files that nothing deletes."""
    make_delta(tmp_path / "raw/a", 1)

    report = zadapter.maintain(written(keep='keep = { versions = "1h" }'), spark=spark)

    (line,) = report.lines
    assert (line.verdict, line.bytes_rewritten) == (journal.FAILED, 0)
    assert "delta.deletedFileRetentionDuration" in line.error
    assert deltalake.DeltaTable(str(tmp_path / "raw/a")).version() == 2


def test_a_clean_up_of_a_few_files_has_a_few_tasks(spark, tmp_path, written):
    """Delta lists a table in as many tasks as it is told, be it of three files or of millions."""
    make_delta(tmp_path / "raw/a", 1)
    context, group, phases = spark.sparkContext, "a clean-up of a few files", []
    context.setJobGroup(group, group)

    def note(step):
        if step.call is not None:
            phases.append((step.call.name, step.name))
        return nullcontext()

    try:
        lake = written(keep='keep = { versions = "8d", orphans = "8d" }')
        with observing(note):
            report = zadapter.maintain(lake, dry_run=True, spark=spark)
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)

    assert [step.error for (step,) in report.cleaned.values()] == [None]
    tracker = context.statusTracker()
    jobs = [tracker.getJobInfo(each) for each in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(each) for job in jobs for each in job.stageIds]
    assert 0 < max(stage.numTasks for stage in stages if stage) < 20
    # what a progress line shows from the beginning to the end
    assert phases == [
        *(("maintain", "discover"), ("analyze", "plan")),
        *(("maintain", "weigh"), ("maintain", "clean")),
    ]


@pytest.mark.slow
def test_conditions_and_ages_count_each_night(spark, tmp_path):
    """A table that has not changed can be due tomorrow; its journal is no table of the lake."""
    make_delta(tmp_path / "raw/a", 1)
    entry = {"match": f"{tmp_path}/raw/*", "by": ["id"], "target_file_size": "16KB"}
    lake = {"journal": {"table": f"{tmp_path}/raw/journal", "format": "delta"}}

    def verdict(*, dry_run=True, **options):
        asked = lake | {"tables": [entry | options]}
        return verdicts(zadapter.maintain(asked, dry_run=dry_run, spark=spark))

    nothing, due = {"a": journal.NOTHING_TO_DO}, {"a": journal.DUE}
    assert verdict(where="id < 0", dry_run=False) == nothing
    assert verdict(min_age="1d", dry_run=False) == nothing
    later = int((datetime.now(timezone.utc) - timedelta(days=2)).timestamp() * 1_000)
    for log in (tmp_path / "raw/a/_delta_log").glob("*.json"):
        log.write_text(
            re.sub(r'"modificationTime":\d+', f'"modificationTime":{later}', log.read_text())
        )
    assert verdict(min_age="1d") == due
    assert verdict(where="id >= 0") == due
    assert verdict(tiers={"id": {"hot": "1d"}}).popitem()[1] == journal.FAILED
