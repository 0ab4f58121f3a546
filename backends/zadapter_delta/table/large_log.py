"""Live files of a table with a large checkpoint, without Delta's state.

Delta shuffles and replays all actions of a table to know its state, and keeps them. But a
checkpoint is a state already, and few of its files are in later commits. Delta's own replay
(``InMemoryLogReplay``) gets the actions of these; all other files are read from the checkpoint as
they are, and only the columns that are asked for.
"""

import json
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from zadapter.spark.compat.spark_api import to_arrow
from zadapter.spark.jvm.gateway import java_column, java_rows
from zadapter_delta.jvm import JavaObject, Jvm
from zadapter_delta.table.replay import new_replay

LARGE = 8 << 20
"""Bytes of a checkpoint that is read without Delta's state."""
MOST_LATER = 64 << 20
"""Bytes of later commits that are replayed on the driver."""

_ODD = (":", "//", "/.")
"""Parts of paths that Delta may write otherwise (``DeltaLog.getCanonicalPathUdf``)."""


def is_large(snapshot: JavaObject) -> bool:
    """Return whether a snapshot's files should be read from its checkpoint."""
    return (
        int(snapshot.checkpointSizeInBytes()) > LARGE
        and int(snapshot.deltaFileSizeInBytes()) <= MOST_LATER
        and {"loadActions", "checkpointProvider"} <= set(dir(snapshot))
    )


class LargeLog:
    """The live files of a snapshot.

    They are those of its checkpoint that later commits leave alone, and those that a replay of the
    others leaves.
    """

    def __init__(self, jvm: Jvm, snapshot: JavaObject) -> None:
        self._jvm = jvm
        self._encoders = jvm.module(jvm.delta.implicits, "package")
        self._version = int(snapshot.checkpointProvider().version())
        canonical = snapshot.deltaLog().getCanonicalPathUdf
        has_default = "getCanonicalPathUdf$default$1" in dir(snapshot.deltaLog())
        udf = canonical(True) if has_default else canonical()  # noqa: FBT003
        self._udf: JavaObject = udf
        actions = DataFrame(snapshot.loadActions(), jvm.spark)
        later = F.col("version") > self._version
        self._later = actions.where(later & (_is("add") | _is("remove")))
        self._checkpoint = actions.where(~later & _is("add"))
        touched = self._find_touched()
        self._names = self._jvm.frame(touched.select(["name"]).group_by("name").aggregate([]))
        self._replayed = self._replay(touched) if touched.num_rows else None

    def frame(self) -> DataFrame:
        """Return the AddFile actions as a DataFrame."""
        if self._replayed is None:
            return self._adds(self._checkpoint)
        here = _add_name(self._checkpoint.withColumn("canonical", self._canonical("add.path")))
        kept = here.join(F.broadcast(self._names), "name", "left_anti")
        added = self._jvm.session.createDataset(self._replayed, self._encoders.addFileEncoder())
        fields = self._adds(kept)
        return fields.unionByName(DataFrame(added.toDF(), self._jvm.spark).select(fields.columns))

    def actions(self, rows: DataFrame) -> JavaObject:
        """Return rows of such a DataFrame as a ``java.util.List`` of AddFile actions."""
        typed = getattr(java_rows(rows), "as")(self._encoders.addFileEncoder())
        return typed.collectAsList()

    def _find_touched(self) -> pa.Table:
        """Return the files that later commits add or remove."""
        path = F.coalesce("add.path", "remove.path")
        vector = F.coalesce("add.deletionVector", "remove.deletionVector")
        rows = self._later.select(path.alias("path"), vector.alias("vector"))
        rows = rows.withColumn("canonical", self._canonical("path"))
        return to_arrow(_select_identity(rows, F.col("vector")))

    def _replay(self, touched: pa.Table) -> JavaObject:
        """Return the AddFile actions that later commits leave of the files that they touch."""
        before = self._checkpoint.withColumn("canonical", self._canonical("add.path"))
        same_name = _select_identity(before, F.col("add.deletionVector")).join(
            F.broadcast(self._names), "name", "left_semi"
        )
        # an action on the same path and deletion vector takes the place of the checkpoint's
        replaced = _keys(touched)
        rest = (found := to_arrow(same_name)).filter(
            pc.invert(pc.is_in(_keys(found), replaced.combine_chunks()))
        )
        actions = self._jvm.root.java.util.ArrayList()
        if rest.num_rows:
            paths = self._jvm.frame(rest.select(["canonical"]).group_by("canonical").aggregate([]))
            here = before.join(F.broadcast(paths), "canonical", "left_semi")
            actions.addAll(self._collect_actions(here))
        actions.addAll(self._collect_actions(self._later))
        replay = new_replay(self._jvm)
        replay.append(0, self._jvm.seq_of(actions).iterator())
        return replay.allFiles()

    def _collect_actions(self, rows: DataFrame) -> JavaObject:
        """Return actions with the paths and stats that Delta takes, in the order of commits."""
        rows = rows.withColumn("canonical", self._canonical(F.coalesce("add.path", "remove.path")))
        add = (
            F.col("add")
            .withField("path", F.col("canonical"))
            .withField("stats", F.col("add_stats_to_use"))
        )
        remove = F.col("remove").withField("path", F.col("canonical"))
        rows = rows.orderBy("version").withColumns(
            {"add": F.when(_is("add"), add), "remove": F.when(_is("remove"), remove)}
        )
        typed = getattr(java_rows(rows), "as")(self._encoders.singleActionEncoder())
        unwrap = self._jvm.loops.method("org.apache.spark.sql.delta.actions.SingleAction", "unwrap")
        return self._jvm.loops.map_items(typed.collectAsList(), unwrap)

    def _adds(self, rows: DataFrame) -> DataFrame:
        """Return the fields of AddFile actions that this release of Delta has."""
        encoded = json.loads(self._encoders.addFileEncoder().schema().json())
        present = rows.select("add.*").columns
        special = {
            "path": self._canonical("add.path"),
            "stats": F.col("add_stats_to_use"),
            "dataChange": F.lit(False),  # noqa: FBT003
        }
        return rows.select(
            [
                special.get(field.name, F.col(f"add.{field.name}")).alias(field.name)
                if field.name in present
                else F.lit(None).cast(field.dataType).alias(field.name)
                for field in T.StructType.fromJson(encoded)
            ]
        )

    def _canonical(self, path: str | Column) -> Column:
        """Return a path as Delta's state has it; almost all are so in the log."""
        column = F.col(path) if isinstance(path, str) else path
        java = java_column(column)
        changed = Column(self._udf.apply(self._jvm.seq([java])))
        odd = [column.startswith("/"), column.startswith("."), *map(column.contains, _ODD)]
        return F.when(reduce(Column.__or__, odd), changed).otherwise(column)


def _is(action: str) -> Column:
    return F.col(f"{action}.path").isNotNull()


def _add_name(rows: DataFrame) -> DataFrame:
    """Add a name that all spellings of one URI have: escapes may be in upper or lower case."""
    return rows.withColumn("name", F.lower("canonical"))


def _select_identity(rows: DataFrame, vector: Column) -> DataFrame:
    """Return path and deletion vector of files (``DeletionVectorDescriptor.uniqueId``)."""
    return _add_name(rows).select(
        "name",
        "canonical",
        F.concat(
            vector["storageType"],
            vector["pathOrInlineDv"],
            F.coalesce(F.concat(F.lit("@"), vector["offset"]), F.lit("")),
        ).alias("vector"),
    )


def _keys(files: pa.Table) -> pa.ChunkedArray:
    """Return path and deletion vector as one text, with the length of the path."""
    paths, vectors = files["canonical"], files["vector"].fill_null("")
    return pc.binary_join_element_wise(pc.binary_length(paths).cast("string"), paths, vectors, " ")
