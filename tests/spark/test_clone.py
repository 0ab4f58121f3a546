"""A session beside the user's, of which nothing is to be seen afterwards."""

from pyspark.sql import functions as F

from zadapter.spark.clone import scratch


def test_rdds_become_rows_of_the_users_session(spark):
    """PySpark has ``toDF`` go by whichever session was made last, with zadapter's settings."""
    rdd = spark.sparkContext.parallelize([("x",)])
    before = rdd.toDF(["c"]).sparkSession

    with scratch(spark):
        pass

    assert rdd.toDF(["c"]).sparkSession is before


def test_names_in_sql_text_are_names(spark):
    """Spark would replace variables in them, and take some for regular expressions."""
    name = "price${spark.master}"
    with scratch(spark) as clone:
        rows = clone.range(1).withColumn("pricelocal[2]", F.lit(1)).withColumn(name, F.lit(5))

        assert rows.select(F.expr(f"`{name}`")).collect() == [(5,)]
