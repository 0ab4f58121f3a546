"""Whoever has queries gets a layout for them, and what was promised is what they read."""

import random

import numpy as np
import pytest
from pyspark.sql import functions as F

import zadapter
from integration.migration.tables import Lakes
from zadapter.errors import UsageError

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
        )

    def asked(self, lakes):
        return {"backend": self.format, "spark": lakes.spark}

    def read(self, lakes, table, texts):
        """The mean share of the rows in files that conditions cannot skip."""
        found = zadapter.analyze(table, queries=texts, **self.asked(lakes))
        return float(np.mean([each.share for each in found.queries]))

    def test_the_layout_that_is_advised_lets_queries_to_come_read_as_predicted(self, lakes):
        """Also rows that come later are placed for the queries, by a call without keys."""
        table, asked = lakes.make(self.format, self.rows(lakes), files=6), self.asked(lakes)
        name = table.rpartition(".")[2].rpartition("/")[2]

        advice = zadapter.advise(table, queries(1, 60, name), candidates=["t"], **asked)

        assert advice.entries == 120
        assert advice.today.share > 0.9
        assert advice.chosen.share < 0.8 * advice.today.share
        assert set(advice.best.weights) <= {"k", "t", "place"}
        done = zadapter.optimize(table, by=advice.best, target_file_size="256KB", **asked)
        predicted = done.plan.share_after
        to_come = self.read(lakes, table, conditions(2, 40))
        assert done.rows == ROWS
        assert abs(done.share_after - predicted) < 0.05
        assert to_come < done.share_after + 0.08
        assert zadapter.plan(table, **asked).nothing_to_do
        lakes.append(self.format, table, self.rows(lakes, 6_000, ROWS))
        later = zadapter.optimize(table, **asked)
        assert later.plan.columns == done.plan.columns
        assert zadapter.read(table, **asked).distinct().count() == ROWS + 6_000

    def test_keys_are_chosen_by_a_log(self, lakes):
        """Without a look at the advice."""
        table, asked = lakes.make(self.format, self.rows(lakes), files=6), self.asked(lakes)
        log = conditions(3, 40)

        plan = zadapter.plan(table, by="auto", queries=log, target_file_size="256KB", **asked)
        report = zadapter.optimize(table, by="auto", queries=log, target_file_size="256KB", **asked)

        assert plan.columns == report.plan.columns
        assert self.read(lakes, table, conditions(4, 40)) < 0.5

    def test_what_is_no_log_of_the_table_is_refused(self, lakes):
        """With the reasons why its queries do not count."""
        table, asked = lakes.make(self.format, self.rows(lakes, 1_000)), self.asked(lakes)

        with pytest.raises(UsageError, match="empty log"):
            zadapter.advise(table, [], **asked)
        with pytest.raises(UsageError, match="no query of the log filters"):
            zadapter.advise(table, ["SELECT 1 AS x", "SELECT FROM WHERE"], **asked)
        with pytest.raises(UsageError, match="by='auto' only"):
            zadapter.optimize(table, by="k", queries=["k = 1"], **asked)
        with pytest.raises(UsageError, match="candidates= has 'nope'"):
            zadapter.advise(table, ["k = 1"], candidates=["nope"], **asked)

    def test_leave_it_is_an_answer(self, lakes):
        """Of a table that is clustered for just these queries."""
        table, asked = lakes.make(self.format, self.rows(lakes), files=6), self.asked(lakes)
        zadapter.optimize(table, by="k", target_file_size="256KB", **asked)

        advice = zadapter.advise(table, [f"k = {n * 7}" for n in range(100)], **asked)

        assert advice.best is None or advice.chosen.share > 0.5 * advice.today.share


class TestDelta(Advised):
    """On Delta Lake."""

    format = "delta"


class TestIceberg(Advised):
    """On Apache Iceberg."""

    format = "iceberg"

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
