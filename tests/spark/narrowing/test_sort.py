"""Which sessions and plans the rewrite's physical plan was tested with."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pyspark.sql import functions as F

from zadapter.backend.builds import SPARK
from zadapter.backend.plugins import formats
from zadapter.spark.jvm.spark_classes import operators_of
from zadapter.spark.narrowing.sort import find_untested_component, find_untested_operator

OURS = ",".join(form.library.extension for form in formats().values() if form.library)
CODE = """
import json, sys
import zadapter, zadapter.spark

spark = zadapter.spark.session({
    "spark.master": "local[2]",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtensionV1",
    "spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0",
}, formats=["parquet"])
rows = spark.range(3_000).selectExpr("id * 7919 % 3001 AS a", "id AS b")
rows.repartition(3).write.parquet(sys.argv[1])
report = zadapter.optimize(
    sys.argv[1], by="a", backend="parquet", target_file_size="8KB", spark=spark
)
found = zadapter.read(sys.argv[1], spark=spark).selectExpr("count(*)", "sum(a)", "sum(b)").first()
print(json.dumps([*found, report.verification.by, report.verification.untested]))
spark.stop()
"""


class Context:
    def __init__(self, java):
        self._jsc = java


def session(version=None, rules=(), **settings):
    """What is asked of a session; Spark reads none of these settings once it runs."""
    settings = {key.replace("_", "."): value for key, value in settings.items()}
    scala = SimpleNamespace(isEmpty=lambda: not rules, head=lambda: rules[0])
    state = SimpleNamespace(columnarRules=lambda: scala)
    context = SimpleNamespace(conf=lambda: settings)
    return SimpleNamespace(
        version=version or SPARK[0],
        conf=SimpleNamespace(get=settings.get),
        sparkContext=Context(SimpleNamespace(sc=lambda: context)),
        _jsparkSession=SimpleNamespace(sessionState=lambda: state),
    )


def rule(name):
    return SimpleNamespace(getClass=lambda: SimpleNamespace(getName=lambda: name))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (session(), None),
        (session(spark_sql_extensions=f" {OURS},"), None),
        (session(spark_shuffle_manager="sort", spark_plugins=""), None),
        (session("4.1.99"), None),
        (session("4.1.4-amzn-0"), None),
        (session("4.99.1"), "Spark 4.99.1"),
        (session("3.4.4-amzn-0"), "Spark 3.4.4-amzn-0"),
        (session(spark_plugins="org.example.Plugin"), "spark.plugins=org.example.Plugin"),
        (session(spark_sql_extensions=f"{OURS},a.B"), "spark.sql.extensions=a.B"),
        (session(spark_shuffle_manager="a.Shuffle"), "spark.shuffle.manager=a.Shuffle"),
        (session(rules=[rule("a.Columnar")]), "the columnar rule a.Columnar"),
    ],
)
def test_what_no_test_has_run_with_is_named(found, reason):
    """A version by its full name, if no patch of its minor version was tested."""
    assert find_untested_component(found) == reason


def test_this_session_is_one_of_the_tested_ones(spark):
    """Else each test of the rewrite would look at plain operations only."""
    assert find_untested_component(spark) is None


def test_operators_that_are_not_sparks_own_are_named(spark):
    """Whatever lies on top of them."""
    shuffled = spark.range(10).repartition(2, F.col("id"))
    conf = "spark.sql.adaptive.enabled"
    before = spark.conf.get(conf)
    spark.conf.set(conf, "false")
    plan = shuffled._jdf.queryExecution().executedPlan()  # noqa: SLF001
    spark.conf.set(conf, before)
    operators, foreign = operators_of(spark, plan), "com.example.NativeScanExec"

    assert [name.rpartition(".")[2] for name in operators[:: len(operators) - 1]] == [
        "ShuffleExchangeExec", "RangeExec",
    ]  # fmt: skip
    assert find_untested_operator(operators) is None
    assert find_untested_operator(operators[1:]) == f"the operator {operators[1]}"
    assert find_untested_operator([*operators, foreign]) == f"the operator {foreign}"


@pytest.mark.slow
def test_a_session_with_an_extension_of_its_own_is_rewritten_by_plain_operations(tmp_path):
    """Rows are those that were there, and their checksum was taken without a word."""
    answer = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "events")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )

    assert answer.returncode == 0, answer.stderr[-4_000:]
    extension = "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtensionV1"
    sums = [3_000, sum(n * 7919 % 3001 for n in range(3_000)), sum(range(3_000))]
    assert json.loads(answer.stdout) == [*sums, "checksum", extension]
