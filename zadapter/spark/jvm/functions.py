"""Spark's built-in functions, and those of a session that replace them."""

from typing import Any

from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import module

_SYSTEM, _BUILTIN, _SESSION = "system", "builtin", "session"
"""Parts of the names of functions since Spark 4.2."""


def is_replaced(spark: Any, name: str) -> bool:
    """Return whether a function of the session has the name of a built-in function.

    Until Spark 4.1, it replaces the built-in function. Since Spark 4.2, a setting decides.
    """
    jvm = java_classes(spark)
    catalyst = jvm.org.apache.spark.sql.catalyst
    companion = module(catalyst.analysis, "FunctionRegistry")
    registry = spark._jsparkSession.sessionState().functionRegistry()  # noqa: SLF001
    option, qualified = jvm.scala.Option.apply, "builtinFunctionIdentifier" in dir(companion)

    def identifier(database: str) -> Any:
        if not qualified:
            return catalyst.FunctionIdentifier(name, option(None))
        return catalyst.FunctionIdentifier(name, option(database), option(_SYSTEM))

    builtin = companion.builtin().lookupFunction(identifier(_BUILTIN))
    if builtin.isEmpty():
        return False
    if qualified and registry.functionExists(identifier(_SESSION)):
        return True
    return not builtin.equals(registry.lookupFunction(identifier(_BUILTIN)))
