"""A folder that is the table of two formats, and entries that match more or less than one table."""

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from zadapter.cli.app import app
from zadapter.lake import journal
from zadapter.lake.cleaning import clean
from zadapter.lake.settings import Keep

KEEP = {"versions": "8d", "orphans": "8d"}


@pytest.fixture
def both(tables, catalog):
    """A folder with a Delta table and one of Iceberg, each with files of its own, which are old."""
    tables.make_delta("both")
    tables.make_iceberg(catalog, "shared.both", location=f"file:{tables.folder}/both")
    age(tables.folder / "both")
    yield tables.folder / "both"
    catalog.drop_table("shared.both")
    catalog.drop_namespace("shared")


def age(folder):
    """Let the files of a folder be a month old."""
    old = time.time() - 30 * 86_400
    for path in files(folder):
        os.utime(path, (old, old))


def files(folder):
    return {path for path in Path(folder).rglob("*") if path.is_file()}


def are_whole(tables, catalog):
    of_iceberg = catalog.load_table("shared.both").scan().to_arrow()
    return tables.is_whole(tables.of_delta("both")) and tables.is_whole(of_iceberg)


@pytest.mark.parametrize("order", [1, -1])
def test_a_folder_of_two_formats_is_not_cleaned_up(tables, catalog, both, maintain, order):
    """To one of them, the files of the other are orphans."""
    before = files(both)
    lake = tables.lake(*["ice.shared.*", f"{both}"][::order], defaults={"keep": KEEP})

    report, _ = maintain(lake)

    owner, other = report.lines
    assert (owner.verdict, other.verdict) == (journal.FAILED, journal.LEFT_OUT)
    assert "is also that of a table in" in owner.error
    assert owner.table in other.remark
    assert report.cleaned == {}
    assert files(both) == before

    lake["defaults"].pop("keep")
    report, _ = maintain(lake)

    assert report.lines[0].verdict == journal.REWRITTEN
    assert before <= files(both)
    assert are_whole(tables, catalog)


@pytest.mark.parametrize("outer", ["inside", "around"])
def test_live_files_of_a_table_in_the_folder_of_another_are_no_orphans(
    tables, catalog, spark, outer
):
    """Neither those of an inner table, nor those of an outer one; a dry run says so, too."""
    keep = Keep(versions=timedelta(days=8), orphans=timedelta(days=8))
    tables.make_delta("t")
    tables.make_delta("t/inner")
    tables.make_iceberg(catalog, "shared.t", location=f"file:{tables.folder}/t/deep/er")
    stranger = tables.folder / "t" / "inner" / "part-stranger.parquet"
    stranger.write_bytes(b"left by a writer that has died")
    age(tables.folder)
    before, table = files(tables.folder), {"inside": "t", "around": "t/inner"}[outer]

    try:
        for dry_run in (True, False):
            (vacuum,) = clean(spark, f"{tables.folder / table}", "delta", keep, dry_run=dry_run)

            assert "another table" in vacuum.error
            assert before <= files(tables.folder)
        assert tables.is_whole(catalog.load_table("shared.t").scan().to_arrow())
        assert tables.is_whole(tables.of_delta("t"))
    finally:
        catalog.drop_table("shared.t")
        catalog.drop_namespace("shared")


def test_live_files_behind_a_link_are_no_orphans(tables, spark):
    """The link leads into a folder of another table, below its log."""
    keep = Keep(versions=timedelta(days=8), orphans=timedelta(days=8))
    tables.make_delta("outer")
    rows = tables.rows().append_column("p", pa.array([0] * tables.rows().num_rows))
    deltalake.write_deltalake(f"{tables.folder}/other", rows, partition_by=["p"])
    (tables.folder / "outer" / "inside").symlink_to(tables.folder / "other" / "p=0")
    age(tables.folder)

    (vacuum,) = clean(spark, f"{tables.folder}/outer", "delta", keep, dry_run=False)

    assert f"another table, file:{tables.folder}/other," in vacuum.error
    assert tables.is_whole(tables.of_delta("other"))


def test_live_files_that_become_old_during_a_clean_up_are_no_orphans(tables, spark):
    """They are not listed yet, but may be old enough when Delta deletes what is listed."""
    keep = Keep(versions=timedelta(days=7), orphans=timedelta(days=7))
    for name in ("t", "t/inner"):
        tables.make_delta(name)
    stranger = tables.folder / "t" / "part-stranger.parquet"
    stranger.write_bytes(b"left by a writer that has died")
    age(tables.folder)
    soon = time.time() - 7 * 86_400 + 1_800
    for path in files(tables.folder / "t" / "inner"):
        os.utime(path, (soon, soon))

    (vacuum,) = clean(spark, f"{tables.folder}/t", "delta", keep, dry_run=False)

    assert "another table" in vacuum.error
    assert stranger.exists()
    assert tables.is_whole(tables.of_delta("t/inner"))


def test_mistakes_of_a_file_concern_their_tables_alone(tables, tmp_path):
    """What a scheduler runs each night; the table that two entries match is rewritten once."""
    for name in ("brief", "well"):
        tables.make_delta(name)
    file = tmp_path / "lake.toml"
    file.write_text(f"""
        [defaults]
        by = ["a"]
        target_file_size = "4KB"
        keep = {{ versions = "8d" }}
        [[tables]]
        match = "{tmp_path}/wel*"
        [[tables]]
        match = "{tmp_path}/none/*"
        [[tables]]
        match = "ice.nobody.*"
        [[tables]]
        match = "{tmp_path}/*"
        keep = {{ versions = "6d" }}
    """)

    answer = CliRunner().invoke(app, ["maintain", str(file), "--json"])

    assert answer.exit_code == 3, answer.output
    report = json.loads(answer.stdout)
    found = {line["table"].removeprefix(f"{tmp_path}/"): line for line in report["lines"]}
    assert {name: line["verdict"] for name, line in found.items()} == {
        "well": "rewritten", "brief": "failed", "none/*": "failed", "ice.nobody.*": "failed",
    }  # fmt: skip
    assert "delta.deletedFileRetentionDuration" in found["brief"]["error"]
    assert found["brief"]["bytes_rewritten"] == 0
    assert "no table matches" in found["none/*"]["error"]
    assert {*report["cleaned"]} == {f"{tmp_path}/well"}
    assert all(tables.is_whole(tables.of_delta(name)) for name in ("brief", "well"))
