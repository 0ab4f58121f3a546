"""Folders of other programs become tables, and these programs read the same rows."""

from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from pyspark.sql import functions as F

import zadapter
from integration.fuzz.trials.tally import Row, Tally
from integration.fuzz.trials.writers import ROWS, SHIFT, WRITERS
from integration.migration.tables import Lakes
from zadapter.errors import UnsupportedError


def writers(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Optimize, append to and delete from a folder of each writer; compare with its own reader."""
    for name in WRITERS if scale == 1 else draw.sample(list(WRITERS), 1):
        writer = WRITERS[name]
        kinds = draw.sample(list(writer.kinds), min(12, len(writer.kinds)))
        try:
            _held(lakes, draw, tally, name, kinds)
        except UnsupportedError as error:
            # DuckDB selects it by the values, and Spark's reader lacks it
            if "BYTE_STREAM_SPLIT" not in str(error):
                raise
            tally.refused[f"{name}: BYTE_STREAM_SPLIT"] += 1
        odd = draw.choice(list(writer.odd))
        _refused(lakes, draw, tally, name, odd)


def _folder(lakes: Lakes, draw: Random, name: str, kinds: list[str]) -> tuple[str, list[Row]]:
    """Write a folder, and return the rows that its writer reads."""
    table = Path(lakes.name("parquet"))
    table.mkdir(parents=True)
    keys = draw.sample(range(ROWS), ROWS)
    WRITERS[name].write(table, keys, kinds, draw)
    paths = sorted(str(path) for path in table.rglob("*.parquet"))
    return str(table), WRITERS[name].read(paths)


def _held(lakes: Lakes, draw: Random, tally: Tally, name: str, kinds: list[str]) -> None:
    table, rows = _folder(lakes, draw, name, kinds)
    said = {"backend": "parquet", "spark": lakes.spark}
    asked = {"target_file_size": "2KB", "row_groups": 3} | said
    what = f"{name}, {sorted(kinds)}"

    def check(step: str, wanted: list[Row]) -> None:
        found = WRITERS[name].read(lakes.paths(table))
        tally.compare(f"{what}, {step}", _plain(wanted), _plain(found), "k")

    zadapter.optimize(table, by="k", **asked)
    check("optimize", rows)
    some = zadapter.read(table, where="k < 20", **said).withColumn("k", F.col("k") + SHIFT)
    zadapter.append(table, some, **said)
    rows += [row | {"k": row["k"] + SHIFT} for row in rows if row["k"] < 20]
    check("append", rows)
    zadapter.delete(table, "k BETWEEN 30 AND 50 OR k = 1000003", **said)
    rows = [row for row in rows if not (30 <= row["k"] <= 50 or row["k"] == SHIFT + 3)]
    check("delete", rows)
    zadapter.optimize(table, by=["k"], curve="linear", force=True, **asked)
    check("optimize again", rows)


def _refused(lakes: Lakes, draw: Random, tally: Tally, name: str, kind: str) -> None:
    """Check that an unsupported type is refused, and the folder stays unchanged."""
    table, _ = _folder(lakes, draw, name, [kind])
    before = sorted(Path(table).rglob("*"))
    try:
        zadapter.optimize(table, by="k", backend="parquet", spark=lakes.spark)
    except UnsupportedError as error:
        tally.refused[f"{name} {kind}: {error}".replace(table, "")] += 1
    else:
        tally.failures.append(f"{name} {kind} was taken")
    if sorted(Path(table).rglob("*")) != before:
        tally.failures.append(f"{name} {kind}: the folder has changed")


def _plain(rows: list[Row]) -> list[Row]:
    return [{name: _value(value) for name, value in row.items()} for row in rows]


def _value(value: Any) -> Any:
    """Normalize a value, since readers differ in types: Spark has no unsigned integers."""
    if isinstance(value, Decimal) and value == value.to_integral_value():
        return int(value)
    if isinstance(value, dict):
        return {name: _value(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_value(each) for each in value]
    return None if str(value) in {"<NA>", "NaT"} else value
