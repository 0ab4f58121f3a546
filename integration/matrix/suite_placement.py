"""Rows placed by Spark's own operators, with each release that is trusted with it."""

from tests.spark.conftest import conf, rows, table
from tests.spark.rewrite.test_shuffle import *  # noqa: F403 - every test of it
from zadapter.spark.tested_versions import untested_session

__all__ = ["conf", "rows", "table"]


def test_the_release_is_a_tested_one(spark):
    """Else the other tests would look at plain operations only."""
    assert untested_session(spark) is None
