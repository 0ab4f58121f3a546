"""Where rows may be narrowed in place: sessions and plans like those that this was tested with.

The rewrite's physical plan relies on Spark's own operators (:mod:`zadapter.rewrite.shuffle`). A
plug-in such as Gluten, Comet or RAPIDS replaces operators after a plan was made, so the session is
looked at as well as the plan.
"""

from typing import Any

from pyspark.sql import SparkSession

from zadapter.spark.settings import EXTENSIONS, FORMATS

VERSIONS = frozenset({"4.1.4"})
"""Versions of Spark whose plans ``tests/spark/rewrite/test_shuffle.py`` has passed with."""
_PLUGINS = "spark.plugins"
_SHUFFLE = "spark.shuffle.manager"
_SORT_SHUFFLE = {"", "sort", "tungsten-sort", "org.apache.spark.shuffle.sort.SortShuffleManager"}
_EXTENSIONS = {form.extension for form in FORMATS.values()}
_EXCHANGE = "org.apache.spark.sql.execution.exchange.ShuffleExchangeExec"
_OPERATORS = ("org.apache.spark.sql.execution.", "org.apache.spark.sql.delta.", "io.delta.",
              "org.apache.iceberg.")  # fmt: skip
"""Packages of Spark's own operators, and of the formats'."""


def untested_session(spark: SparkSession) -> str | None:
    """Return what in a session the rewrite's physical plan was not tested with, if anything."""
    if spark.version not in VERSIONS:
        return f"Spark {spark.version}"
    if plugins := _setting(spark, _PLUGINS):
        return f"{_PLUGINS}={plugins}"
    if (shuffle := _setting(spark, _SHUFFLE)) not in _SORT_SHUFFLE:
        return f"{_SHUFFLE}={shuffle}"
    names = [name.strip() for name in _setting(spark, EXTENSIONS).split(",")]
    if unknown := [name for name in names if name and name not in _EXTENSIONS]:
        return f"{EXTENSIONS}={unknown[0]}"
    # extensions may also come without a setting: by a service file in a jar, or by code
    rules = spark._jsparkSession.sessionState().columnarRules()  # noqa: SLF001
    return None if rules.isEmpty() else f"the columnar rule {_class(rules.head())}"


def untested_plan(exchange: Any) -> str | None:
    """Return the operator below a shuffle that is not Spark's own or a format's, if there is one.

    Args:
        exchange: Spark's ``SparkPlan``, which should begin with the shuffle.
    """
    if _class(exchange) != _EXCHANGE:
        return f"the operator {_class(exchange)}"
    plans = [exchange]
    while plans:
        plan = plans.pop()
        if not _class(plan).startswith(_OPERATORS):
            return f"the operator {_class(plan)}"
        children = plan.children()
        plans += [children.apply(at) for at in range(children.size())]
    return None


def _setting(spark: SparkSession, key: str) -> str:
    return str(spark.conf.get(key, None) or spark.sparkContext.getConf().get(key) or "").strip()


def _class(found: Any) -> str:
    return str(found.getClass().getName())
