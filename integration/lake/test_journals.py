"""Journals that two runs write at once, or runs of machines whose clocks differ."""

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import deltalake
import pyarrow.parquet as pq
import pytest

import zadapter
from zadapter.lake import journal

NIGHT = """
import json, sys
import zadapter, zadapter.spark
spark = zadapter.spark.session({"spark.master": "local[1]"}, formats=["delta", "parquet"])
print(zadapter.maintain(json.loads(sys.argv[1]), spark=spark).lines[0].time)
"""


@pytest.mark.slow
@pytest.mark.parametrize("journal_format", ["delta", "parquet", "iceberg"])
def test_two_runs_at_once_lose_no_line(spark, tables, monkeypatch, journal_format):
    for name in ("left/a", "left/b", "right/a", "right/b"):
        tables.make_delta(name)
    place = f"{tables.folder}/journal" if journal_format != "iceberg" else "ice.journals.two"
    if journal_format == "iceberg":
        spark.sql("CREATE NAMESPACE IF NOT EXISTS ice.journals")
    asked = {"table": place, "format": journal_format}
    append, both = journal.append, Barrier(2)

    def together(*arguments):
        both.wait(timeout=300)
        append(*arguments)

    monkeypatch.setattr(journal, "append", together)

    def night(side):
        lake = tables.lake(f"{tables.folder}/{side}/*", journal=asked)
        return zadapter.maintain(lake, spark=spark.newSession())

    with ThreadPoolExecutor(2) as threads:
        for _ in range(2):
            reports = list(threads.map(night, ("left", "right")))
            assert [report.failed for report in reports] == [(), ()]
    monkeypatch.undo()

    lines = journal.to_lines(journal.read(spark, place, journal_format))
    assert len(lines) == 8
    assert len({(line.run, line.table) for line in lines}) == 8
    assert [line.verdict for line in lines] == [journal.REWRITTEN] * 4 + [journal.NOTHING_TO_DO] * 4
    if journal_format == "iceberg":
        spark.sql("DROP TABLE ice.journals.two PURGE")
        spark.sql("DROP NAMESPACE ice.journals")


@pytest.mark.slow
def test_a_machine_whose_clock_was_ahead_makes_no_table_wait_longer(spark, tables, maintain):
    """Its line lies in the future: nights that come later by the journal count, all the same."""
    if shutil.which("faketime") is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs Debian's package faketime")
    tables.make_delta("a")
    place = f"{tables.folder}/journal"
    lake = tables.lake(f"{tables.folder}/a", journal={"table": place})
    command = ["faketime", "-f", "+400d", sys.executable, "-c", NIGHT]
    import json

    ended = subprocess.run([*command, json.dumps(lake)], check=True, capture_output=True, text=True)
    for part in tables.parts()[:2]:
        deltalake.write_deltalake(f"{tables.folder}/a", part, mode="append")
    poor = lake | {"budget": {"bytes": "1KB"}}

    nights = [maintain(poor)[1]["a"] for _ in range(3)]

    assert [(night.verdict, night.waited) for night in nights] == [
        (journal.WAITS, 1), (journal.WAITS, 2), (journal.WAITS, 3),
    ]  # fmt: skip
    assert str(nights[0].time) < ended.stdout
    (first, *_) = journal.to_lines(journal.read(spark, place, "parquet"))
    assert first.verdict == journal.REWRITTEN
    assert maintain(lake)[1]["a"].verdict == journal.REWRITTEN
    assert maintain(lake)[1]["a"].verdict == journal.NOTHING_TO_DO
    stored = pq.read_table(zadapter.files(place, spark=spark)["path"].to_pylist())
    assert stored.num_rows == 6
