"""Tables of many files, of many columns and of large cells, in each format."""

import hashlib
import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.transaction import AddAction, create_table_with_add_actions

import zadapter
from integration.bench.measures.effort import measured
from integration.fuzz.trials.tally import Row, Tally
from integration.migration.tables import FORMATS, Lakes
from zadapter.base.quantities import show
from zadapter.errors import UnsupportedError

FILES, ROWS_A_FILE = 50_000, 2
COLUMNS, WIDE_FILES, WIDE_ROWS = 2_000, 4, 250
CELL, CELL_FILES, CELL_ROWS = 60 << 20, 3, 4
OTHERS = {"delta": "iceberg", "iceberg": "parquet", "parquet": "delta"}
_LARGE = 1 << 16
"""Bytes per row above which rows are read a few at a time."""


def files(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Make tables of 50 000 files of two rows, and run every operation."""
    count = int(FILES * scale)

    def made() -> Iterator[pa.Table]:
        keys = draw.sample(range(count * ROWS_A_FILE), count * ROWS_A_FILE)
        for number in range(count):
            mine = keys[number * ROWS_A_FILE : (number + 1) * ROWS_A_FILE]
            yield pa.table({"k": pa.array(mine, pa.int64()), "v": [f"v{key}" for key in mine]})

    formats = FORMATS if scale == 1 else draw.sample(FORMATS, 1)
    asked = Asked(f"{count:,} files", f"k < {count // 50}", "256KB")
    _each(lakes, tally, formats, asked, made)


def columns(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Make tables of 2 000 columns, and run every operation."""
    count = max(2, int(COLUMNS * scale))
    kinds = (pa.int64(), pa.string(), pa.float64(), pa.timestamp("us"))

    def made() -> Iterator[pa.Table]:
        keys = draw.sample(range(WIDE_FILES * WIDE_ROWS), WIDE_FILES * WIDE_ROWS)
        for number in range(WIDE_FILES):
            mine = pa.array(keys[number * WIDE_ROWS : (number + 1) * WIDE_ROWS], pa.int64())
            others = {f"c{at}": mine.cast(kinds[at % len(kinds)]) for at in range(count - 1)}
            yield pa.table({"k": mine, **others})

    formats = FORMATS if scale == 1 else draw.sample(FORMATS, 1)
    _each(lakes, tally, formats, Asked(f"{count:,} columns", "k < 20", "32MB"), made)


def cells(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Make tables whose strings, binaries or arrays have 60 MB each, and run every operation."""
    size = int(CELL * scale)
    makers: dict[str, Callable[[], pa.Array]] = {
        "text": lambda: pa.array([draw.randbytes(size // 2).hex()], pa.string()),
        "binary": lambda: pa.array([draw.randbytes(size)], pa.binary()),
        "array": lambda: pa.ListArray.from_arrays(
            [0, size // 8],
            pa.Array.from_buffers(pa.int64(), size // 8, [None, _random(draw, size)]),
        ),
    }
    for kind in makers if scale == 1 else draw.sample(list(makers), 1):
        maker = makers[kind]

        def made(maker: Callable[[], pa.Array] = maker) -> Iterator[pa.Table]:
            keys = draw.sample(range(CELL_FILES * CELL_ROWS), CELL_FILES * CELL_ROWS)
            for number in range(CELL_FILES):
                mine = keys[number * CELL_ROWS : (number + 1) * CELL_ROWS]
                cell = pa.concat_arrays([maker() for _ in mine])
                yield pa.table({"k": pa.array(mine, pa.int64()), "v": cell})

        formats = FORMATS if scale == 1 else draw.sample(FORMATS, 1)
        _each(lakes, tally, formats, Asked(f"{kind} of {show(size)}", "k < 3", "128MB"), made)


def _random(draw: Random, size: int) -> pa.Buffer:
    return pa.py_buffer(draw.randbytes(size))


@dataclass(frozen=True)
class Asked:
    """Parameters of a case.

    Attributes:
        case: Name of the case.
        where: Condition on the key.
        target: Target size of a file.
    """

    case: str
    where: str
    target: str

    @property
    def limit(self) -> int:
        """Exclusive upper limit of the keys that match ``where``."""
        return int(self.where.split()[-1])


def _each(
    lakes: Lakes,
    tally: Tally,
    formats: Sequence[str],
    asked: Asked,
    made: Callable[[], Iterator[pa.Table]],
) -> None:
    """Run every operation on a table of each format with the same files."""
    source = Path(lakes.name("source"))
    source.mkdir(parents=True)
    for number, rows in enumerate(made()):
        pq.write_table(rows, source / f"{number:05}.parquet")
    wanted = list(_rows(source.glob("*.parquet")))
    for format_ in formats:
        table = _MAKE[format_](lakes, source)
        of = replace(asked, case=f"{asked.case}, {format_}")
        _verbs(lakes, tally, of, (format_, table), wanted)
    shutil.rmtree(source)


def _verbs(
    lakes: Lakes,
    tally: Tally,
    asked: Asked,
    of: tuple[str, str],
    wanted: list[Row],
) -> None:
    """Run each operation once, and compare the rows after those that write."""
    (format_, table), spark, case, where = of, lakes.spark, asked.case, asked.where
    by = {"by": "k", "backend": format_, "target_file_size": asked.target, "spark": spark}
    said = {"backend": format_, "spark": spark}
    to = OTHERS[format_]
    new = lakes.name(to)

    def matches(counted: int) -> None:
        right = sum(int(str(row["k"])) < asked.limit for row in wanted)
        if counted != right:
            tally.failures.append(f"{case}: {counted} rows match {where}, not {right}")

    def found() -> None:
        paths = zadapter.files(table, where=where, **said)["path"].to_pylist()
        keys = ds.dataset(paths, format="parquet")
        matches(keys.count_rows(filter=ds.field("k") < asked.limit))

    steps: dict[str, Callable[[], object]] = {
        "plan": lambda: zadapter.plan(table, **by),
        "optimize": lambda: zadapter.optimize(table, **by),
        "files": found,
        "read": lambda: matches(zadapter.read(table, where=where, **said).count()),
        "optimize again": lambda: zadapter.optimize(table, **by),
        "migrate": lambda: zadapter.migrate(table, to=to, target=new, **said),
    }
    for step, work in steps.items():
        _step(lakes, tally, case, step, work)
        if step in {"optimize", "migrate"}:
            at = (format_, table) if step == "optimize" else (to, new)
            if lakes.exists(*at):
                tally.compare(f"{case}, {step}", wanted, list(_rows(_live(lakes, *at))), "k")
    _removed(lakes, format_, table)
    _removed(lakes, to, new)


def _removed(lakes: Lakes, format_: str, table: str) -> None:
    """Delete a table to free space."""
    if format_ == "iceberg":
        lakes.sql(f"DROP TABLE IF EXISTS {table} PURGE")
    else:
        shutil.rmtree(table, ignore_errors=True)


def _step(lakes: Lakes, tally: Tally, case: str, step: str, work: Callable[[], object]) -> None:
    """Measure *work*; an ``UnsupportedError`` counts as refused, other exceptions as failures."""
    outcome = ["done"]

    def run() -> None:
        try:
            work()
        except UnsupportedError as error:
            tally.refused[f"{case}, {step}"] += 1
            outcome[0] = f"refused: {error}"
        except Exception as error:  # noqa: BLE001 - any other is a finding
            text = f"{type(error).__name__}: {str(error).strip()[:600]}"
            tally.failures.append(f"{case}, {step}: {text}")
            outcome[0] = text.partition("\n")[0]

    effort = measured(lakes.spark, run)
    tally.measured.append(
        (case, step, f"{effort.seconds:.1f}", show(effort.heap), outcome[0][:200])
    )
    print(*tally.measured[-1], sep=" | ", file=sys.stderr)  # a large one may crash Spark


def _path(uri: str) -> str:
    return uri.removeprefix("file://").removeprefix("file:")


def _live(lakes: Lakes, format_: str, table: str) -> list[Path]:
    """Return the live files, by a reader other than zadapter if there is one."""
    if format_ == "delta":
        return [Path(_path(uri)) for uri in deltalake.DeltaTable(table).file_uris()]
    if format_ == "iceberg":
        found = lakes.iceberg(table).scan().plan_files()
        return [Path(_path(task.file.file_path)) for task in found]
    return [Path(path) for path in lakes.paths(table)]


def _rows(paths: Iterator[Path] | list[Path]) -> Iterator[Row]:
    """Yield rows one at a time, with hashes of large cells."""
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=4 if _is_large(path) else 4096):
            for at in range(batch.num_rows):
                yield {name: _hashed(batch[name][at]) for name in sorted(batch.schema.names)}


def _is_large(path: Path) -> bool:
    group = pq.read_metadata(path).row_group(0)
    return group.total_byte_size > _LARGE * group.num_rows


def _hashed(value: pa.Scalar) -> object:
    if pa.types.is_list(value.type):
        numbers = value.values.to_numpy()
        return (len(numbers), hashlib.sha256(numbers.tobytes()).hexdigest())
    if pa.types.is_string(value.type) or pa.types.is_binary(value.type):
        buffer = value.as_buffer()
        return (len(buffer), hashlib.sha256(buffer).hexdigest())
    return value.as_py()


def _parquet(lakes: Lakes, source: Path) -> str:
    table = lakes.name("parquet")
    shutil.copytree(source, table)
    return table


def _delta(lakes: Lakes, source: Path) -> str:
    """Make a Delta table by deltalake, which registers existing files with their stats."""
    table = Path(_parquet(lakes, source))
    paths = sorted(table.glob("*.parquet"))
    known = [AddAction(p.name, p.stat().st_size, {}, 0, True, _stats(p)) for p in paths]  # noqa: FBT003
    schema = deltalake.Schema.from_arrow(pq.read_schema(paths[0]))
    create_table_with_add_actions(str(table), schema, known)
    return str(table)


def _stats(path: Path) -> str:
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(at).column(0).statistics for at in range(metadata.num_row_groups)]
    bounds = {
        "minValues": {"k": min(each.min for each in groups)},
        "maxValues": {"k": max(each.max for each in groups)},
    }
    return json.dumps({"numRecords": metadata.num_rows, "nullCount": {"k": 0}, **bounds})


def _iceberg(lakes: Lakes, source: Path) -> str:
    """Make an Iceberg table by pyiceberg, which adds existing files."""
    table, folder = lakes.name("iceberg"), _parquet(lakes, source)
    paths = sorted(str(path) for path in Path(folder).glob("*.parquet"))
    made = lakes.catalog.create_table(table.removeprefix("ice."), schema=pq.read_schema(paths[0]))
    made.add_files([f"file://{path}" for path in paths])
    return table


_MAKE = {"delta": _delta, "iceberg": _iceberg, "parquet": _parquet}
