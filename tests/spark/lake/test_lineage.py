"""Events of OpenLineage that real rewrites send."""

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import zadapter
from tests.kit.lineage import send_to_file
from zadapter.errors import DataFileError

ROWS = 3_000


@pytest.fixture
def events(tmp_path, monkeypatch):
    """Reads the events that are sent to a file."""
    config, read = send_to_file(tmp_path)
    monkeypatch.setenv("OPENLINEAGE_CONFIG", str(config))
    return read


def parts():
    """Rows of three files, in no order of their key."""
    rows = pa.table({"id": [i * 7919 % ROWS for i in range(ROWS)], "text": ["x" * 99] * ROWS})
    return [rows.slice(part * ROWS // 3, ROWS // 3) for part in range(3)]


def states(events):
    return [event["eventType"] for event in events]


@pytest.mark.slow
def test_a_rewrite_that_fails_says_why(spark, tmp_path, events):
    """Keys can be read, and so a rewrite is planned; the other column is damaged."""
    table = tmp_path / "a lake" / "t"
    for part in parts():
        deltalake.write_deltalake(str(table), part, mode="append")
    path = next(table.glob("*.parquet"))
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(1)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content = bytearray(path.read_bytes())
    content[start : start + chunk.total_compressed_size] = bytes(chunk.total_compressed_size)
    path.write_bytes(content)

    with pytest.raises(DataFileError) as failure:
        zadapter.optimize(str(table), by="id", target_file_size="16KB", spark=spark)

    found = events()
    assert states(found) == ["START", "FAIL"]
    ((output,), (same,)) = (event["outputs"] for event in found)
    assert (output["namespace"], output["name"]) == ("file", str(table))
    assert same["outputFacets"] == {}
    told = found[-1]["run"]["facets"]["errorMessage"]["message"]
    assert told.removeprefix("DataFileError: ") in str(failure.value)


@pytest.mark.slow
def test_a_table_of_a_catalog_has_its_location_and_a_link(spark, events):
    spark.sql("CREATE NAMESPACE iceberg.told")
    try:
        made = spark.createDataFrame(pa.concat_tables(parts()).to_pandas()).repartition(3)
        made.writeTo("iceberg.told.t").using("iceberg").create()
        report = zadapter.optimize("iceberg.told.t", by="id", target_file_size="16KB", spark=spark)

        assert report.versions
        assert states(events()) == ["START", "COMPLETE"]
        (output,) = events()[0]["outputs"]
        assert output["namespace"] == "file"
        assert output["name"].endswith("told/t")
        (link,) = output["facets"]["symlinks"]["identifiers"]
        assert link["name"] == "told.t"
        assert (
            link["namespace"] == spark.conf.get("spark.sql.catalog.iceberg.uri").partition("?")[0]
        )
        assert "parent" not in events()[0]["run"]["facets"]
    finally:
        spark.sql("DROP TABLE IF EXISTS iceberg.told.t PURGE")
        spark.sql("DROP NAMESPACE iceberg.told")
