"""Every value of every type gets from every format to every other one."""

from datetime import date, timedelta
from functools import cache
from itertools import permutations
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from integration.migration.tables import FORMATS, texts
from tests.kit.variants import slow_but
from zadapter.errors import UnsupportedError
from zadapter.report.migration_report import Mode

PAIRS = list(permutations(FORMATS, 2))
COPIED = [(*pair, "copy") for pair in PAIRS]
SHARED = [(*pair, "in_place") for pair in PAIRS if pair[1] != "parquet"]
PAIRWISE = [
    ("delta", "iceberg", "copy"),
    ("iceberg", "parquet", "copy"),
    ("parquet", "delta", "in_place"),
    ("delta", "iceberg", "in_place"),
]
"""Each format on each side, and both modes of each format that has both."""
VALUES = {
    "truth": "true, false, NULL",
    "tiny": "-128Y, 127Y, 0Y, NULL",
    "small": "-32768S, 32767S, NULL",
    "middle": "-2147483648, 2147483647, NULL",
    "large": "-9223372036854775807L - 1L, 9223372036854775807L, NULL",
    "half": "float('NaN'), float('-0.0'), float('Infinity'), float('-Infinity'), 1.1F, NULL",
    "whole": "double('NaN'), double('-0.0'), double('Infinity'), 4.9E-324D, 0.1D, NULL",
    "money": "CAST(repeat('9', 28) || '.9999999999' AS decimal(38,10)), "
    "CAST('-' || repeat('9', 28) || '.9999999999' AS decimal(38,10)), "
    "CAST('0.0000000001' AS decimal(38,10)), NULL",
    "small_money": "-99.9BD, 99.9BD, 0.1BD, NULL",
    "day": "DATE'0001-01-01', DATE'1582-10-04', DATE'1969-12-31', DATE'9999-12-31', NULL",
    "moment": "TIMESTAMP'0001-01-01 00:00:00', TIMESTAMP'1969-12-31 23:59:59.999999', "
    "TIMESTAMP'2026-11-21 20:04:53.080758', TIMESTAMP'9999-12-31 23:59:59.999999', NULL",
    "wall": "TIMESTAMP_NTZ'0001-01-01 00:00:00', TIMESTAMP_NTZ'2026-11-21 20:04:53.080758', "
    "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999', NULL",
    "word": "'', 'é😀', repeat('https://example.com/', 30) || id, '\\n\\t\"', NULL",
    "raw": "X'', X'00FF', encode('é', 'UTF-8'), NULL",
    "pair": "named_struct('x', id, 'y', named_struct('z', CAST(NULL AS string))), "
    "named_struct('x', CAST(NULL AS bigint), 'y', NULL), NULL",
    "list": "array(named_struct('w', IF(id % 2 = 0, id, NULL)), NULL), array(), NULL",
    "book": "map('k', array(id, NULL)), map('', NULL), map(), NULL",
}
"""Values of each type, of which rows have one after the other."""
ODD = [
    "'a b'", "'50%'", "'x/y'", "'k=v'", "'é😀'", "'%2F'", "'+#?&'", "'it''s:a'", "'{z}'", "NULL",
]  # fmt: skip
"""Texts that folders write otherwise."""


def every_value(spark):
    days = "get(array(DATE'1500-02-28', DATE'2024-02-29', NULL), int(id % 3)) AS d"
    columns = [f"get(array({v}), int(id % size(array({v})))) AS {k}" for k, v in VALUES.items()]
    odd = f"get(array({', '.join(ODD)}), int(id % {len(ODD)})) AS p"
    return spark.range(60).selectExpr("id", *columns, odd, days)


@pytest.fixture(scope="module")
def sources(lakes, spark):
    """A table of each format, made once, and its rows."""

    @cache
    def source(format_):
        rows = every_value(spark)
        return lakes.make(format_, rows, "p", "d"), texts(rows.toArrow())

    return source


@pytest.mark.every_format
@pytest.mark.parametrize(("format_", "to", "mode"), slow_but(*PAIRWISE, of=COPIED + SHARED))
def test_every_value_arrives(lakes, sources, format_, to, mode):
    """Types, nulls, extremes and odd partition values; the old table is as it was."""
    table, rows = sources(format_)

    report = lakes.migrate(format_, table, to, mode=mode)

    assert report.mode is Mode(mode)
    assert report.proof.rows == len(rows)
    assert read(lakes, format_, table) == rows
    assert read(lakes, to, report.target) == rows
    assert counted(lakes, format_, table) == counted(lakes, to, report.target)


def read(lakes, format_, table):
    """By pyarrow over what pyiceberg plans: pyiceberg 0.12 reads a list that is null as empty."""
    return texts(planned(lakes, table)) if format_ == "iceberg" else lakes.read(format_, table)


def planned(lakes, table):
    known = lakes.iceberg(table)
    fields = known.spec().fields
    for task in known.scan().plan_files():
        values = {each.name: task.file.partition[i] for i, each in enumerate(fields)}
        if isinstance(values["d"], int):
            values["d"] = date(1970, 1, 1) + timedelta(values["d"])
        path = task.file.file_path.removeprefix("file:")
        yield from (values | row for row in pq.ParquetFile(path).read().to_pylist())


def counted(lakes, format_, table):
    """What Spark finds by partition values, among them those that are null."""
    rows = lakes.load(format_, table)
    asked = ["p IS NULL", "d IS NULL", "p = 'x/y'", "p = '%2F'", "d < DATE'1582-10-15'"]
    return rows.selectExpr(*(f"count_if({each})" for each in asked)).first()


@pytest.mark.parametrize("format_", FORMATS[:2])
def test_a_folder_of_parquet_files_adopts_none(lakes, sources, format_):
    """Refused by in place, and why; copied by auto, and why."""
    target = lakes.name("parquet")

    with pytest.raises(UnsupportedError, match=r"own folder.*mode='copy'"):
        lakes.migrate(format_, sources(format_)[0], "parquet", target, mode="in_place")

    assert not Path(target).exists()
    dry = lakes.migrate(format_, sources(format_)[0], "parquet", target, mode="auto", dry_run=True)
    assert (dry.mode, "own folder" in dry.why) == (Mode.COPY, True)


@pytest.mark.parametrize(
    ("format_", "to", "mode"),
    [COPIED[0], COPIED[3], ("iceberg", "delta", "in_place"), ("delta", "iceberg", "in_place")],
)
def test_no_rows_are_a_table_too(lakes, spark, format_, to, mode):
    """With the columns and the partitions that they would have."""
    table = lakes.make(format_, spark.range(0).selectExpr("id", "'x' AS p"), "p")

    report = lakes.migrate(format_, table, to, mode=mode)

    assert (report.proof.rows, report.file_count) == (0, 0)
    assert lakes.read(to, report.target) == []
    lakes.append(to, report.target, spark.range(3).selectExpr("id", "'y' AS p"))
    assert len(lakes.read(to, report.target)) == 3


@pytest.mark.slow
def test_a_thousand_files_stay_where_they_are(lakes, spark):
    """All of them, each once; they are handed over by the thousand."""
    table = lakes.make("delta", spark.range(0, 1_001, 1, 1_001), files=0)

    report = lakes.migrate("delta", table, "iceberg", mode="in_place")

    assert report.file_count == report.files.num_rows == report.proof.rows == 1_001
    assert len(list(lakes.iceberg(report.target).scan().plan_files())) == 1_001
    rows = lakes.load("iceberg", report.target).collect()
    assert sorted(row.id for row in rows) == list(range(1_001))
