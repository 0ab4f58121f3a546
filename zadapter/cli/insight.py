"""``zadapter analyze``, ``zadapter explain`` and ``zadapter audit``."""

from contextlib import suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import zadapter
from zadapter.arguments.options import Options, check_where
from zadapter.cli.calls import Call
from zadapter.cli.options import Backend, Table, Where
from zadapter.cli.parsing import parse_by
from zadapter.cli.results import Result, facts, listing
from zadapter.errors import UsageError
from zadapter.insight.audit import Audit
from zadapter.pictures.pages import page

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from zadapter.insight.analysis import Analysis
    from zadapter.insight.explanation import Explanation

FOUND = 3
"""Exit code if a rewrite is due that gains what ``--check`` asks for, or if stats are unsound."""
SAMPLE_FILES = 64
"""Default of :func:`zadapter.analyze`."""
_PICTURES = (".png", ".svg")

_By = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMNS",
        help="Key columns as for optimize. Without it, the keys that the table is clustered by.",
    ),
]
_Queries = Annotated[
    list[str] | None,
    typer.Option("--query", metavar="SQL", help="A condition to judge; repeatable."),
]
_RowGroups = Annotated[
    bool, typer.Option("--row-groups", help="Also read footers, and count row groups.")
]
_SampleFiles = Annotated[
    int, typer.Option(min=1, metavar="N", help="Read the footers of at most this many files.")
]
_Check = Annotated[
    str | None,
    typer.Option(
        metavar="gain=SHARE",
        help="Exit with 3 if plan would rewrite, and save this share of what filters read.",
    ),
]
_Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a picture of the files: .png or .svg.")
]
_Html = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the result as a page of HTML that needs no network."),
]


def analyze(  # noqa: PLR0913 - the options of zadapter.analyze
    *,
    table: Table,
    by: _By = None,
    where: Where = None,
    queries: _Queries = None,
    row_groups: _RowGroups = False,
    sample_files: _SampleFiles = SAMPLE_FILES,
    plan: Annotated[
        bool, typer.Option("--plan", help="Judge a rewrite as plan does, by a sample of the rows.")
    ] = False,
    check: _Check = None,
    plot: _Plot = None,
    html: _Html = None,
    backend: Backend = None,
) -> Call:
    """Show how well TABLE is clustered, and whether a rewrite is due, from its log."""
    keys = parse_by(by) if by else None
    _ = Options(table=table, by=keys, where=where)
    least = None if check is None else _gain(check)
    _check_files(plot, html)
    for text in queries or ():
        check_where(text)

    def run(spark: "SparkSession") -> Result:
        found = zadapter.analyze(
            table,
            by=keys,
            where=where,
            queries=queries,
            row_groups=row_groups,
            sample_files=sample_files,
            plan=plan or least is not None,
            backend=backend,
            spark=spark,
        )
        done = found.rewrite
        due = least is not None and done is not None and done.due and done.gain >= least
        return replace(_shown(found, plot, html), exit_code=FOUND if due else 0)

    return Call(function="analyze", tables=(table,), backend=backend, run=run)


def explain(  # noqa: PLR0913 - the options of zadapter.explain
    *,
    table: Table,
    where: Annotated[str, typer.Option(metavar="SQL", help="A condition in Spark's SQL.")],
    row_groups: _RowGroups = False,
    sample_files: _SampleFiles = SAMPLE_FILES,
    plot: _Plot = None,
    html: _Html = None,
    backend: Backend = None,
) -> Call:
    """Show which files of TABLE a condition reads, and why; --json lists all of them."""
    check_where(where)
    _check_files(plot, html)

    def run(spark: "SparkSession") -> Result:
        found = zadapter.explain(
            table,
            where,
            row_groups=row_groups,
            sample_files=sample_files,
            backend=backend,
            spark=spark,
        )
        return _shown(found, plot, html)

    return Call(function="explain", tables=(table,), backend=backend, run=run)


def audit(
    *,
    table: Table,
    deep: Annotated[
        bool, typer.Option("--deep", help="Compare with all values instead of the footers.")
    ] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="Replace wrong and missing stats; data stays.")
    ] = False,
    html: _Html = None,
    backend: Backend = None,
) -> Call:
    """Compare the bounds and counts in the log of TABLE with its files; 3 is: some are wrong."""
    _check_files(None, html)

    def run(spark: "SparkSession") -> Result:
        found = zadapter.audit(table, deep=deep, repair=repair, backend=backend, spark=spark)
        return replace(_shown(found, None, html), exit_code=0 if found.sound_now else FOUND)

    return Call(function="audit", tables=(table,), backend=backend, run=run)


def _gain(text: str) -> float:
    """Parse the value of ``--check``.

    Raises:
        UsageError: It is not a share.
    """
    name, _, share = map(str.strip, text.partition("="))
    try:
        gain = float(share) if name == "gain" else -1.0
    except ValueError:
        gain = -1.0
    if not 0 <= gain <= 1:
        raise UsageError(
            f"--check must be gain= and a share from 0 to 1, such as gain=0.2, not {text!r}"
        )
    return gain


def _check_files(plot: Path | None, html: Path | None) -> None:
    """Check the names of files to write.

    Raises:
        UsageError: A picture has another suffix, or a folder does not exist.
    """
    if plot is not None and plot.suffix.lower() not in _PICTURES:
        raise UsageError(f"--plot: {plot} must end in {' or '.join(_PICTURES)}")
    for path in (plot, html):
        if path is not None and not path.absolute().parent.is_dir():
            raise UsageError(f"{path}: there is no folder {path.absolute().parent}")


def _shown(found: "Analysis | Audit | Explanation", plot: Path | None, html: Path | None) -> Result:
    """Return a result in all its forms, and write its files."""
    if plot is not None and not isinstance(found, Audit):
        found.plot().savefig(plot)
    if html is not None:
        body = f"<p>{escape(found.table)}</p>{found._repr_html_()}"
        title = f"zadapter {type(found).__name__.lower()}"
        html.write_text(page(title, body, _pictures(found)), encoding="utf-8")
    return replace(
        facts(found.to_dict(files=type(found).__name__ != "Analysis"), found.facts()),
        more=[
            listing(each.columns, each.texts, each.heading)
            for each in found.listings()
            if each.rows
        ],
    )


def _pictures(found: "Analysis | Audit | Explanation") -> list[Any]:
    """Return the picture of a result; none of an audit, or if no column has bounds."""
    if isinstance(found, Audit):
        return []
    with suppress(UsageError):
        return [found.plot()]
    return []
