"""Point queries skip row groups by Bloom filters, and later calls write them again."""

import re

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import zadapter
from integration.migration.tables import Lakes
from zadapter.backend.plugins import load
from zadapter.base.locations import bare
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.table.bloom_filters import size_of

ROWS, PRIME = 40_000, 40_009
COLUMNS = {"part": "{}", "name": "'s{}'", "price": "{}.00", "nested.z": "{}"}
"""Columns without an order, and how a query writes a value."""
ASKED = {"target_file_size": "128KB", "row_groups": 4}


class Filtered:
    """What all formats have in common."""

    format: str

    @pytest.fixture(scope="class")
    def lakes(self, spark, catalog, tmp_path_factory):
        return Lakes(spark, catalog, tmp_path_factory.mktemp("filtered"))

    def rows(self, lakes, first=0, count=ROWS):
        part = F.col("id") * 7_919 % PRIME
        return lakes.spark.range(first, first + count, 1, 2).select(
            F.col("id").alias("k"),
            part.alias("part"),
            F.concat(F.lit("s"), part).alias("name"),
            part.cast("decimal(12,2)").alias("price"),
            F.when(part % 2 == 0, -0.0).otherwise(part.cast("double")).alias("share"),
            F.struct(part.alias("z"), (part % 2 == 0).alias("even")).alias("nested"),
            (part % 5).alias("few"),
        )

    def asked(self, lakes):
        return {"backend": self.format, "spark": lakes.spark}

    def files(self, lakes, table):
        """The paths of the live files on this machine."""
        backend = load(self.format)(lakes.spark)
        snapshot = backend.snapshot(table)
        return list(map(bare, backend.uris(snapshot, backend.files(snapshot)["path"].to_pylist())))

    def filters(self, lakes, table, column):
        """The bytes of the filter of a column in each row group, and the rows of it."""
        found = []
        for path in self.files(lakes, table):
            footer = pq.read_metadata(path)
            for number in range(footer.num_row_groups):
                group = footer.row_group(number)
                chunks = [group.column(at) for at in range(group.num_columns)]
                (chunk,) = (each for each in chunks if each.path_in_schema == column)
                found.append((chunk.bloom_filter_length, group.num_rows))
        return found

    def scanned(self, files, condition):
        """The rows and the row groups that DuckDB reads."""
        with duckdb.connect() as connection:
            text = f"SELECT count(*) FROM read_parquet({files}) WHERE {condition}"
            ((rows,),) = connection.sql(text).fetchall()
            ((_, plan),) = connection.sql(f"EXPLAIN ANALYZE {text}").fetchall()
        return rows, int(re.search(r"Row Groups Scanned: ([\d,]+)", plan)[1].replace(",", ""))

    @pytest.mark.slow
    def test_point_queries_skip_row_groups_also_of_later_rows(self, lakes):
        """With right rows by Spark, DuckDB and Polars; a call without arguments adds filters."""
        table, asked = lakes.make(self.format, self.rows(lakes), files=4), self.asked(lakes)
        zadapter.optimize(table, by="k", **ASKED, **asked)
        value, files = 7_919 * 12_345 % PRIME, self.files(lakes, table)
        before = self.scanned(files, f"part = {value}")
        wanted = [*COLUMNS, "few"]

        report = zadapter.optimize(table, by="k", bloom_filters=wanted, **ASKED, **asked)

        assert report.plan.reasons == {"other Bloom filters": len(files)}
        assert report.rows_added == ROWS
        assert zadapter.plan(table, **asked).nothing_to_do
        files = self.files(lakes, table)
        for length, rows in self.filters(lakes, table, "nested.z"):
            assert 0 <= length - size_of(rows) < 64
        assert {length for length, _ in self.filters(lakes, table, "few")} == {None}
        assert {length for length, _ in self.filters(lakes, table, "share")} == {None}
        loaded = lakes.load(self.format, table)
        for column, written in COLUMNS.items():
            condition = f"{column} = {written.format(value)}"
            assert loaded.where(condition).count() == 1
            found, groups = self.scanned(files, condition)
            assert (found, groups <= 3) == (1, True)
        assert before[1] > 10
        assert pl.scan_parquet(files).filter(pl.col("part") == value).collect().height == 1

        lakes.append(self.format, table, self.rows(lakes, ROWS, 20_000))
        later = zadapter.optimize(table, **asked)

        assert later.rows_added >= 20_000
        assert later.plan.bloom_filters == tuple(sorted(wanted))
        assert None not in {length for length, _ in self.filters(lakes, table, "part")}
        assert lakes.load(self.format, table).distinct().count() == ROWS + 20_000

    def test_filters_are_dropped_where_none_are_asked_for(self, lakes):
        """And columns that cannot have one are refused before anything is read, with the reason."""
        table, asked = lakes.make(self.format, self.rows(lakes, 0, 4_000)), self.asked(lakes)
        zadapter.optimize(table, by="k", bloom_filters="part", **asked)

        for column, reason in {
            "share": "would miss rows with -0.0",
            "nested": "pass one of its fields",
            "nested.even": "it has two values",
        }.items():
            with pytest.raises(UsageError, match=reason):
                zadapter.plan(table, bloom_filters=[column], **asked)
        with pytest.raises(UnknownColumnError, match="no column 'nope'"):
            zadapter.plan(table, bloom_filters=["nope"], **asked)
        report = zadapter.optimize(table, by="k", bloom_filters=[], **asked)

        assert report.rows_added == 4_000
        assert {length for length, _ in self.filters(lakes, table, "part")} == {None}
        assert zadapter.plan(table, **asked).nothing_to_do

    def test_a_table_without_a_layout_has_no_filters(self, lakes):
        """They are kept with a layout, so the message asks for one."""
        table, asked = lakes.make(self.format, self.rows(lakes, 0, 1_000)), self.asked(lakes)

        with pytest.raises(UsageError, match=r"pass by= \(--by\) with bloom_filters="):
            zadapter.plan(table, bloom_filters=["part"], **asked)

    def test_a_log_of_points_asks_for_filters(self, lakes):
        """The advice predicts what DuckDB then reads, and a choice by the log writes them."""
        table, asked = lakes.make(self.format, self.rows(lakes), files=4), self.asked(lakes)
        zadapter.optimize(table, by="k", **ASKED, **asked)
        points = [f"part = {7_919 * n % PRIME}" for n in range(0, ROWS, 1_000)]
        ranges = [f"k BETWEEN {n} AND {n + 900}" for n in range(0, ROWS, 1_000)]
        log = [
            each for two in zip(points, ranges, strict=True) for each in ((two[0], 1), (two[1], 9))
        ]

        advice = zadapter.advise(table, log, **asked)
        report = zadapter.optimize(table, by="auto", queries=log, row_groups=8, **asked)

        assert [*advice.bloom_filters] == ["part"]
        assert report.plan.bloom_filters == ("part",)
        sizes = self.filters(lakes, table, "part")
        files = self.files(lakes, table)
        read = [self.scanned(files, text)[1] / len(sizes) for text in points[:20]]
        predicted = advice.bloom_filters["part"].row_group_share_filtered
        assert abs(np.mean(read) - predicted) < 0.1
        assert sum(length for length, _ in sizes) < 1.3 * advice.bloom_filters["part"].bytes


class TestDelta(Filtered):
    """On Delta Lake."""

    format = "delta"


class TestIceberg(Filtered):
    """On Apache Iceberg."""

    format = "iceberg"


class TestParquet(Filtered):
    """On plain Parquet."""

    format = "parquet"
