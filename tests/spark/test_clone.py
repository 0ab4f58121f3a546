"""A session beside the user's, of which nothing is to be seen afterwards."""

from contextlib import ExitStack

from zadapter.spark.clone import scratch, silence_errors
from zadapter.spark.compat.spark_api import error_loggers


def test_rdds_become_rows_of_the_users_session(spark):
    """PySpark has ``toDF`` go by whichever session was made last, with zadapter's settings."""
    rdd = spark.sparkContext.parallelize([("x",)])
    before = rdd.toDF(["c"]).sparkSession

    with scratch(spark):
        pass

    assert rdd.toDF(["c"]).sparkSession is before


def test_runs_side_by_side_give_the_loggers_back():
    """Whichever ends first: errors of the user's queries are printed again afterwards."""
    before = [logger.disabled for logger in error_loggers()]
    first, second = ExitStack(), ExitStack()

    first.enter_context(silence_errors())
    second.enter_context(silence_errors())
    first.close()
    between = [logger.disabled for logger in error_loggers()]
    second.close()

    assert between == [True] * len(before)
    assert [logger.disabled for logger in error_loggers()] == before
