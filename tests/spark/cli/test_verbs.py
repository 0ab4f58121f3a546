"""All commands on real tables, one after the other, as a user would."""

import json

import pytest
from typer.testing import CliRunner

from zadapter.cli.app import app

SPREAD = "id * 7919 % 6007 AS n"


def say(*arguments, code=0, charset="utf-8"):
    """Run the command line; return what it prints, and check the exit code."""
    answer = CliRunner(charset=charset).invoke(app, list(arguments))
    assert answer.exit_code == code, answer.output
    return answer.stdout


def tell(*arguments, code=0):
    """Run the command line; return the JSON document that it prints."""
    return json.loads(say(*arguments, "--json", code=code))


@pytest.fixture
def plain(spark, tmp_path):
    """A folder of plain Parquet files, with a partition column and names of many alphabets."""
    rows = spark.range(6_000).selectExpr(
        "id * 7919 % 6007 AS n",
        "CASE id % 3 WHEN 0 THEN 'Ä' WHEN 1 THEN '東京' END AS name",
        "id % 2 AS half",
    )
    folder = str(tmp_path / "plain")
    rows.repartition(3).write.partitionBy("half").parquet(folder)
    return folder


@pytest.fixture
def clustered(plain):
    """The same folder as version 1 of a table."""
    say("optimize", plain, "--by", "n", "--backend", "parquet", "--target-file-size", "8KB")
    return plain


def test_files_and_rows_are_found_by_a_condition(plain):
    """What plan predicts, optimize does; then a condition finds few files."""
    keys = ("--by", "n", "--backend", "parquet", "--target-file-size", "8KB")
    plan, report = tell("plan", plain, *keys), tell("optimize", plain, *keys)
    every, few = tell("files", plain), tell("files", plain, "--where", "n < 100", "--row-groups")

    assert report["plan"] == plan
    assert sum(file["rows"] for file in every) == 6_000
    assert 0 < len(few) < len(every)
    assert all(file["row_groups"] for file in few)
    assert f"{len(every)} files of" in say("files", plain)
    assert "first 2 rows; --limit shows more" in say("read", plain, "--limit", "2")
    assert len(say("read", plain, "--limit", "70", "--json").splitlines()) == 70


def test_rows_are_written_and_versions_restored(spark, clustered, tmp_path):
    """Each command makes one commit; the history has all of them."""
    new, zero = str(tmp_path / "new"), str(tmp_path / "zero")
    spark.createDataFrame([(-1, 0), (-2, 1)], "n BIGINT, half INT").write.csv(new)
    spark.createDataFrame([(7, 0)], "n BIGINT, half INT").write.parquet(zero)
    written = (new, "--format", "csv", "--schema", "n BIGINT, half INT")
    negative = ("read", clustered, "--where", "n < 0")

    assert tell("append", clustered, *written)["version"] == 2
    rows = [json.loads(line) for line in say(*negative, "--json").splitlines()]
    assert sorted((row["n"], row["name"]) for row in rows) == [(-2, None), (-1, None)]

    assert tell("delete", clustered, "--where", "n < 0")["rows_deleted"] == 2
    assert say(*negative, "--json") == ""
    assert "2 rows" in say(*negative, "--version", "2")

    assert "version 4" in say("overwrite", clustered, zero)
    assert len(say("read", clustered, "--where", "half = 0", "--json").splitlines()) == 1

    assert tell("restore", clustered, "2")["version"] == 5
    assert [commit["version"] for commit in tell("history", clustered)] == [5, 4, 3, 2, 1, 0]
    assert "overwrite" in say("history", clustered)


def test_a_folder_is_published_cleaned_and_migrated(spark, clustered, tmp_path):
    """Nothing is deleted by a dry run; the rows are the same wherever they go."""
    moved = str(tmp_path / "moved")
    say("delete", clustered, "--where", "n < 1000")
    rows = spark.read.parquet(clustered).where("n >= 1000").count()

    assert tell("publish", clustered, "--dry-run")["dry_run"] is True
    assert spark.read.parquet(clustered).count() == 6_000
    assert "files moved" in say("publish", clustered)
    assert spark.read.parquet(clustered).count() == rows

    listed = tell("vacuum", clustered, "--older-than", "0s")
    assert listed["paths"]
    assert (
        tell("vacuum", clustered, "--older-than", "0s", "--no-dry-run")["paths"]
        == (listed["paths"])
    )
    assert tell("vacuum", clustered, "--older-than", "0s")["paths"] == []

    proof = tell("migrate", clustered, "--to", "delta", "--target", moved)["proof"]
    assert proof["rows"] == spark.read.format("delta").load(moved).count() == rows


@pytest.mark.parametrize("charset", ["ascii", "utf-8"])
def test_rows_are_printed_on_any_terminal(plain, charset):
    """As Spark writes them; a table for people, JSON Lines for programs."""
    asked = ("read", plain, "--backend", "parquet", "--where", "n IN (0, 1912, 3824)")
    table = say(*asked, charset=charset)
    rows = [json.loads(line) for line in say(*asked, "--json", charset=charset).splitlines()]

    assert sorted((row["n"], row["name"], row["half"]) for row in rows if row["name"]) == [
        (0, "Ä", 0),
        (1912, "東京", 1),
    ]
    assert ("東京" if charset == "utf-8" else "\\u6771\\u4eac") in table
    assert "null" in table
    assert "3 rows" in table
    assert "3 rows" not in say(*asked, "--quiet", charset=charset)


@pytest.mark.slow
def test_a_failing_table_of_a_file_does_not_stop_the_others(spark, tmp_path):
    """One run, one report; the exit code says that one has failed."""
    for name in ("first", "last"):
        rows = spark.range(3_000).selectExpr("id * 7919 % 3001 AS n", "id % 7 AS day")
        rows.repartition(3).write.format("delta").save(str(tmp_path / name))
    config = tmp_path / "tables.toml"
    config.write_text(
        f"""
        [defaults]
        by = ["n"]
        target_file_size = "4KB"
        price = {{ core_hour = 3600 }}
        [[tables]]
        table = "{tmp_path}/first"
        [[tables]]
        table = "{tmp_path}/last"
        by = ["nn"]
        [[tables]]
        table = "delta.`{tmp_path}/last`"
        by = {{ n = 2, day = 1 }}
        """
    )

    planned = tell("plan", "--config", str(config), code=3)
    done = say("optimize", "--config", str(config), code=3)
    again = tell("optimize", "--config", str(config), code=3)

    assert ["error" in each for each in planned] == [False, True, False]
    assert planned[1]["error"] == "the table has no column 'nn'; did you mean 'n'?"
    assert f"2 of 3 tables done; failed: {tmp_path}/last" in done
    assert done.count("committed version 1; price ") == 2
    assert planned[0]["result"]["price"] == planned[0]["result"]["cost"]["core_seconds"] > 0
    assert again[0]["result"]["plan"]["nothing_to_do"] is True
    assert again[2]["table"] == f"delta.`{tmp_path}/last`"


def test_rows_of_another_type_are_refused(spark, clustered, tmp_path):
    """CSV files have texts unless the call names other types."""
    new = str(tmp_path / "new")
    spark.createDataFrame([(1, 0)], "n BIGINT, half INT").write.csv(new, header=True)

    answer = CliRunner().invoke(
        app, ["append", clustered, new, "--format", "csv", "--option", "header=true"]
    )

    assert answer.stderr == "error: column 'n' is string, but bigint in the table; cast it\n"
    assert answer.exit_code == 2


@pytest.mark.parametrize(
    ("table", "by", "least", "due"),
    [
        ((1, SPREAD), "n", "0.5", True),
        ((4, "if(id % 500 = 0, id, 0L) AS n"), "n", "0.05", False),
        ((8, SPREAD), None, "0", True),
        ((8, SPREAD), None, "0.01", False),
        ((1, SPREAD), None, "0", False),
    ],
    ids=["row groups", "one value", "small files", "no gain", "one file"],
)
def test_a_check_asks_what_plan_would_do(spark, tmp_path, table, by, least, due):
    """Also where bounds of files cannot tell: row groups, skewed values; and without keys."""
    folder, (files, column) = str(tmp_path / "plain"), table
    rows = spark.range(6_000).selectExpr(column, "sha(string(id)) AS page")
    rows.repartition(files).write.parquet(folder)
    asked = (folder, "--backend", "parquet", *(() if by is None else ("--by", by)))

    plan = tell("plan", *asked)
    found = tell("analyze", *asked, "--check", f"gain={least}", code=3 if due else 0)["rewrite"]

    assert found["due"] == (not plan["nothing_to_do"])
    assert found["planned"]
    assert (found["gain"], found["files"]) == (plan["gain"], plan["files_rewritten"])
    if by is None:
        assert tell("analyze", *asked)["rewrite"] == found  # the log is enough to join files


def test_a_check_of_the_overlap_asks_the_log(plain):
    """The exit code and the last lines say which bounds are exceeded; without keys, none can be."""
    asked = ("analyze", plain, "--backend", "parquet")

    refused = CliRunner().invoke(app, [*asked, "--check", "depth=1"])
    exceeded = say(*asked, "--by", "n", "--check", "scanned=0.5", "--check", "depth=2", code=3)
    kept = say(*asked, "--by", "n", "--check", "scanned=1")

    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "needs key columns" in refused.stderr
    assert (
        "--check scanned=0.5: range filters scan 100.0% of the rows\n--check depth=2: " in exceeded
    )
    assert "--check" not in kept


def test_an_audit_fails_until_wrong_stats_are_repaired(spark, tmp_path):
    """A scheduler sees by the exit code that a query can miss rows."""
    table = tmp_path / "orders"
    spark.range(100).coalesce(1).write.format("delta").save(str(table))
    entry = table / "_delta_log" / f"{0:020}.json"
    assert say("audit", str(table))
    entry.write_text(entry.read_text().replace('{\\"id\\":0}', '{\\"id\\":90}', 1))
    (table / "_delta_log" / f".{0:020}.json.crc").unlink()
    for checksum in entry.parent.glob("*.crc"):
        checksum.unlink()
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # noqa: SLF001

    assert tell("audit", str(table), code=3)["unsound"] == 1
    assert tell("audit", str(table), "--repair")["repaired_version"] == 1
    assert tell("audit", str(table))["unsound"] == 0


def test_a_rewrite_is_drawn_before_and_after(plain, tmp_path):
    """And told in a page; a rewrite of nothing to draw is no failure, a plan of it is one."""
    asked = ("--backend", "parquet", "--target-file-size", "8KB")
    picture, page = tmp_path / "now.svg", tmp_path / "page.html"
    say("plan", plain, "--by", "n", *asked, "--plot", str(picture))
    assert "now: 6 files" in picture.read_text(encoding="utf-8")

    say("optimize", plain, "--by", "n", *asked, "--html", str(page), "--plot", str(picture))
    assert "after:" in picture.read_text(encoding="utf-8")
    assert "<h1>zadapter report</h1>" in page.read_text(encoding="utf-8")
    assert "data:image/png" in page.read_text(encoding="utf-8")
    assert "exclude each other" in CliRunner().invoke(app, ["plan", "--config", "x.toml", "--plot",
                                                            str(picture)]).stderr  # fmt: skip


def test_what_cannot_be_drawn_is_a_note_behind_a_rewrite(spark, tmp_path):
    """The rewrite is done all the same."""
    folder, picture = str(tmp_path / "none"), tmp_path / "none.png"
    spark.range(10).selectExpr("array(id) AS list").repartition(6).write.parquet(folder)

    assert "is not written" in say(
        "optimize", folder, "--backend", "parquet", "--plot", str(picture)
    )
    say("plan", folder, "--backend", "parquet", "--plot", str(picture), code=2)
    assert not picture.exists()
