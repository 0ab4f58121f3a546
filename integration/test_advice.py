"""Whoever has queries gets a layout for them, and what was promised is what they read."""

import itertools
import json
import random
import re
from pathlib import Path
from typing import ClassVar
from urllib.parse import unquote, urlparse

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

import zadapter
from integration.bench.readers.files import read
from integration.migration.tables import Lakes
from zadapter.backend.plugins import load
from zadapter.errors import UsageError
from zadapter.inspection.advice import IN_TURN, LEARNED, STEADY
from zadapter.layout.layout import ID
from zadapter.spark.compat.spark_api import to_arrow

ROWS = 60_000


def queries(seed, count, name="events"):
    """Two kinds of queries: points of one column, and ranges of another where a third is low."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        k, t = draw.randrange(997), draw.randrange(90_000)
        found += [
            f"SELECT count(*) FROM {name} WHERE k = {k}",
            f"SELECT max(id) FROM {name} WHERE t BETWEEN {t} AND {t + 2_000} AND place < 3",
        ]
    return found


def conditions(seed, count):
    """The conditions of such queries."""
    return [text.split(" WHERE ")[1] for text in queries(seed, count)]


class Advised:
    """What all formats have in common."""

    format: str
    deletes: ClassVar[dict[str, str]] = {}
    """Properties with which a delete leaves the files as they are."""
    left: str = "t % 5 <> 0"
    """The rows that such a delete leaves."""

    @pytest.fixture(scope="class")
    def lakes(self, spark, catalog, tmp_path_factory):
        return Lakes(spark, catalog, tmp_path_factory.mktemp("advised"))

    def rows(self, lakes, count=ROWS, first=0):
        id_ = F.col("id") + first
        return lakes.spark.range(count).select(
            id_.alias("id"),
            (id_ * 31_337 % 997).alias("k"),
            (id_ * 7_919 % 100_003).alias("t"),
            F.pmod(F.hash(id_), F.lit(10)).alias("place"),
            F.sha2(id_.cast("string"), 256).alias("s"),
            (id_ % 2 == 0).alias("even"),
        )

    def asked(self, lakes):
        return {"backend": self.format, "spark": lakes.spark}

    def read(self, lakes, table, texts):
        """The mean share of the rows in files that conditions cannot skip."""
        found = zadapter.analyze(table, queries=texts, **self.asked(lakes))
        return float(np.mean([each.share for each in found.queries]))

    def read_of_row_groups(self, lakes, table, texts):
        """The same of row groups, whose bounds DuckDB reads."""
        bounds = [bounds_of(path) for path in self.paths(lakes, table)]
        rows = pa.concat_tables(bounds)
        with duckdb.connect() as connection:
            connection.register("groups", rows)
            kept = [met(text) for text in texts]
            met_rows = ", ".join(f"sum(rows) FILTER ({each})" for each in kept)
            [found] = connection.sql(f"SELECT {met_rows} FROM groups").fetchall()
        return float(np.mean([each or 0 for each in found])) / sum(rows["rows"].to_pylist())

    def paths(self, lakes, table):
        """The live files."""
        backend = load(self.format)(lakes.spark)
        snapshot = backend.snapshot(table)
        uris = backend.uris(snapshot, backend.files(snapshot)["path"].to_pylist())
        return [unquote(urlparse(uri).path) for uri in uris]

    def delete(self, lakes, table, where):
        """Delete rows."""

    @pytest.mark.slow
    def test_columns_that_newer_queries_alone_filter_count(self, lakes):
        """The table is in the order of time, which the newest dashboards ask for."""
        rows = self.rows(lakes, 20_000).withColumn("t", F.col("id")).orderBy("t")
        table = lakes.make(self.format, rows.repartitionByRange(8, "t"), files=0)
        points = [f"k = {k}" for k in range(40)]
        ranges = [f"t BETWEEN {t} AND {t + 500}" for t in range(0, 19_000, 500)]

        advice = zadapter.advise(table, points + ranges, **self.asked(lakes))

        assert advice.today.share < 0.4
        assert advice.best is None
        assert advice.newer_columns == ("t",)

    @pytest.mark.slow
    def test_the_last_rows_in_the_order_of_a_column_count(self, lakes):
        """A dashboard's newest rows lie in all files of a table that is in no order."""
        table = lakes.make(self.format, self.rows(lakes, 40_000), files=8)
        name = table.rpartition(".")[2].rpartition("/")[2]
        newest = [f"SELECT * FROM {name} ORDER BY t DESC LIMIT {count}" for count in range(10, 50)]

        advice = zadapter.advise(table, newest, **self.asked(lakes))

        assert advice.unused == {}
        assert advice.today.share > 0.9
        assert advice.best is not None
        assert list(advice.best.weights) == ["t"]
        # the last file at most, and one of its row groups
        assert advice.candidates[1].share <= 0.5
        assert advice.candidates[1].row_group_share < 0.05

    @pytest.mark.slow
    def test_facts_are_clustered_for_filters_of_the_dates_that_they_join(self, lakes, tmp_path):
        """DuckDB skips the row groups outside of the keys of a month; weekdays have no range."""
        facts = self.rows(lakes, 40_000).withColumn("day", F.pmod(F.hash("t"), F.lit(2_400)))
        table = lakes.make(self.format, facts, files=8)
        key = F.col("id")
        dates = lakes.spark.range(2_400).select(
            key.alias("d_key").cast("int"),
            (key / 100).cast("int").alias("d_month"),
            (key % 7).cast("int").alias("d_weekday"),
        )
        name = table.rpartition(".")[2].rpartition("/")[2]
        joined = lakes.make(self.format, dates, files=1)
        plain = self.format == "parquet"
        found = lakes.spark.read.parquet(joined) if plain else lakes.load(self.format, joined)
        found.createOrReplaceTempView("dates")
        texts = [
            f"SELECT sum(k) FROM {name}, dates WHERE day = d_key AND {condition}"
            for condition in (*(f"d_month = {n % 24}" for n in range(40)), "d_weekday = 3")
        ]
        sums, share = self.read_of_joins(lakes, table, dates, tmp_path / "before")

        advice = zadapter.advise(table, texts, **self.asked(lakes))
        asked = {"by": "auto", "queries": texts, "target_file_size": "256KB"}
        zadapter.optimize(table, **asked, **self.asked(lakes))

        counted = {each.through.partition(".")[2]: each for each in advice.joins}
        assert {key: (each.queries, each.counted) for key, each in counted.items()} == {
            "d_month": (40, 40),
            "d_weekday": (1, 0),
        }
        assert list(advice.best.weights) == ["day"]
        again, less = self.read_of_joins(lakes, table, dates, tmp_path / "after")
        assert again == sums
        assert share == 1.0
        assert less < 0.4

    def read_of_joins(self, lakes, table, dates, folder):
        """What DuckDB finds for joins with four months, and the share of row groups it reads."""
        folder.mkdir()
        for number, path in enumerate(self.paths(lakes, table)):
            (folder / f"{number}.parquet").symlink_to(path)
        text = "SELECT sum(k) FROM {}, dates WHERE day = d_key AND d_month = "
        with duckdb.connect() as connection:
            connection.register("rows_of", to_arrow(dates))
            connection.execute("CREATE TABLE dates AS FROM rows_of")
            texts = [f"{text}{month}" for month in (1, 9, 15, 22)]
            reads = [read(connection, each, folder) for each in texts]
            source = f"read_parquet('{folder}/*.parquet')"
            sums = [connection.sql(each.format(source)).fetchall() for each in texts]
        return sums, float(np.mean([each.row_groups / each.of for each in reads]))

    @pytest.mark.slow
    def test_the_layout_that_is_advised_lets_queries_to_come_read_as_predicted(self, lakes):
        """Also rows that come later are placed for the queries, by a call without keys."""
        table, asked = lakes.make(self.format, self.rows(lakes), files=6), self.asked(lakes)
        name = table.rpartition(".")[2].rpartition("/")[2]

        advice = zadapter.advise(table, queries(1, 60, name), candidates=["t"], **asked)

        assert advice.entries == 120
        assert advice.today.share > 0.9
        learned = next(each for each in advice.candidates if each.name == LEARNED)
        assert learned.share < 0.8 * advice.today.share
        assert set(learned.keys.weights) <= {"k", "t", "place"}
        done = zadapter.optimize(table, by=learned.keys, target_file_size="256KB", **asked)
        to_come = self.read(lakes, table, conditions(2, 40))
        assert done.rows_added == ROWS
        assert abs(done.share_after - done.plan.share_after) < 0.05
        assert to_come < done.share_after + 0.08
        assert zadapter.plan(table, **asked).nothing_to_do
        lakes.append(self.format, table, self.rows(lakes, 6_000, ROWS))
        later = zadapter.optimize(table, **asked)
        assert later.plan.columns == done.plan.columns
        assert zadapter.read(table, **asked).distinct().count() == ROWS + 6_000
        other = [f"id BETWEEN {900 * n} AND {900 * n + 300}" for n in range(40)]
        other += ["even", "NOT even"]
        drifted = zadapter.advise(table, other, **asked)
        assert advice.drift is None
        assert drifted.drift.filters == len(learned.keys.filters)
        assert abs(drifted.drift.held - later.share_after) < 0.02
        assert drifted.drift.promised < drifted.drift.held + 0.05
        assert drifted.drift.elsewhere == 1
        assert drifted.today.share > 2 * drifted.drift.held
        assert drifted.facts()["advice"].endswith(": id")
        assert drifted.unused == {"a filter without a column that can be a key: even": 2}

    @pytest.mark.slow
    def test_row_groups_of_the_table_are_compared(self, lakes):
        """Of the table as it is, by the bounds in its footers."""
        table, asked = lakes.make(self.format, self.rows(lakes), files=6), self.asked(lakes)
        zadapter.optimize(table, by=["k", "t"], target_file_size="1MB", **asked)
        log = conditions(2, 40)

        today = zadapter.advise(table, log, **asked).today

        by_row_group = self.read_of_row_groups(lakes, table, log)
        assert today.row_group_share == pytest.approx(by_row_group, abs=0.02)
        assert by_row_group < 0.8 * today.share

    @pytest.mark.slow
    def test_files_that_are_read_in_vain_are_counted(self, lakes, monkeypatch):
        """By file, and by row group where rows tell their position, as DuckDB counts them."""
        monkeypatch.setattr("zadapter.inspection.measure.queries.COUNTED", 10)
        table = lakes.make(self.format, self.rows(lakes, 12_000), files=2, **self.deletes)
        asked = self.asked(lakes)
        zadapter.optimize(table, by=["t"], target_file_size="64KB", **asked)
        self.delete(lakes, table, f"NOT ({self.left})")
        name = table.rpartition(".")[2].rpartition("/")[2]
        log = [(text, 2.0) for text in queries(7, 6, name)]

        found = zadapter.analyze(table, queries=log, matches=True, row_groups=True, **asked)

        assert (found.reads.filters, found.reads.counted) == (12, 10)
        counted = [each for each in found.queries if each.matches is not None]
        assert sum(each.read.files for each in counted) > 20
        self.check_counts(counted, found.reads, self.paths(lakes, table))

    def check_counts(self, counted, reads, paths):
        """Compare with the rows of the files, without those that were deleted."""
        rows = pa.concat_tables([grouped(path) for path in paths])
        files = groups = 0
        with duckdb.connect() as connection:
            connection.register("found", rows)
            for each in counted:
                hits = connection.sql(
                    "SELECT file, part, count(*) FROM found "
                    f"WHERE ({self.left}) AND ({each.condition}) GROUP BY ALL"
                ).fetchall()
                assert each.matches.rows == sum(count for _, _, count in hits)
                assert each.matches.files == len({file for file, _, _ in hits})
                files += each.matches.files
                groups += len(hits)
        opened = sum(each.read.files for each in counted)
        kept = sum(each.row_groups.kept for each in counted)
        assert reads.in_vain == pytest.approx(1 - files / opened)
        assert reads.row_groups_in_vain == pytest.approx(1 - groups / kept)
        assert 0.2 < reads.in_vain < reads.row_groups_in_vain < 1

    @pytest.mark.slow
    def test_keys_are_chosen_by_a_log(self, lakes):
        """Without a look at the advice."""
        table, asked = lakes.make(self.format, self.rows(lakes), files=6), self.asked(lakes)
        log = conditions(3, 40)

        plan = zadapter.plan(table, by="auto", queries=log, target_file_size="256KB", **asked)
        report = zadapter.optimize(table, by="auto", queries=log, target_file_size="256KB", **asked)

        assert plan.columns == report.plan.columns
        assert self.read(lakes, table, conditions(4, 40)) < 0.5

    @pytest.mark.slow
    @pytest.mark.parametrize("top", ["", " ORDER BY t DESC LIMIT 3"], ids=["values", "last rows"])
    def test_noise_gets_the_plain_layout(self, lakes, top):
        """One query a million times, five queries, or one kind of queries on a single day."""
        table, asked = lakes.make(self.format, self.rows(lakes, 20_000), files=8), self.asked(lakes)
        name = table.rpartition(".")[2].rpartition("/")[2]
        texts = [f"SELECT * FROM {name} WHERE k = {n * 24}{top}" for n in range(40)]
        timed = [(text, f"2026-11-28 09:{at}:00") for at, text in enumerate(texts, 10)]
        yesterday = lakes.spark.createDataFrame(timed, ["sql", "time"])

        for log in ([(texts[0], 1e6)], texts[:5], yesterday):
            found = zadapter.advise(table, log, **asked)

            assert found.chosen.name == IN_TURN
            assert "the log has one kind of filters" in found.facts()["new queries"]
        done = zadapter.optimize(
            table, by="auto", queries=yesterday, target_file_size="64KB", **asked
        )
        assert [".".join(each) for each in done.plan.columns] == [*found.best.weights]
        assert self.read(lakes, table, [f"k = {n * 24 + 5}" for n in range(40)]) < 0.6

    @pytest.mark.slow
    def test_a_layout_is_learned_again_once_when_queries_have_changed(self, lakes):
        """Not for a noisy log, nor after appends; and a change that takes two calls ends."""
        rows = self.rows(lakes, 12_000)
        table, asked = lakes.make(self.format, rows, files=4), self.asked(lakes)
        asked |= {"by": "auto", "target_file_size": "32KB"}
        points, places = self.asked_often("k = {}", 997), self.asked_often("place = {}", 9)
        olds = [each for two in zip(points, places * 5, strict=False) for each in two]
        advice = zadapter.advise(table, olds, **self.asked(lakes))
        [steady] = [each.keys for each in advice.candidates if each.name == STEADY]
        zadapter.optimize(table, **asked | {"by": steady})
        first = self.requests(lakes, table)

        lakes.append(self.format, table, self.rows(lakes, 3_000, 12_000))
        noisy = [*olds, ("id BETWEEN 5 AND 9", 1_000_000.0), *self.asked_often("t = {}", 5)]
        kept = zadapter.optimize(table, queries=noisy, **asked)
        assert not kept.plan.relearning.is_due
        assert "the layout is kept" in kept.facts()["queries"]
        assert self.requests(lakes, table) <= {*first, None}

        changed = [*olds, *self.asked_often("t BETWEEN {0} AND {0} + 900", 90_000) * 2]
        entry = {"match": table, "format": self.format, "by": "auto", "queries": changed}
        dry = zadapter.maintain({"tables": [entry]}, dry_run=True, spark=lakes.spark)
        assert "the layout is learned again" in dry.lines[0].remark
        part = zadapter.optimize(table, queries=changed, max_files=8, **asked)
        assert part.plan.relearning.is_due
        assert (part.plan.columns[0], part.plan.groups_left > 0) == ("t", True)
        rest = zadapter.optimize(table, queries=changed[2:], **asked)
        assert not rest.plan.relearning.is_due
        assert rest.plan.columns == part.plan.columns
        assert self.requests(lakes, table).isdisjoint({*first, None})
        assert zadapter.plan(table, queries=changed[1:], **asked).nothing_to_do
        assert zadapter.read(table, backend=self.format, spark=lakes.spark).distinct().count() == (
            15_000
        )

    def asked_often(self, text, most):
        """A log of one kind of queries, each of which is asked 20 times."""
        draw = random.Random(most)
        return [(text.format(draw.randrange(most)), 20.0) for _ in range(40)]

    def requests(self, lakes, table):
        """The requests whose layouts the live files have."""
        backend = load(self.format)(lakes.spark)
        files = backend.files(backend.snapshot(table))
        return {each and each[:ID] for each in files["layout"].to_pylist()}

    @pytest.mark.slow
    def test_readers_meet_both_ends_of_a_column_first(self, lakes):
        """So the last rows of an order, and the first ones, are found in few files."""
        rows = self.rows(lakes, 20_000)
        table, asked = lakes.make(self.format, rows, files=4), self.asked(lakes)
        zadapter.optimize(table, by=["t"], target_file_size="64KB", **asked)

        last, first, *others = self.listed(lakes, table)

        t = rows.agg(F.min("t"), F.max("t")).first()
        assert len(others) > 6
        assert [min_of(first), max_of(last)] == list(t)
        found = [max_of(path) for path in others]
        rising = sum(one < other for one, other in itertools.pairwise(found))
        assert 1 < rising < len(found) - 2

    def listed(self, lakes, table):
        """The live files in the order in which readers meet them: of their names."""
        return sorted(self.paths(lakes, table))

    def test_what_is_no_log_of_the_table_is_refused(self, lakes):
        """With the reasons why its queries do not count."""
        table, asked = lakes.make(self.format, self.rows(lakes, 1_000)), self.asked(lakes)

        with pytest.raises(UsageError, match="empty log"):
            zadapter.advise(table, [], **asked)
        with pytest.raises(UsageError, match="no query of the log filters"):
            zadapter.advise(table, ["SELECT 1 AS x", "SELECT FROM WHERE"], **asked)
        with pytest.raises(UsageError, match="by='auto' only"):
            zadapter.optimize(table, by="k", queries=["k = 1"], **asked)
        with pytest.raises(UsageError, match="candidates= names 'nope'"):
            zadapter.advise(table, ["k = 1"], candidates=["nope"], **asked)
        with pytest.raises(UsageError, match="by='auto' needs queries="):
            zadapter.plan(table, by="auto", **asked)
        with pytest.raises(UsageError, match=r"pass its \.best"):
            zadapter.plan(table, by=zadapter.advise(table, ["id > -1", "k = 1"], **asked), **asked)

    @pytest.mark.slow
    def test_leave_it_is_an_answer(self, lakes):
        """Of a table that is clustered for just these queries."""
        table, asked = lakes.make(self.format, self.rows(lakes), files=6), self.asked(lakes)
        zadapter.optimize(table, by="k", target_file_size="256KB", **asked)

        advice = zadapter.advise(table, [f"k = {n * 7}" for n in range(100)], **asked)

        assert "the log has one kind of filters" in advice.facts()["new queries"]
        assert advice.best is None or advice.chosen.share > 0.5 * advice.today.share


def bounds_of(path):
    """The bounds of the columns that queries filter, in each row group of a file."""
    file = pq.ParquetFile(path).metadata
    places = {file.schema.column(at).path: at for at in range(file.num_columns)}
    found = []
    for number in range(file.num_row_groups):
        group = file.row_group(number)
        stats = {name: group.column(places[name]).statistics for name in ("k", "t", "place")}
        low = {f"{name}_min": each.min for name, each in stats.items()}
        high = {f"{name}_max": each.max for name, each in stats.items()}
        found.append({"rows": group.num_rows, **low, **high})
    return pa.Table.from_pylist(found)


def min_of(path):
    """The lowest ``t`` of a file."""
    return min(bounds_of(path)["t_min"].to_pylist())


def max_of(path):
    """The highest ``t`` of a file."""
    return max(bounds_of(path)["t_max"].to_pylist())


def met(text):
    """A condition on bounds: whether rows of a row group may meet a condition of `queries`."""
    text = re.sub(r"(\w+) = (\d+)", r"\1_min <= \2 AND \1_max >= \2", text)
    text = re.sub(r"(\w+) BETWEEN (\d+) AND (\d+)", r"\1_min <= \3 AND \1_max >= \2", text)
    return re.sub(r"(\w+) < (\d+)", r"\1_min < \2", text)


def grouped(path):
    """The rows of a file, with the file and the number of their row group."""
    file = pq.ParquetFile(path)
    parts = [file.read_row_group(number) for number in range(file.num_row_groups)]
    numbers = [pa.array([number] * len(part)) for number, part in enumerate(parts)]
    return pa.concat_tables(
        part.select(["k", "t", "place"])
        .append_column("part", number)
        .append_column("file", pa.array([path] * len(part)))
        for part, number in zip(parts, numbers, strict=True)
    )


class TestDelta(Advised):
    """On Delta Lake."""

    format = "delta"
    deletes: ClassVar = {"enableDeletionVectors": "true"}

    def listed(self, lakes, table):
        """The files in the order of the commit, which is that of names; DataFusion reads so."""
        log = max(Path(table, "_delta_log").glob("*.json")).read_text("utf-8").splitlines()
        adds = [each["add"]["path"] for each in map(json.loads, log) if "add" in each]
        assert adds == sorted(adds)
        return [str(Path(table, path)) for path in adds]

    def delete(self, lakes, table, where):
        lakes.sql(f"DELETE FROM delta.`{table}` WHERE {where}")


class TestIceberg(Advised):
    """On Apache Iceberg."""

    format = "iceberg"
    deletes: ClassVar = {"format-version": "2", "write.delete.mode": "merge-on-read"}

    def delete(self, lakes, table, where):
        lakes.sql(f"DELETE FROM {table} WHERE {where}")

    def test_a_layout_of_a_dropped_column_is_no_candidate(self, lakes):
        """The table is compared as it is with layouts of the columns that it has."""
        table, asked = lakes.make(self.format, self.rows(lakes), files=6), self.asked(lakes)
        zadapter.optimize(table, by=["k", "place"], target_file_size="256KB", **asked)
        lakes.sql(f"ALTER TABLE {table} DROP COLUMN k")

        advice = zadapter.advise(table, [f"t = {n * 7}" for n in range(40)], **asked)

        assert all("k" not in each.keys.weights for each in advice.candidates if each.keys)


class TestParquet(Advised):
    """On plain Parquet."""

    format = "parquet"
    left = "true"  # a delete would write all files anew
