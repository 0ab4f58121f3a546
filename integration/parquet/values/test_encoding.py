"""How rows are put into files."""

import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F


@pytest.mark.parametrize(("by", "kept"), [("often", True), ("seldom", False)])
def test_keys_have_a_dictionary_where_it_pays(lake, spark, by, kept):
    """Scattered as they are before, none has one; the writer by itself would keep both after."""
    values = {"often": 60_000, "seldom": 150_000}
    columns = [
        f"pmod(xxhash64(id % {count}), 1000000000) AS {name}" for name, count in values.items()
    ]
    scattered = spark.range(0, 240_000, 1, 1).orderBy(F.xxhash64("id"))
    table = lake.make(scattered.coalesce(1).selectExpr(*columns, "'a' AS same"))
    assert not any(has_dictionary(file, by) for file in lake.files(table))

    lake.optimize(table, by=[by], target_file_size="512KB", row_groups=2)

    assert {has_dictionary(file, by) for file in lake.files(table)} == {kept}


def has_dictionary(file, column):
    """Whether the first row group of a file has one."""
    chunks = pq.read_metadata(file).row_group(0).to_dict()["columns"]
    return any(c["path_in_schema"] == column and c["has_dictionary_page"] for c in chunks)
