"""``zadapter read``, ``files``, ``append``, ``overwrite`` and ``delete``."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

import zadapter
from zadapter.base.names import quote
from zadapter.base.quantities import show as show_size
from zadapter.base.quantities import show_count
from zadapter.base.translate_errors import translate_errors
from zadapter.cli.calls import FunctionCall
from zadapter.cli.command_options import Backend, Table, Version, Where, parse_pairs, parse_version
from zadapter.cli.error_messages import report_change
from zadapter.cli.results import Result, as_json, ascii_json, facts, listing
from zadapter.planning.options import check_deleted, check_where

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LIMIT = 20
"""Rows that are printed by default."""

_PATHS_ONLY = {"parquet", "csv", "json", "orc", "text", "xml"}
"""Formats of Spark whose files are named by paths alone."""

_Rows = Annotated[
    str, typer.Argument(metavar="ROWS", help="Path of the files with the rows, read by Spark.")
]
_Form = Annotated[
    str,
    typer.Option("--format", metavar="NAME", help="Format of these files: parquet, csv, json, ..."),
]
_Schema = Annotated[
    str | None,
    typer.Option(metavar="DDL", help='Columns of these files, such as "id BIGINT, name STRING".'),
]
_Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="KEY=VALUE", help="An option of Spark's reader, such as header=true."
    ),
]


def read(
    *,
    table: Table,
    where: Where = None,
    version: Version = None,
    limit: Annotated[
        int, typer.Option(min=1, metavar="COUNT", help="Print at most this many rows.")
    ] = LIMIT,
    backend: Backend = None,
) -> FunctionCall:
    """Print matching rows of TABLE; --json prints JSON Lines."""
    check_where(where)
    at = None if version is None else parse_version(version)

    def run(spark: "SparkSession") -> Result:
        rows = zadapter.read(table, where=where, version=at, backend=backend, spark=spark)
        with translate_errors(table):
            return _collect_rows(rows, limit)

    return FunctionCall(function="read", tables=(table,), backend=backend, run=run)


def _collect_rows(rows: "DataFrame", limit: int) -> Result:
    """Collect rows as Spark writes them in text and in JSON."""
    names, texts = rows.columns, []
    for column, (_, type_) in zip(names, rows.dtypes, strict=True):
        name = quote((column,))
        texts.append(f"hex({name})" if type_ == "binary" else f"CAST({name} AS STRING)")
    document = "to_json(struct(*), map('ignoreNullFields', 'false'))"
    found = rows.limit(limit + 1).selectExpr(document, *texts).collect()
    kept = found[:limit]
    more = f"first {limit} rows; --limit shows more" if len(found) > limit else ""
    return Result(
        documents=[ascii_json(row[0]) for row in kept],
        table=listing(names, [["null" if t is None else t for t in row[1:]] for row in kept]),
        note=more or show_count(len(kept), "rows"),
    )


def files(
    *,
    table: Table,
    where: Where = None,
    version: Version = None,
    row_groups: Annotated[
        bool, typer.Option("--row-groups", help="Also list the row groups, from the footers.")
    ] = False,
    backend: Backend = None,
) -> FunctionCall:
    """List the files of TABLE that may contain rows matching a condition."""
    check_where(where)
    at = None if version is None else parse_version(version)

    def run(spark: "SparkSession") -> Result:
        found = zadapter.files(
            table, where=where, version=at, row_groups=row_groups, backend=backend, spark=spark
        ).to_pylist()
        columns = ["path", "size", "rows", *(["row_groups"] if row_groups else [])]
        size, rows = (sum(file[name] or 0 for file in found) for name in ("size", "rows"))
        return Result(
            documents=[as_json(found)],
            table=listing(columns, [[file[name] for name in columns] for file in found]),
            note=f"{show_count(len(found), 'files')} of {show_size(size)}, "
            f"{show_count(rows, 'rows')}",
        )

    return FunctionCall(function="files", tables=(table,), backend=backend, run=run)


@dataclass(frozen=True)
class _Source:
    """Rows in files, as Spark's reader is to read them."""

    path: str
    form: str
    schema: str | None
    options: dict[str, str]

    @property
    def checked_path(self) -> str:
        """The path, in a form that cannot be an identifier if the format has none."""
        plain = self.form in _PATHS_ONLY and "/" not in self.path
        return f"./{self.path}" if plain and ":" not in self.path else self.path

    def read(self, spark: "SparkSession") -> "DataFrame":
        reader = spark.read.format(self.form).options(**self.options)
        with translate_errors(self.path):
            return (reader.schema(self.schema) if self.schema else reader).load(self.path)


def append(
    *,
    table: Table,
    rows: _Rows,
    form: _Form = "parquet",
    schema: _Schema = None,
    option: _Options = None,
    backend: Backend = None,
) -> FunctionCall:
    """Append rows from files to TABLE (plain Parquet), in one commit."""
    source = _Source(rows, form, schema, parse_pairs(option or (), "--option"))

    def run(spark: "SparkSession") -> Result:
        done = zadapter.append(table, source.read(spark), backend=backend, spark=spark)
        return _report_commit(table, done)

    return FunctionCall(
        function="append", tables=(table, source.checked_path), backend=backend, run=run
    )


def overwrite(
    *,
    table: Table,
    rows: _Rows,
    form: _Form = "parquet",
    schema: _Schema = None,
    option: _Options = None,
    backend: Backend = None,
) -> FunctionCall:
    """Replace the partitions of TABLE (plain Parquet) that rows from files belong to."""
    source = _Source(rows, form, schema, parse_pairs(option or (), "--option"))

    def run(spark: "SparkSession") -> Result:
        done = zadapter.overwrite(table, source.read(spark), backend=backend, spark=spark)
        return _report_commit(table, done)

    return FunctionCall(
        function="overwrite", tables=(table, source.checked_path), backend=backend, run=run
    )


def _report_commit(table: str, done: zadapter.WriteResult) -> Result:
    version = done.version
    shown = "version unknown: the answer was lost" if version is None else f"version {version}"
    return report_change(
        f"{table}: committed {shown}",
        lambda: facts(done.to_dict(), {**done.facts(), "committed": shown}),
    )


def delete(
    *,
    table: Table,
    where: Annotated[
        str, typer.Option(metavar="SQL", help="A condition in Spark SQL; true deletes all rows.")
    ],
    backend: Backend = None,
) -> FunctionCall:
    """Delete the rows of TABLE (plain Parquet) that match a condition."""
    check_deleted(where)

    def run(spark: "SparkSession") -> Result:
        done = zadapter.delete(table, where, backend=backend, spark=spark)
        return report_change(
            f"{table}: {show_count(done.rows_deleted, 'rows')} deleted" if done.committed else "",
            lambda: facts(done.to_dict(), done.facts()),
        )

    return FunctionCall(function="delete", tables=(table,), backend=backend, run=run)
