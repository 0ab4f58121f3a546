"""Servers of Spark that run beside a session in its JVM."""

from typing import Any

from zadapter.spark.jvm.gateway import JavaClass, java_session, scala_context
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import module

JavaObject = Any


def start_thrift(spark: Any, host: str, port: int) -> JavaObject | None:
    """Start Spark's Thrift server, and return it; None: Spark's jars do not have it."""
    servers = java_classes(spark).org.apache.spark.sql.hive.thriftserver
    if not isinstance(servers.HiveThriftServer2, JavaClass):
        return None
    settings = scala_context(spark.sparkContext).hadoopConfiguration()
    settings.set("hive.server2.thrift.bind.host", host)
    settings.set("hive.server2.thrift.port", str(port))
    companion = module(servers, "HiveThriftServer2")
    companion.systemExitOnError().set(False)
    return companion.startWithContext(java_session(spark).sqlContext())


def start_connect(spark: Any, host: str, port: int) -> JavaObject | None:
    """Start Spark's Connect server, and return it; None: Spark's jars do not have it."""
    services = java_classes(spark).org.apache.spark.sql.connect.service
    if not isinstance(services.SparkConnectService, JavaClass):
        return None
    context = scala_context(spark.sparkContext)
    context.conf().set("spark.connect.grpc.binding.address", host)
    context.conf().set("spark.connect.grpc.binding.port", str(port))
    service = module(services, "SparkConnectService")
    service.start(context)
    return service


def stop_connect(spark: Any, service: JavaObject) -> None:
    """Stop Spark's Connect server."""
    none = java_classes(spark).scala.Option.apply(None)
    service.stop(none, none)
