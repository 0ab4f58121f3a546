"""Servers of Spark that run beside a session in its JVM."""

from typing import Any

from zadapter.spark.jvm.gateway import JavaClass, hadoop_conf, java_session, scala_context
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import module

JavaObject = Any

_HOST = "hive.server2.thrift.bind.host"
_PORT = "hive.server2.thrift.port"
_MODE = "hive.server2.transport.mode"
_VARIABLES = (
    "HIVE_SERVER2_THRIFT_BIND_HOST",
    "HIVE_SERVER2_THRIFT_PORT",
    "HIVE_SERVER2_TRANSPORT_MODE",
)
"""Variables that Hive prefers to its settings."""
_LAST_ANSWERS = 5_000_000_000
"""Nanoseconds for the answers to calls that have ended: py4j sends a number so large as a long."""


def thrift_overrides(spark: Any) -> list[str]:
    """Return what makes Spark's Thrift server listen elsewhere than it is told.

    They are variables of the environment, settings of the session, and HTTP, which has a port of
    its own and listens at all addresses.
    """
    system = java_classes(spark).java.lang.System
    variables = [name for name in _VARIABLES if system.getenv(name) is not None]
    settings = [name for name in (_HOST, _PORT) if spark.conf.get(name, None) is not None]
    mode = str(hadoop_conf(spark).get(_MODE, "binary"))
    return [*variables, *settings, *([] if mode.lower() == "binary" else [f"{_MODE}={mode}"])]


def start_thrift(spark: Any, host: str, port: int) -> JavaObject | None:
    """Start Spark's Thrift server, and return it; None: Spark's jars do not have it."""
    servers = java_classes(spark).org.apache.spark.sql.hive.thriftserver
    if not isinstance(servers.HiveThriftServer2, JavaClass):
        return None
    settings = scala_context(spark.sparkContext).hadoopConfiguration()
    settings.set(_HOST, host)
    settings.set(_PORT, str(port))
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
    """Stop Spark's Connect server, after the answers to calls that have ended."""
    classes = java_classes(spark)
    unit = classes.java.util.concurrent.TimeUnit.NANOSECONDS
    service.stop(classes.scala.Option.apply(_LAST_ANSWERS), classes.scala.Option.apply(unit))
