"""Relations of Spark's plans: which files they read."""

from typing import Any

from pyspark.sql import SparkSession

from zadapter.spark.jvm.gateway import is_instance
from zadapter.spark.jvm.java_classes import java_classes
from zadapter.spark.jvm.scala import items

JavaObject = Any
_FILES = "org.apache.spark.sql.execution.datasources."
_SCANNED = "DataSourceV2ScanRelation"


def find_roots(session: SparkSession, leaf: JavaObject) -> list[str]:
    """Return the root folders of the files that a relation of a plan reads; none: unknown."""
    kind = str(leaf.getClass().getSimpleName())
    if kind == "LogicalRelation":
        relation = leaf.relation()
        if not is_instance(session, relation, f"{_FILES}HadoopFsRelation"):
            return []
        return [str(root) for root in items(java_classes(session), relation.location().rootPaths())]
    if kind == "HiveTableRelation":
        return [str(leaf.tableMeta().location())]
    if kind in {"DataSourceV2Relation", "DataSourceV2ScanRelation"}:
        relation = leaf.relation() if kind.endswith("ScanRelation") else leaf
        location = relation.table().properties().get("location")
        return [] if location is None else [str(location)]
    return []


def whole_relation(leaf: JavaObject) -> JavaObject:
    """Return a relation without the filters and the choice of columns that its scan has."""
    return leaf.relation() if str(leaf.getClass().getSimpleName()) == _SCANNED else leaf
