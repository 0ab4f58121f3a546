"""Tables with CLUSTER BY: files of zadapter beside those that Delta's OPTIMIZE has clustered."""

from collections import Counter

import deltalake
import duckdb
import pytest

from zadapter_delta import DeltaBackend

LIQUID = "liquid"
"""The name of Delta's own implementation."""
COLUMNS = "a bigint, b bigint, s string"


def providers(lake, path):
    """Return how many live files each implementation has clustered; None: not clustered."""
    live = {}
    for entry in lake.log(path):
        for gone in (action["remove"] for action in entry if "remove" in action):
            live.pop(gone["path"], None)
        new = (action["add"] for action in entry if "add" in action)
        live |= {add["path"]: add.get("clusteringProvider") for add in new}
    return Counter(live.values())


def append(lake, path, start):
    lake.sql(
        f"INSERT INTO delta.`{path}` SELECT (id * 7919) % 5000, id, concat('s', id % 9) "
        f"FROM range({start}, {start + 1_000})"
    )


def by_others(path):
    """Return the sums of the rows as delta-rs and DuckDB read them."""
    table = deltalake.DeltaTable(path)
    query = "SELECT count(*), sum(a), sum(b), count(DISTINCT s) FROM "
    rows = table.to_pyarrow_table()  # noqa: F841 - in the query
    found = duckdb.sql(f"{query} rows").fetchall()
    assert found == duckdb.execute(f"{query} read_parquet($1)", [table.file_uris()]).fetchall()
    return found[0]


def test_whichever_comes_next_clusters_what_is_new(lake):
    """Each leaves the other's files alone, OPTIMIZE FULL takes all, and no row is lost."""
    path = str(lake.folder / "clustered")
    lake.sql(f"CREATE TABLE delta.`{path}` ({COLUMNS}) USING delta CLUSTER BY (a)")
    append(lake, path, 0)

    first = lake.optimize(path)
    append(lake, path, 1_000)
    lake.sql(f"OPTIMIZE delta.`{path}`")

    assert providers(lake, path) == {"zadapter": first.files_added, LIQUID: 1}
    append(lake, path, 2_000)
    rows, sums = lake.rows(path), by_others(path)
    second = lake.optimize(path)
    found = providers(lake, path)
    assert found[LIQUID] == 1
    assert set(found) == {"zadapter", LIQUID}
    assert 1_000 <= second.rows_added < 2_000
    assert lake.optimize(path).plan.nothing_to_do
    version = len(lake.log(path))
    lake.sql(f"OPTIMIZE delta.`{path}`")
    assert len(lake.log(path)) == version
    assert (lake.rows(path), by_others(path)) == (rows, sums)
    lake.sql(f"OPTIMIZE delta.`{path}` FULL")
    assert set(providers(lake, path)) == {LIQUID}
    assert (lake.rows(path), by_others(path)) == (rows, sums)


@pytest.mark.slow
def test_rows_that_were_deleted_from_its_files_stay_deleted(lake):
    """A file with a deletion vector is still zadapter's; whoever rewrites it drops the rows."""
    path = str(lake.folder / "deleted")
    lake.sql(
        f"CREATE TABLE delta.`{path}` ({COLUMNS}) USING delta CLUSTER BY (a) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    append(lake, path, 0)
    added = lake.optimize(path).files_added
    lake.sql(f"DELETE FROM delta.`{path}` WHERE b < 300")
    rows = lake.rows(path)

    lake.sql(f"OPTIMIZE delta.`{path}`")

    assert providers(lake, path) == {"zadapter": added}
    lake.sql(f"OPTIMIZE delta.`{path}` FULL")
    assert providers(lake, path) == {LIQUID: 1}
    assert lake.rows(path) == rows
    assert len(rows) == 700


@pytest.mark.slow
def test_files_that_delta_has_clustered_are_taken_by_force(lake, spark):
    """The clustering columns are known by their names of today, and stay the table's own."""
    path = str(lake.folder / "mapped")
    lake.sql(
        f"CREATE TABLE delta.`{path}` (x bigint, s struct<Y: bigint>) USING delta "
        "CLUSTER BY (x, s.Y) TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    lake.sql(f"INSERT INTO delta.`{path}` SELECT id, named_struct('Y', id % 7) FROM range(2000)")
    lake.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN x TO a")
    lake.sql(f"OPTIMIZE delta.`{path}`")
    rows = lake.rows(path)

    assert DeltaBackend(spark).snapshot(path).clustering == (("a",), ("s", "Y"))
    assert lake.optimize(path).plan.nothing_to_do
    report = lake.optimize(path, by=["a", "s.y"], force=True)

    assert providers(lake, path) == {"zadapter": report.files_added}
    assert lake.rows(path) == rows
    last = lake.sql(f"DESCRIBE HISTORY delta.`{path}`").first()
    assert last.operationParameters["clusterBy"] == '["a","s.Y"]'
    assert DeltaBackend(spark).snapshot(path).clustering == (("a",), ("s", "Y"))
    lake.sql(f"ALTER TABLE delta.`{path}` CLUSTER BY NONE")
    assert DeltaBackend(spark).snapshot(path).clustering == ()
