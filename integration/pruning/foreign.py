"""``python -m integration.pruning.foreign FOLDER``: look at every table that others made.

FOLDER holds Delta tables, such as the test data of delta-rs (``crates/test/tests/data``), and
folders of Parquet files in Hive's layout. Every error must be one of zadapter's.
"""

import json
from pathlib import Path
from typing import Annotated

import typer

import zadapter
import zadapter.spark
from zadapter.base.names import join
from zadapter.cli.calls import QUIET
from zadapter.errors import ZadapterError


def main(folder: Annotated[Path, typer.Argument(exists=True, file_okay=False)]) -> None:
    """Analyze, explain and audit all tables, and print one line for each."""
    spark = zadapter.spark.session(QUIET | {"spark.master": "local[2]"})
    logs = {log.parent for log in folder.rglob("_delta_log")}
    hive = {file.parent.parent for file in folder.rglob("*=*/*.parquet")}
    hive = {path for path in hive if "=" not in path.name} - logs
    wrong = 0
    for table, format_ in [*((t, "delta") for t in logs), *((t, "parquet") for t in hive)]:
        try:
            said = _looked(str(table), format_, spark)
        except ZadapterError as error:
            said = f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"
        except Exception as error:  # noqa: BLE001 - what this looks for
            wrong += 1
            said = f"WRONG {type(error).__name__}: {str(error).splitlines()[0][:150]}"
        print(f"{table.relative_to(folder)} ({format_}): {said}", flush=True)
    spark.stop()
    if wrong:
        raise typer.Exit(1)


def _looked(table, format_, spark):
    asked = {"backend": format_, "spark": spark}
    analysis = zadapter.analyze(table, row_groups=True, sample_files=4, **asked)
    audit = zadapter.audit(table, **asked)
    columns = [column.column for column in analysis.columns]
    kept = []
    for column in [*columns[:2], *(name for name in _partition(analysis))][:3]:
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
