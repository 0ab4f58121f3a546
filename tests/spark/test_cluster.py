"""The rewrite leans on nothing that only one process has."""

import subprocess
import sys

import pytest

from tests.kit.jvm import FAST_COMPILER

CODE = """
import sys
import zadapter, zadapter.spark

spark = zadapter.spark.session({
    "spark.master": "local-cluster[2,1,1024]",
    "spark.driver.memory": "1g",
    "spark.executor.extraJavaOptions": sys.argv[2],
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
}, formats=["delta"])
path = sys.argv[1]
rows = spark.range(0, 20_000, 1, 4).selectExpr("id a", "(id * 7919) % 20000 b", "id % 2 p")
rows.write.format("delta").partitionBy("p").save(path)
report = zadapter.optimize(
    path, by=["a", "b"], target_file_size="16KB", verify="checksum", spark=spark
)
assert str(report.verification) == "checksum", report
found = spark.read.format("delta").load(path).selectExpr("sum(a)", "sum(b)", "count(*)").first()
assert tuple(found) == (199_990_000, 199_990_000, 20_000), found
assert report.share_after < report.share_before, report
assert zadapter.plan(path, by=["a", "b"], target_file_size="16KB", spark=spark).nothing_to_do
print("executors:", spark._jsc.sc().getExecutorMemoryStatus().size() - 1)
spark.stop()
"""


@pytest.mark.slow
def test_an_optimize_on_two_executors(tmp_path):
    """Keys, cuts and row groups reach processes of their own, and checksums come from them."""
    answer = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "events"), " ".join(FAST_COMPILER)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert answer.stdout.endswith("executors: 2\n"), answer.stderr[-4_000:]
