"""What promises to write nothing leaves nothing in the folder where it runs."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

CODE = """
import zadapter
import zadapter.spark
from zadapter.errors import UsageError

spark = zadapter.spark.session({"spark.ui.showConsoleProgress": "false"})
print(zadapter.plan("plain", by="a", backend="parquet"))
for table in ("plain", "nothing", "db.nothing", "iceberg.db.nothing"):
    try:
        zadapter.plan(table, by="a")
    except UsageError as error:
        print(error)
assert zadapter.read("plain", backend="parquet").count() == 1_000
assert zadapter.files("plain", backend="parquet").num_rows == 1
try:
    zadapter.history("plain", backend="parquet")
except UsageError as error:
    print(error)
for to, target in {"delta": "new", "iceberg": "iceberg.db.new"}.items():
    print(zadapter.migrate("plain", to=to, target=target, backend="parquet", dry_run=True))
"""


@pytest.mark.slow
def test_plans_leave_nothing_behind(tmp_path):
    """No warehouse, no catalog, no log."""
    (tmp_path / "plain").mkdir()
    pq.write_table(pa.table({"a": range(1_000)}), tmp_path / "plain" / "0.parquet")

    ended = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr[-3_000:]
    found = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert found == ["plain", "plain/0.parquet"]
