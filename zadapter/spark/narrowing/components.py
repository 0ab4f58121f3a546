"""Detection of sessions and plans that the rewrite's physical plan was not tested with.

The physical plan relies on Spark's own operators (:mod:`zadapter.spark.narrowing.sort`). A plug-in
such as Gluten, Comet or RAPIDS replaces operators after planning, so the session is checked as well
as the plan.
"""

from typing import Any

from pyspark.sql import SparkSession

from zadapter.backend import builds, plugins
from zadapter.backend.builds import Standing
from zadapter.backend.format import Library
from zadapter.spark.jvm.gateway import java_session
from zadapter.spark.settings import EXTENSIONS

_PLUGINS = "spark.plugins"
_SHUFFLE = "spark.shuffle.manager"
_SORT_SHUFFLE = {"", "sort", "tungsten-sort", "org.apache.spark.shuffle.sort.SortShuffleManager"}
_EXCHANGE = "org.apache.spark.sql.execution.exchange.ShuffleExchangeExec"
_OPERATORS = "org.apache.spark.sql.execution."
"""Package of Spark's operators."""


def untested_session(spark: SparkSession) -> str | None:
    """Return the component of a session that was not tested, or None."""
    if builds.standing(spark.version) is Standing.UNKNOWN:
        return f"Spark {spark.version}"
    if plugins := _setting(spark, _PLUGINS):
        return f"{_PLUGINS}={plugins}"
    if (shuffle := _setting(spark, _SHUFFLE)) not in _SORT_SHUFFLE:
        return f"{_SHUFFLE}={shuffle}"
    extensions = {library.extension for library in _libraries()}
    names = [name.strip() for name in _setting(spark, EXTENSIONS).split(",")]
    if unknown := [name for name in names if name and name not in extensions]:
        return f"{EXTENSIONS}={unknown[0]}"
    # a service file in a jar, or code, may also register extensions
    rules = java_session(spark).sessionState().columnarRules()
    return None if rules.isEmpty() else f"the columnar rule {_class(rules.head())}"


def untested_plan(exchange: Any) -> str | None:
    """Return an operator at or below a shuffle that was not tested, or None.

    Args:
        exchange: Spark's ``SparkPlan``, whose root should be the shuffle.
    """
    if _class(exchange) != _EXCHANGE:
        return f"the operator {_class(exchange)}"
    tested = (_OPERATORS, *(name for library in _libraries() for name in library.operators))
    plans = [exchange]
    while plans:
        plan = plans.pop()
        if not _class(plan).startswith(tested):
            return f"the operator {_class(plan)}"
        children = plan.children()
        plans += [children.apply(at) for at in range(children.size())]
    return None


def _libraries() -> list[Library]:
    """Return the libraries of all installed formats, which bring extensions and operators."""
    return [form.library for form in plugins.formats().values() if form.library]


def _setting(spark: SparkSession, key: str) -> str:
    return str(spark.conf.get(key, None) or spark.sparkContext.getConf().get(key) or "").strip()


def _class(instance: Any) -> str:
    return str(instance.getClass().getName())
