"""No column of the user's is taken for a helper's, whatever its name."""

from datetime import timedelta
from pathlib import Path
from urllib.parse import quote, unquote

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import zadapter
from integration.kit.hostile import HELPERS, QUOTED, RESERVED, VALUES, numbers, sql
from integration.parquet.lake import live
from tests.kit.variants import slow

NAMES = ("", *HELPERS, *QUOTED, *RESERVED[:-2], "_change_type")


def write(folder, table, partition=(), files=3):
    """Write a table by pyarrow, a few files a partition, without a word from Spark."""
    for at in range(files):
        some = table.take(list(range(at, table.num_rows, files)))
        values = [some[name].unique().to_pylist() for name in partition]
        for value in zip(*values, strict=True) if partition else [()]:
            named = zip(partition, value, strict=True)
            below = "/".join(f"{quote(name, safe='_. ')}={quote(str(v))}" for name, v in named)
            (folder / below).mkdir(parents=True, exist_ok=True)
            pq.write_table(some.drop_columns(list(partition)), folder / below / f"{at}.parquet")
    return str(folder)


def text(table):
    """The rows, as sorted text."""
    return sorted(str(sorted(row.items())) for row in table.to_pylist())


def check(spark, folder, wanted, where, mask, by=("key",)):
    """Do everything to a folder that zadapter can, and look at it by pyarrow and DuckDB."""
    asked = {"backend": "parquet", "spark": spark}
    for _ in range(2):
        assert text(zadapter.read(folder, where=where, **asked).toArrow()) == text(
            wanted.filter(mask)
        )
        assert text(zadapter.read(folder, **asked).toArrow()) == text(wanted)
        found = zadapter.files(folder, where=where, **asked)["path"].to_pylist()
        kept = duckdb.sql(f"SELECT count(*) FROM read_parquet({found}) WHERE key < 9")
        assert kept.fetchall()[0] == (pc.sum(pc.less(wanted["key"], 9)).as_py(),)
        report = zadapter.optimize(folder, by=[*by], target_file_size="2KB", **asked)
        assert text(live(folder)) == text(wanted)
    assert report.nothing_to_do
    assert zadapter.delete(folder, where, **asked).rows_deleted == pc.sum(mask).as_py()
    assert text(live(folder)) == text(wanted.filter(pc.invert(mask)))


@pytest.mark.slow
def test_columns_of_any_name_keep_their_rows(spark, tmp_path):
    """Of helpers, of metadata, and such as have to be quoted."""
    table = pa.table(numbers(("key", *NAMES)))
    folder = write(tmp_path / "names", table)
    # Spark puts a variable's value in the place of ${env}, so a condition cannot name it
    where = " AND ".join(f"{sql(name)} >= 0" for name in NAMES if name != "${env}")
    where = f"key < 9 AND {where} AND {sql('zadapter path')} < 55 AND `_metadata` > 1"
    some = pc.less(table["zadapter path"], 55)
    mask = pc.and_(pc.and_(pc.less(table["key"], 9), some), pc.greater(table["_metadata"], 1))

    check(spark, folder, table, where, mask, by=("key", "``"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "partition",
    [
        ("file_path", "zadapter value 0", "Ü b=c", "a.b"),
        *slow(("zadapter path", "_metadata"), ("_FILE",)),
    ],
)
def test_partitions_of_any_name_keep_their_rows(spark, tmp_path, partition):
    """Beside columns of such names, and a struct that looks like Spark's own metadata."""
    others = [name for name in ("zadapter known", "_metadata", "path") if name not in partition]
    table = pa.table(numbers(("key", *others)))
    if "_metadata" in others:
        fake = pa.array([{"file_path": f"/x/{row}", "row": row} for row in range(60)])
        table = table.set_column(table.schema.get_field_index("_metadata"), "_metadata", fake)
    for name in partition:
        table = table.append_column(name, pa.array(["only"] * 60))
    folder = write(tmp_path / "names", table, partition)
    where = f"key < 9 AND {sql(partition[0])} = 'only' AND path >= 0"

    check(spark, folder, table, where, pc.less(table["key"], 9))


@pytest.mark.slow
def test_partition_values_of_any_text_keep_their_rows(spark, tmp_path):
    """In a folder whose own name has escapes, patterns and quotes; after a publish, too."""
    values = [*VALUES]
    rows = pa.table({"key": range(4 * len(values)), "p": values * 4})
    folder = str(tmp_path / "a b%20c+#?[x]{y}*\u00fc'\"=")
    spark.createDataFrame(rows).coalesce(1).write.partitionBy("p").parquet(folder)
    asked = {"backend": "parquet", "spark": spark}

    found = zadapter.analyze(folder, by=["key"], queries=["key >= 0"], matches=True, **asked)
    assert found.queries[0].matches.rows == rows.num_rows
    assert zadapter.audit(folder, deep=True, **asked).findings.num_rows == 0
    zadapter.optimize(folder, by=["key"], force=True, **asked)
    assert text(zadapter.read(folder, **asked).toArrow()) == text(rows)
    assert zadapter.delete(folder, "key < 9 AND p >= ''", **asked).rows_deleted == 9
    zadapter.publish(folder, **asked)
    zadapter.vacuum(folder, older_than=timedelta(0), **asked)

    seen = [
        {"key": key, "p": unquote(path.parent.name.removeprefix("p="))}
        for path in Path(folder).glob("p=*/*.parquet")
        for key in pq.ParquetFile(path).read()["key"].to_pylist()
    ]
    wanted = sorted(rows.to_pylist(), key=lambda row: row["key"])[9:]
    assert sorted(seen, key=lambda row: row["key"]) == wanted


@pytest.mark.slow
def test_a_struct_like_sparks_metadata_stays(spark, tmp_path):
    """Rows get their partition's value by their own file, not by what they say of one."""
    rows = [{"file_path": f"/elsewhere/{row}", "file_name": str(row)} for row in range(60)]
    table = pa.table({"key": range(60), "_metadata": rows, "p": ["a b", "c"] * 30})
    folder = tmp_path / "names"
    for value in ("a b", "c"):
        (folder / f"p={quote(value)}").mkdir(parents=True)
        some = table.filter(pc.equal(table["p"], value)).drop_columns(["p"])
        pq.write_table(some, folder / f"p={quote(value)}" / "0.parquet")
    where = "_metadata.file_path < '/elsewhere/3' AND key < 9"
    mask = [row < 9 and f"/elsewhere/{row}" < "/elsewhere/3" for row in range(60)]

    check(spark, str(folder), table, where, pa.array(mask))
