"""PySpark's ways to the objects of the JVM, which are private; py4j's names that others need.

Other modules ask here, so that a change of PySpark or py4j concerns this package and the backends'
``jvm.py`` alone.
"""

from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from py4j.clientserver import ClientServer
from py4j.java_gateway import JavaClass, is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError

from zadapter.spark.jvm.java_classes import java_classes

JavaObject = Any

_scala: WeakKeyDictionary[Any, JavaObject] = WeakKeyDictionary()
"""The ``SparkContext`` of Scala of each one of Python."""


class JobStatus(NamedTuple):
    """What Spark knows of its jobs and stages."""

    events: JavaObject
    """The ``LiveListenerBus``, from which the others learn it."""
    jobs: JavaObject
    """The ``SparkStatusTracker``; PySpark's own one knows no tags."""
    stages: JavaObject
    """The ``AppStatusStore``."""


_status: WeakKeyDictionary[Any, JobStatus] = WeakKeyDictionary()

__all__ = [
    "JavaClass",
    "Py4JError",
    "Py4JJavaError",
    "Py4JNetworkError",
    "analyzed_plan",
    "gateway_of",
    "hadoop_conf",
    "has_own_threads",
    "integers",
    "is_instance",
    "is_stopped",
    "java_column",
    "java_rows",
    "java_session",
    "job_status",
    "jvm_of",
    "query_execution",
    "scala_context",
    "stages_by_job",
]


def java_session(spark: Any) -> JavaObject:
    """Return the ``SparkSession`` of Java."""
    return spark._jsparkSession  # noqa: SLF001


def java_rows(rows: Any) -> JavaObject:
    """Return the ``Dataset`` of a DataFrame."""
    return rows._jdf  # noqa: SLF001


def java_column(column: Any) -> JavaObject:
    """Return the ``Column`` of Java."""
    return column._jc  # noqa: SLF001


def query_execution(rows: Any) -> JavaObject:
    """Return the plans of a DataFrame."""
    return java_rows(rows).queryExecution()


def analyzed_plan(rows: Any) -> JavaObject:
    """Return the analysed plan of a DataFrame."""
    return query_execution(rows).analyzed()


def hadoop_conf(spark: Any) -> JavaObject:
    """Return Hadoop's configuration with the settings of a session."""
    return java_session(spark).sessionState().newHadoopConf()


def scala_context(context: Any) -> JavaObject:
    """Return the ``SparkContext`` of Scala."""
    known = _scala.get(context)
    if known is None or is_stopped(context):
        known = _scala[context] = context._jsc.sc()  # noqa: SLF001
    return known


def job_status(context: Any) -> JobStatus:
    """Return what Spark knows of the jobs of a SparkContext."""
    known = _status.get(context)
    if known is None or is_stopped(context):
        scala = scala_context(context)
        found = JobStatus(scala.listenerBus(), scala.statusTracker(), scala.statusStore())
        known = _status[context] = found
    return known


def is_stopped(context: Any) -> bool:
    """Return whether a SparkContext is stopped."""
    return context._jsc is None  # noqa: SLF001


def jvm_of(spark: Any) -> JavaObject:
    """Return py4j's view of the JVM, of a session or a SparkContext; None if there is no JVM."""
    return spark._jvm  # noqa: SLF001


def gateway_of(context: Any) -> JavaObject:
    """Return py4j's gateway of a SparkContext."""
    return context._gateway  # noqa: SLF001


def has_own_threads(spark: Any) -> bool:
    """Return whether each thread of Python has a thread of Java, with properties of its own."""
    return isinstance(gateway_of(spark.sparkContext), ClientServer)


def is_instance(spark: Any, java: JavaObject, name: str) -> bool:
    """Return whether an object of Java is an instance of the class with a full name."""
    return bool(is_instance_of(gateway_of(spark.sparkContext), java, name))


def stages_by_job(context: Any, tag: str) -> list[list[int]]:
    """Return the ids of the stages of each Spark job with a tag, both in ascending order."""
    tracker = job_status(context).jobs
    jobs = integers(context, tracker.getJobIdsForTag(tag))
    infos = [tracker.getJobInfo(job) for job in sorted(jobs)]
    return [sorted(integers(context, i.get().stageIds())) for i in infos if i.isDefined()]


def integers(spark: Any, array: JavaObject) -> list[int]:
    """Return the items of a Java array of integers: by py4j, each is a call into Java."""
    text = str(java_classes(spark).java.util.Arrays.toString(array))
    return [int(each) for each in text.strip("[]").split(",") if each]
