"""Two processes on one catalog: PostgreSQL behind Iceberg's JDBC catalog."""

import subprocess
import sys

import pytest
from pyiceberg.catalog.sql import SqlCatalog

from integration.kit.postgres import postgres_server

REWRITES, APPENDS = 3, 150
CODE = """
import sys
from pathlib import Path
import zadapter, zadapter.spark
from zadapter.errors import ConflictError

role, port, folder, rewrites, appends = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
ice = "spark.sql.catalog.pg"
spark = zadapter.spark.session({
    "spark.master": "local[1]", "spark.sql.shuffle.partitions": "1", "spark.driver.memory": "1g",
    "spark.jars.packages": "org.postgresql:postgresql:42.7.4", "spark.log.level": "ERROR",
    ice: "org.apache.iceberg.spark.SparkCatalog", ice + ".type": "jdbc",
    ice + ".uri": f"jdbc:postgresql://127.0.0.1:{port}/postgres",
    ice + ".jdbc.user": "zadapter", ice + ".jdbc.schema-version": "V1",
    ice + ".warehouse": f"file://{folder}", ice + ".cache-enabled": "false",
}, formats=["iceberg"])
rows = "id * 7919 % 1009 AS a, id AS b"
if role == "make":
    spark.sql("CREATE NAMESPACE IF NOT EXISTS pg.db")
    spark.sql(f"CREATE TABLE pg.db.t USING iceberg TBLPROPERTIES "
              f"('commit.retry.num-retries'='20') AS SELECT {rows} FROM range(5000)")
elif role == "append":  # so many at most: a rewrite that always loses to them must come to its end
    done, enough = 0, Path(folder) / "enough"
    while not enough.exists() and done < appends:
        spark.sql(f"INSERT INTO pg.db.t SELECT {rows} FROM range(10)")
        done += 1
    print("DONE", done)
else:
    done = 0
    while done < rewrites:
        try:
            done += len(zadapter.optimize("pg.db.t", by="a", target_file_size="8KB",
                                          force=True, backend="iceberg").versions)
        except ConflictError:
            pass
    (Path(folder) / "enough").touch()
    print("DONE", done)
"""


@pytest.fixture
def port():
    with postgres_server() as port:
        yield port


def process(role, port, folder):
    arguments = [role, str(port), str(folder), str(REWRITES), str(APPENDS)]
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


@pytest.mark.slow
def test_a_process_that_appends_and_one_that_rewrites_lose_nothing(port, tmp_path):
    """Until there are three: every row that was appended is there once, in files that are there."""
    _, errors = (maker := process("make", port, tmp_path)).communicate(timeout=300)
    assert maker.returncode == 0, errors[-2000:]
    both = [process(role, port, tmp_path) for role in ("append", "optimize")]
    answers = [each.communicate(timeout=900) for each in both]
    assert [each.returncode for each in both] == [0, 0], answers
    appended, rewritten = (int(out.split("DONE")[1]) for out, _ in answers)

    uri = f"postgresql+psycopg2://zadapter@127.0.0.1:{port}/postgres"
    rows = SqlCatalog("pg", uri=uri).load_table("db.t").scan().to_arrow()

    assert appended > 3
    assert rewritten >= REWRITES
    assert rows.num_rows == 5_000 + 10 * appended
    wanted = sorted([*range(5_000), *(list(range(10)) * appended)])
    assert sorted(rows["b"].to_pylist()) == wanted
