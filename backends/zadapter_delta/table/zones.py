"""Partition values of timestamps, whose texts have a zone or not (PROTOCOL.md).

Spark reads a text without a zone in the session's zone, other readers read it in UTC. So a rewrite
keeps such texts as they are. Then it moves no row for any reader.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from zadapter.base.key_types import has_zone, texts
from zadapter.base.names import join
from zadapter.errors import UnsupportedError
from zadapter.spark.compat.spark_api import to_arrow
from zadapter.table.snapshot import Snapshot
from zadapter_delta.jvm import Add, JavaObject, Jvm
from zadapter_delta.table.live_files import LiveFiles

IN_UTC = {
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.write.utcTimestampPartitionValues": "true",
}
"""Settings for a write of partitions by a timestamp. Delta's writer passes the value through the
name of a folder, in the session's zone, where an hour may occur twice."""

Zoneless = Mapping[str, Mapping[str, str]]
"""Texts without a zone, by the physical name of their column, and the same moments with one."""

_Texts = Callable[[Mapping[str, str | None], Zoneless], dict[str, str | None]]
_MOMENT = pa.timestamp("us", "UTC")


class Texts:
    """The texts without a zone of the snapshot that was asked for last."""

    def __init__(self, jvm: Jvm, live: LiveFiles) -> None:
        self._jvm = jvm
        self._live = live
        self._last: tuple[JavaObject, Zoneless] = (None, {})

    def read_texts(self, snapshot: Snapshot) -> Zoneless:
        """Return the texts without a zone in the log.

        Raises:
            UnsupportedError: Spark reads two texts as one moment which are two for other readers.
        """
        base, columns = snapshot.handle.snapshot, find_zoned_columns(snapshot)
        if not columns or snapshot.version is None:
            return {}
        if self._last[0] is not base:
            stated = collect_texts(self._live.frame(base), columns)
            self._last = base, zoneless(snapshot.table, columns, stated)
        return self._last[1]

    def add_zones(self, snapshot: Snapshot, adds: JavaObject) -> JavaObject:
        """Return a ``java.util.List`` of AddFile actions with texts that have a zone."""
        known = self.read_texts(snapshot)
        if not known:
            return adds
        live = self._jvm.to_python(adds)
        return self._jvm.to_java(_with(add, add_zones, known) for add in live)

    def restore_texts(self, snapshot: Snapshot, adds: list[Add]) -> list[Add]:
        """Return AddFile actions of Delta's writer with the texts that the table has."""
        known = self.read_texts(snapshot)
        return [_with(add, restore_texts, known) for add in adds] if known else adds


def _with(add: Add, of: _Texts, known: Zoneless) -> Add:
    return {**add, "partitionValues": of(add["partitionValues"], known)}


def find_zoned_columns(snapshot: Snapshot) -> dict[str, str]:
    """Return the partition columns that are timestamps with a zone: physical and logical names."""
    return {
        snapshot.physical[name,][0]: name
        for name, type_ in snapshot.partition.items()
        if has_zone(type_)
    }


def collect_texts(adds: DataFrame, columns: Mapping[str, str]) -> pa.Table:
    """Return the distinct texts of columns in AddFile actions, and their microseconds for Spark."""
    stated = [
        F.struct(
            F.lit(column).alias("column"), F.col("partitionValues").getItem(column).alias("text")
        )
        for column in columns
    ]
    rows = adds.select(F.explode(F.array(*stated)).alias("stated")).select("stated.*").distinct()
    moment = F.unix_micros(F.col("text").cast("timestamp")).alias("moment")
    return to_arrow(rows.where("text <> ''").select("column", "text", moment))


def zoneless(table: str, columns: Mapping[str, str], stated: pa.Table) -> Zoneless:
    """Return the texts without a zone among *stated*, a result of :func:`collect_texts`.

    Raises:
        UnsupportedError: Spark reads two texts as one moment which are two for other readers.
    """
    known: dict[str, dict[str, str]] = defaultdict(dict)
    with_zones: dict[str, dict[str, str]] = defaultdict(dict)
    seen: dict[tuple[str, str], tuple[str, str]] = {}
    moments = texts(stated["moment"].combine_chunks().cast(_MOMENT))
    for column, text, moment in zip(
        stated["column"].to_pylist(), stated["text"].to_pylist(), moments, strict=True
    ):
        if moment is None:  # another error reports such a text
            continue
        value = moment if _has_zone(text) else _moment(text)
        first_value, first = seen.setdefault((column, moment), (value, text))
        if first_value != value:
            name = join((columns[column],))
            raise UnsupportedError(
                f"{table}: the log states values of the partition column {name} as {first!r} and "
                f"{text!r}, which are one moment in the session's time zone and two in others; set "
                "spark.sql.session.timeZone to the zone of the table's writers, such as UTC"
            )
        (with_zones if _has_zone(text) else known)[column][text] = moment
    for column, by_text in known.items():
        without = set(by_text.values())
        # a moment that is stated both ways is stated with its zone again, as all readers read it
        by_text.update({t: m for t, m in with_zones[column].items() if m in without})
    return known


def add_zones(values: Mapping[str, str | None], known: Zoneless) -> dict[str, str | None]:
    """Return the partition values of a file, with a zone."""
    return {
        column: text if text is None else known.get(column, {}).get(text, text)
        for column, text in values.items()
    }


def restore_texts(values: Mapping[str, str | None], known: Zoneless) -> dict[str, str | None]:
    """Return partition values as Delta's writer states them in the texts that the table has."""
    stated = {
        column: {moment: text for text, moment in known_texts.items()}
        for column, known_texts in known.items()
    }
    return {
        column: text
        if text is None or column not in stated
        else stated[column].get(_moment(text), text)
        for column, text in values.items()
    }


def _has_zone(text: str) -> bool:
    return text.endswith("Z")


def _moment(text: str) -> str:
    """Return what Delta's writer states, such as ``2024-11-03T06:30:00Z``, as moments are keyed."""
    try:
        moment = np.datetime64(text.removesuffix("Z"), "us").astype(np.int64)
    except ValueError:  # years of five digits, which no text without a zone has
        return text
    (written,) = texts(pa.array([int(moment)], _MOMENT))
    return str(written)
