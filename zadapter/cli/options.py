"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from zadapter.arguments.options import AUTO
from zadapter.backend import plugins
from zadapter.layout.layout import Curve as Curves
from zadapter.reports.optimize import VERIFICATIONS

CURVE, TARGET_FILE_SIZE, ROW_GROUPS = "adaptive", AUTO, 16
"""Defaults of :func:`zadapter.optimize`."""


def _curves() -> list[str]:
    return [curve.value for curve in Curves]


Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A path, delta.`path`, or an identifier of Spark's catalog."
    ),
]
Backend = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="delta, iceberg or parquet (required for a folder without a log).",
        autocompletion=plugins.names,
    ),
]
Curve = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="adaptive, zorder, hilbert or linear.", autocompletion=_curves
    ),
]
TargetFileSize = Annotated[
    str, typer.Option(metavar="SIZE", help="Size of written files; auto: chosen from the table.")
]
RowGroups = Annotated[int, typer.Option(metavar="COUNT", help="Row groups per written file.")]
Where = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="A condition in Spark's SQL."),
]
Version = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="A version number, or a time such as 2025-01-31T12:00:00; else the current version.",
    ),
]

Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a picture of the result: .png or .svg.")
]
Html = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the result as a page of HTML that needs no network."),
]

# options of every command
Conf = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A Spark setting; repeatable."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result or the error.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show phases, and warnings of Spark.")
]
Tiers = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN:AGES",
        help="Leave newer files alone, make older ones larger, such as day:hot=2d,warm=30d.",
    ),
]
Verify = Annotated[
    str,
    typer.Option(
        metavar="HOW",
        help="counts, or checksum to compare all values before the commit, which reads the "
        "written files once.",
        autocompletion=lambda: list(VERIFICATIONS),
    ),
]
Price = Annotated[
    str | None,
    typer.Option(
        metavar="PRICES",
        help="Add up the cost: put and get of 1 000 requests, gb_read, core_hour; such as "
        "put=0.005,get=0.0004,core_hour=0.05.",
    ),
]
