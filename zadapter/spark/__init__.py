"""All that zadapter asks of Spark: the only package of the core that imports PySpark."""

from zadapter.spark.sessions import check, ensure, session

__all__ = ["check", "ensure", "session"]
