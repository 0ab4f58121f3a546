"""``python -m integration.fuzz.pruning.foreign FOLDER``: look at every table that others made.

FOLDER holds Delta tables, such as the test data of delta-rs (``crates/test/tests/data``), Iceberg
tables, such as those of duckdb-iceberg, and folders of Parquet files, with partitions in Hive's
layout or without. Every error must be one of zadapter's.

Iceberg tables are registered in the session's catalog by their newest metadata. Their locations may
be relative to the current folder.
"""

import json
import re
import zlib
from pathlib import Path
from typing import Annotated

import typer

import zadapter
import zadapter.spark
from zadapter.backend.plugins import load
from zadapter.base.names import join
from zadapter.cli.calls import QUIET
from zadapter.errors import ZadapterError


def main(folder: Annotated[Path, typer.Argument(exists=True, file_okay=False)]) -> None:
    """Analyze, explain and audit all tables, and print one line for each."""
    spark = zadapter.spark.session(QUIET | {"spark.master": "local[2]"})
    wrong = 0
    for table, format_ in _tables(folder):
        try:
            name = _registered(table, spark) if format_ == "iceberg" else str(table)
            said = "not loaded by Iceberg" if name is None else _looked(name, format_, spark)
        except ZadapterError as error:
            said = f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"
        except Exception as error:  # noqa: BLE001 - what this looks for
            wrong += 1
            said = f"WRONG {type(error).__name__}: {str(error).splitlines()[0][:150]}"
        print(f"{table.relative_to(folder)} ({format_}): {said}", flush=True)
    spark.stop()
    if wrong:
        raise typer.Exit(1)


def _tables(folder):
    """Return the folders of tables, and their formats."""
    delta = {log.parent for log in folder.rglob("_delta_log")}
    iceberg = {file.parents[1] for file in folder.rglob("metadata/*.metadata.json")}
    files = (file for file in folder.rglob("*.parquet") if not _is_hidden(file.relative_to(folder)))
    plain = {next(p for p in file.parents if "=" not in p.name) for file in files}
    known = delta | iceberg
    plain = {path for path in plain if not known & {path, *path.parents}}
    named = (("delta", delta), ("iceberg", iceberg), ("parquet", plain))
    return [(table, format_) for format_, tables in named for table in sorted(tables)]


def _is_hidden(file):
    return any(part.startswith(("_", ".")) for part in file.parts)


def _registered(table, spark):
    """Register the newest metadata of an Iceberg table; return its name, or None if it fails."""
    newest = max(
        table.glob("metadata/*.metadata.json"),
        key=lambda file: int(re.match(r"v?(\d*)", file.name)[1] or 0),
    )
    name = f"foreign.t{zlib.crc32(str(table).encode())}"
    spark.sql("CREATE NAMESPACE IF NOT EXISTS iceberg.foreign")
    try:
        spark.sql(
            "CALL iceberg.system.register_table("
            f"table => '{name}', metadata_file => '{newest.absolute()}')"
        )
        spark.table(f"iceberg.{name}").count()
    except Exception as error:  # noqa: BLE001 - Iceberg itself does not know such tables
        print(f"{table}: {str(error).splitlines()[0][:150]}")
        return None
    return f"iceberg.{name}"


def _looked(table, format_, spark):
    asked = {"backend": format_, "spark": spark}
    analysis = zadapter.analyze(table, row_groups=True, sample_files=4, **asked)
    audit = zadapter.audit(table, **asked)
    columns = [column.column for column in analysis.columns]
    names = load(format_)(spark).snapshot(table).schema.names  # others are transforms
    kept = []
    for column in [*columns[:2], *(n for n in _partition(analysis) if n in names)][:3]:
        for where in (f"{column} IS NOT NULL", f"{column} IS NULL"):
            found = zadapter.explain(table, where, row_groups=True, **asked)
            kept.append(f"{found.kept.files}/{found.totals.files}")
            json.dumps(found.to_dict(files=True), allow_nan=False)
            if found.engine.read is None:
                kept.append(found.engine.note)
    for each in (analysis, audit):
        json.dumps(each.to_dict(files=True), allow_nan=False)
        str(each), each._repr_html_()
    return (
        f"{analysis.totals.files} files, {len(columns)} columns; unsound {audit.unsound}, missing "
        f"{audit.missing}, unsure {audit.unsure}; kept {' '.join(kept)}"
    )


def _partition(analysis):
    return [join((f.name,)) for f in analysis.files.schema.field("partition").type]


if __name__ == "__main__":
    typer.run(main)
