"""The command line, from end to end."""

import json

import pytest
from typer.testing import CliRunner

import zadapter.spark
from zadapter.cli.app import app


@pytest.fixture
def events(spark, tmp_path):
    """A folder with a Delta table of a few files, rows in no order."""
    folder = str(tmp_path / "events")
    rows = spark.range(20_000).selectExpr(
        "timestamp_seconds(1700000000 + id * 7919 % 20011) AS event_time",
        "id * 31337 % 997 AS user_id",
        "uuid() AS note",
    )
    rows.repartition(3).write.format("delta").save(folder)
    return folder


def test_plan_then_optimize(spark, events):
    """What plan predicts, optimize does; rows stay; a second run finds nothing to do."""
    before = sorted(spark.read.format("delta").load(events).collect())
    asked = [events, "--by", "event_time,user_id", "--target-file-size", "100KB"]

    planned = CliRunner().invoke(app, ["plan", *asked, "--backend", "delta", "--json"])
    done = CliRunner().invoke(app, ["optimize", *asked, "--verify", "checksum", "--json"])
    again = CliRunner().invoke(app, ["optimize", *asked])

    plan, report = json.loads(planned.stdout), json.loads(done.stdout)
    log = spark.sql(f"DESCRIBE HISTORY delta.`{events}`").orderBy("version").collect()
    assert (planned.exit_code, done.exit_code, again.exit_code) == (0, 0, 0)
    assert plan["share_after"] < plan["share_before"] == 1
    assert report["plan"] == plan
    assert report["verification"] == {"by": "checksum", "read_twice": False, "untested": None}
    assert report["files_added"] == plan["files_written"] > 3
    assert [entry.operation for entry in log] == ["WRITE", "OPTIMIZE"]
    assert "already clustered" in again.stdout
    assert sorted(spark.read.format("delta").load(events).collect()) == before


def test_a_misspelt_column_is_one_line(events):
    """The message names the column that was meant; there is no traceback."""
    answer = CliRunner().invoke(app, ["optimize", events, "--by", "user_ids"])

    assert answer.stderr == "error: the table has no column 'user_ids'; did you mean 'user_id'?\n"
    assert answer.stdout == ""
    assert answer.exit_code == 2


@pytest.mark.usefixtures("spark")
def test_settings_reach_spark(events):
    """--conf is for whatever the session needs: here for the zone of times without one."""
    running, key = zadapter.spark.session(), "spark.sql.session.timeZone"
    before = running.conf.get(key)
    try:
        answer = CliRunner().invoke(
            app, ["plan", events, "--by", "user_id", "--conf", f"{key}=Europe/Vienna"]
        )

        assert answer.exit_code == 0
        assert running.conf.get(key) == "Europe/Vienna"
    finally:
        running.conf.set(key, before)
