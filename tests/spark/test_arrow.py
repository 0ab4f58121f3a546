"""Arrow's tables as DataFrames."""

from datetime import datetime, timezone

import pyarrow as pa
import pytest

from zadapter.spark.compat.spark_api import from_arrow, to_arrow

LARGE = "spark.sql.execution.arrow.useLargeVarTypes"


@pytest.mark.parametrize("large", ["false", "true"])
def test_a_table_is_the_same_in_spark_whatever_size_of_offsets_the_session_has(spark, conf, large):
    """With offsets of another size, the JVM would read other memory, or end."""
    rows = [
        {
            "s": text,
            "b": text and text.encode(),
            "n": {"s": text, "m": [("k", text)]},
            "l": [text, None],
            "t": datetime(2024, 1, 1, tzinfo=timezone.utc),
        }
        for text in ("a", None, "text " * 9, "")
    ]
    nested = pa.struct([("s", pa.string()), ("m", pa.map_(pa.string(), pa.string()))])
    table = pa.Table.from_pylist(
        rows,
        pa.schema(
            [
                ("s", pa.string()),
                ("b", pa.binary()),
                ("n", nested),
                ("l", pa.list_(pa.string())),
                ("t", pa.timestamp("us", "UTC")),
            ]
        ),
    )
    conf({LARGE: large})

    assert to_arrow(from_arrow(spark, table)).to_pylist() == table.to_pylist()
