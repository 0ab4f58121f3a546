"""``zadapter serve``: clients of SQL, in processes of their own, cluster a table by CALL."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import deltalake
import pyarrow as pa
import pyspark
import pytest
from deltalake import DeltaTable

from integration.kit.network import HOST
from integration.kit.servers import answers, free_port, wait_for
from integration.kit.witnesses import FILES, delta_table, of_delta, of_files, rows
from zadapter.base.printable import abridge

ROWS = 60_000
SPARK_HOME = Path(pyspark.__file__).parent
CONNECT = """
import json, sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
(row,) = spark.sql(
    "CALL zadapter.system.optimize(table => 'lake/events', by => array('a'), "
    "target_file_size => '64KB')"
).collect()
try:
    spark.sql("CALL zadapter.system.optimize('lake/none')").collect()
except PySparkException as error:
    message = str(error)
print(json.dumps([row.version, row.rows_added, row.share_after < row.share_before, message]))
"""
ENDED = """
import sys
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
try:
    spark.sql(
        "CALL zadapter.system.optimize(table => 'lake/events', by => array('a'), force => true, "
        "target_file_size => '2KB', max_job_bytes => '1KB')"
    ).collect()
except PySparkException as error:
    print(error)
"""
PARTITIONS = 60
"""Each is a job and a commit of its own: Ctrl-C comes between the first and the last."""
OPTIMIZE = (
    "CALL zadapter.system.optimize(table => 'delta.`{}`', by => array('a'), "
    "target_file_size => '64KB');"
)


@contextmanager
def served(user, *options, ports):
    """Run the server until Ctrl-C, and check that it ends as if nothing were wrong."""
    with (
        (user.folder / "log").open("w") as log,
        subprocess.Popen(
            ["zadapter", "serve", *map(str, options)], cwd=user.folder,
            env=user.environment(SPARK_DRIVER_MEMORY="1g"), stdout=log, stderr=log,
            stdin=subprocess.DEVNULL, start_new_session=True,
        ) as server,
    ):  # fmt: skip
        try:
            wait_for(server, lambda: all(map(answers, ports)))
            yield
        finally:
            os.killpg(server.pid, signal.SIGINT)
            ended = server.wait()
    assert ended == 0, (user.folder / "log").read_text()[-5_000:]


def beeline(user, port, *statements):
    """Run statements by Hive's client; return the exit code, rows and errors."""
    program = str(SPARK_HOME / "bin" / "beeline")
    answer = user.call(
        program, "-u", f"jdbc:hive2://{HOST}:{port}", "-n", "anyone", "--outputformat=csv2",
        "--silent=true", "-e", " ".join(statements), SPARK_HOME=str(SPARK_HOME),
    )  # fmt: skip
    return answer.returncode, answer.stdout, answer.stderr


def largest_overlap(table):
    """Return how many live files may hold one value of the key, by their bounds in the log."""
    actions = pa.table(DeltaTable(table).get_add_actions(flatten=True)).to_pylist()
    return max(
        sum(each["min.a"] <= one["min.a"] <= each["max.a"] for each in actions) for one in actions
    )


@pytest.mark.slow
def test_clients_of_thrift_and_connect(user):
    """One table each; the rows stay, filters on the key open fewer files, Ctrl-C ends both."""
    thrift, connect = free_port(), free_port()
    tables = {name: user.folder / "lake" / name for name in ("events", "visits")}
    for table in tables.values():
        delta_table(str(table), ROWS)
    before = {name: of_delta(str(table)) for name, table in tables.items()}
    assert {*map(largest_overlap, tables.values())} == {FILES}

    with served(user, "--port", thrift, "--connect-port", connect, ports=(thrift, connect)):
        printed = user.python(CONNECT, f"sc://{HOST}:{connect}")
        version, added, saved, message = json.loads(printed)
        code, printed, errors = beeline(user, thrift, OPTIMIZE.format(tables["visits"]))
        failed = beeline(user, thrift, "CALL zadapter.system.analyze('lake/none');")

    assert (version, added, saved) == (FILES, ROWS, True)  # one run: CALL ran once
    assert "lake/none" in message
    assert code == 0, errors
    header, row = printed.strip().splitlines()[:2]
    assert header.startswith("table,version,versions,files_removed")
    assert str(tables["visits"]) in row
    assert failed[0] != 0
    assert "lake/none" in failed[2]
    for name, table in tables.items():
        assert of_delta(str(table)) == of_files(DeltaTable(table).file_uris()) == before[name]
        assert largest_overlap(table) <= 2  # a value may lie on a bound


@pytest.mark.slow
def test_a_client_of_connect_sees_how_ctrl_c_ended_its_call(user):
    """It names the versions of the table's history; no row is lost."""
    thrift, connect = free_port(), free_port()
    table = str(user.folder / "lake" / "events")
    parts = pa.array([i % PARTITIONS for i in range(ROWS)])
    every = rows(ROWS).append_column("p", parts)
    for start in range(0, ROWS, ROWS // 2):
        part = every.slice(start, ROWS // 2)
        deltalake.write_deltalake(table, part, mode="append", partition_by=["p"])
    before, first = of_delta(table), DeltaTable(table).version() + 1

    with served(user, "--port", thrift, "--connect-port", connect, ports=(thrift, connect)):
        client = subprocess.Popen(
            [sys.executable, "-c", ENDED, f"sc://{HOST}:{connect}"], cwd=user.folder,
            env=user.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        wait_for(client, lambda: DeltaTable(table).version() >= first)
    with client:
        printed = client.communicate()[0]

    last = DeltaTable(table).version()
    assert first <= last < first + PARTITIONS - 1  # it was ended
    committed = abridge(range(first, last + 1))
    assert f"interrupted; versions committed by this call: {committed}" in printed
    assert of_delta(table) == before


@pytest.mark.slow
def test_a_port_in_use(user):
    """One line, and nothing is started."""
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        answer = user.call("zadapter", "serve", "--port", str(port))

    assert answer.returncode == 1
    assert f"{HOST}:{port}" in answer.stderr


@pytest.mark.slow
def test_a_variable_of_hive_does_not_open_the_server(user):
    """Hive prefers it to the address that zadapter names: nothing is started."""
    port = str(free_port())
    answer = user.call("zadapter", "serve", "--port", port, HIVE_SERVER2_THRIFT_BIND_HOST="0.0.0.0")

    assert answer.returncode == 1
    assert "HIVE_SERVER2_THRIFT_BIND_HOST" in answer.stderr
    assert not answers(int(port))
