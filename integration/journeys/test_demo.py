"""``zadapter demo`` by a stranger, in an empty folder and without a terminal."""

import json

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

ROWS = 60_000
FILES = 32


@pytest.mark.slow
@pytest.mark.parametrize("format_", ["parquet", "delta", "iceberg"])
def test_queries_read_less_of_the_same_rows(user, format_):
    """Twice: the second demo leaves the table of the first one alone."""
    command = ("zadapter", "demo", "--format", format_, "--rows", str(ROWS), "--json")

    first, second = (user.call(*command) for _ in range(2))

    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    found = json.loads(first.stdout)
    assert found["table"] != json.loads(second.stdout)["table"]
    for query in found["queries"]:
        before, after = query["before"], query["after"]
        assert before["files"] == before["of_files"] == FILES
        # a range of one key may lie on both sides of a middle
        assert after["files"] <= after["of_files"] / 2
        # footers are a large part of files as small as these
        assert after["bytes"] < before["bytes"]
    assert found["queries"][-1]["after"]["files"] <= 2
    assert (user.folder / f"zadapter-demo/{format_}-1/lineitem.png").stat().st_size > 1_000
    assert keys_of(user, format_, found["table"]) == (ROWS, ROWS)


def keys_of(user, format_, table):
    """Return the number of rows and of distinct keys, by a reader that is neither Spark nor us."""
    folder = user.folder / table
    if format_ == "delta":
        rows = deltalake.DeltaTable(str(folder)).to_pyarrow_table()
    elif format_ == "iceberg":
        folder = user.folder / "spark-warehouse/iceberg/demo" / table.rpartition(".")[2]
        newest = max(folder.glob("metadata/*.metadata.json"))
        rows = StaticTable.from_metadata(str(newest)).scan().to_arrow()
    else:  # the files of the only commit
        rows = pa.concat_tables(map(pq.read_table, sorted(folder.glob("_zadapter/data/**/*.rows"))))
    keys = rows.select(["l_orderkey", "l_linenumber"])
    return keys.num_rows, keys.group_by(keys.column_names).aggregate([]).num_rows


def test_a_folder_that_cannot_be_used_is_named(user):
    """Before Spark starts."""
    (user.folder / "taken").touch()

    answer = user.call("zadapter", "demo", "--folder", "taken")

    assert answer.returncode == 2
    assert answer.stderr == "error: --folder: taken is a file; pass a folder\n"
