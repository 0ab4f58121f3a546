"""Two processes on one catalog: PostgreSQL behind Iceberg's JDBC catalog."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyiceberg.catalog.sql import SqlCatalog

POSTGRES = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)), None)
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
def port(tmp_path_factory):
    """A PostgreSQL server of our own, on a free port of this machine."""
    if POSTGRES is None:
        (pytest.fail if "CI" in os.environ else pytest.skip)("needs Debian's package postgresql")
    folder = tmp_path_factory.mktemp("pg")
    for path in (folder, *list(folder.parents)[:-2]):  # the server runs as another user than root
        path.chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    data = ["-D", f"{folder}/data"]
    postgres("initdb", *data, "-A", "trust", "-U", "zadapter")
    options = f"-p {free} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    data += ["-t", "300"]  # seconds, should the machine be busy
    postgres("pg_ctl", *data, "-w", "-l", f"{folder}/log", "-o", options, "start")
    yield free
    postgres("pg_ctl", *data, "-m", "fast", "stop")


def postgres(program, *arguments):
    """Run one of PostgreSQL's programs, which refuse to be root."""
    owner = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    command = [*owner, str(POSTGRES / program), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")


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
