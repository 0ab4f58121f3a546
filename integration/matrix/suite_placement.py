"""Rows placed by Spark's own operators, with each release that is trusted with it."""

from tests.spark.conftest import conf, rows, table
from tests.spark.rewrite.test_write import *  # noqa: F403 - every test of it
from zadapter.spark.clone import scratch
from zadapter.spark.narrowing import row_test
from zadapter.spark.narrowing.sort import find_untested_component

__all__ = ["conf", "rows", "table"]


def test_the_release_is_a_tested_one(spark):
    """Else the other tests would look at plain operations only."""
    assert find_untested_component(spark) is None


def test_the_self_test_of_other_patches_passes(spark):
    """Else each patch that is not listed would be read two more times."""
    with scratch(spark) as clone:
        assert row_test.failure(clone) is None
