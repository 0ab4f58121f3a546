"""Spark sessions and their settings, files in Spark's stores, samples and checksums."""

from zadapter.spark.sessions import check, ensure, session

__all__ = ["check", "ensure", "session"]
