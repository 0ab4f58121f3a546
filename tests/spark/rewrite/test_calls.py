"""What a call costs beside its rows: commands to the JVM and jobs of Spark.

Both are counts, which no load on the machine changes. A warm call takes a tenth of a millisecond a
command and some thirty a job (``python -m integration.bench --workloads start``).
"""

import pytest

import zadapter
from tests.kit.variants import slow

ROWS = (
    "timestamp_seconds(1750000000 + id * 7919 % 100003) AS event_time",
    "id * 31337 % 9973 AS user_id",
    "sha(string(id)) AS page",
)
KEYS = ["event_time", "user_id"]
FINALIZER = "m\n"
MOST = {
    "delta": {"optimize": (656, 4), "plan": (220, 1)},
    "parquet": {"optimize": (345, 3), "plan": (75, 0)},
    "iceberg": {"optimize": (640, 2), "plan": (230, 0)},
}
"""Commands and jobs of a warm rewrite of twelve files, and of a plan that finds nothing to do."""


def made(spark, table_format, folder):
    rows = spark.range(20_000).selectExpr(*ROWS).repartition(12)
    if table_format == "iceberg":
        spark.sql("CREATE NAMESPACE IF NOT EXISTS iceberg.calls")
        rows.writeTo("iceberg.calls.events").using("iceberg").createOrReplace()
        return "iceberg.calls.events"
    rows.write.format(table_format).save(str(folder))
    return str(folder)


def jobs(spark):
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - there is no public way
    context.listenerBus().waitUntilEmpty()
    none = spark._jvm.java.util.ArrayList()  # noqa: SLF001
    return max(each.jobId() for each in iterate(context.statusStore().jobsList(none)))


def iterate(items):
    return [items.apply(at) for at in range(items.size())]


@pytest.mark.parametrize("table_format", ["delta", "parquet", *slow("iceberg")])
def test_a_warm_call_asks_little_of_java_and_spark(spark, sent, tmp_path, table_format):
    """What is asked for each file or each column of a file would show."""
    found = {}
    for name in ("cold", "warm"):
        table = made(spark, table_format, tmp_path / name)
        for verb, options in ((zadapter.optimize, {"force": True}), (zadapter.plan, {})):
            before, _ = jobs(spark), sent.clear()
            verb(
                table,
                by=KEYS,
                target_file_size="64KB",
                backend=table_format,
                spark=spark,
                **options,
            )
            commands = sum(not command.startswith(FINALIZER) for command in sent)
            found[verb.__name__] = commands, jobs(spark) - before

    assert all(
        found[verb][0] <= commands and found[verb][1] <= most
        for verb, (commands, most) in MOST[table_format].items()
    ), found
