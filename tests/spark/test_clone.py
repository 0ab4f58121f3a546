"""A session beside the user's, of which nothing is to be seen afterwards."""

from zadapter.spark.clone import scratch


def test_rdds_become_rows_of_the_users_session(spark):
    """PySpark has ``toDF`` go by whichever session was made last, with zadapter's settings."""
    rdd = spark.sparkContext.parallelize([("x",)])
    before = rdd.toDF(["c"]).sparkSession

    with scratch(spark):
        pass

    assert rdd.toDF(["c"]).sparkSession is before
