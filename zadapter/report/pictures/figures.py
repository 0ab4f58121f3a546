"""Pictures of how files overlap: their boxes in two columns, and how many overlap at a point."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from zadapter.base.distribution import install_command
from zadapter.base.names import NameParts, join, split
from zadapter.base.quantities import show_count
from zadapter.errors import MissingBackendError, UsageError
from zadapter.report.pictures.axes import Floats, Scale, scale
from zadapter.table.overlap.depth import depths, partition_numbers
from zadapter.table.overlap.extents import extent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOXES = 400
"""Maximum number of files that are drawn as boxes; of more, the density is drawn."""
_CELLS = 160, 100
"""Number of cells of a density, across and up."""
_SIZE = 12.0, 8.0
"""Width and height in inches, of 100 pixels each."""
COLOURS = ("#0072B2", "#D55E00")
"""Blue and vermilion of Okabe and Ito, which the colour-blind tell apart."""
_TITLE = 40
"""Most characters of a title."""
_LEAST = 1 / 150
"""Least width of a box, as a share of the axis."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sides:
    """Lower and upper bounds of files in one column."""

    low: Floats
    high: Floats
    scale: Scale


def clusters(tables: Sequence[tuple[str, pa.Table]], columns: Sequence[str]) -> "Figure":
    """Draw the files of one or several tables of the same columns.

    Args:
        tables: Titles and file tables; of several, such as before and after, the axes are shared.
        columns: One or two columns of their stats.

    Raises:
        UsageError: No file has bounds of a column.
        MissingBackendError: matplotlib is not installed.
    """
    figure = new_figure()
    parts = [split(name) for name in ([columns] if isinstance(columns, str) else columns)]
    if not parts:
        raise UsageError("no file has bounds of a column, so there is nothing to draw")
    if len(parts) > 2:  # noqa: PLR2004 - the sides of a picture
        raise UsageError(f"columns= must name one or two columns, not {len(parts)}")
    if not tables:
        raise UsageError("the files are not known, so there is nothing to draw")
    grid = figure.add_gridspec(2, len(tables), height_ratios=(2.2, 1))
    sides = [_sides([files for _, files in tables], column) for column in parts]
    first = None
    for number, (title, files) in enumerate(tables):
        axes = figure.add_subplot(grid[0, number], sharex=first, sharey=first)
        first = first or axes
        known = _panel(figure, axes, [side[number] for side in sides])
        lacking = f"; {files.num_rows - known:,} without bounds" if known < files.num_rows else ""
        axes.set_title(
            f"{plain(title)}: {show_count(files.num_rows, 'files')}{lacking}", loc="left"
        )
    _histogram(figure.add_subplot(grid[1, :]), tables, parts)
    return figure


def with_bounds(files: pa.Table | None) -> list[str]:
    """Return the first two columns of which a file has both bounds."""
    names = [] if files is None else [field.name for field in files.schema.field("stats").type]
    return [name for name in names if files and extent(files, split(name)).known.any()][:2]


def plain(title: str) -> str:
    """Return the end of a title, without formulas."""
    text = title if len(title) <= _TITLE else f"…{title[1 - _TITLE :]}"
    return text.replace("$", r"\$")


def new_figure() -> "Figure":
    """Return an empty figure.

    Raises:
        MissingBackendError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        raise MissingBackendError(
            f"pictures require matplotlib; {install_command('plot')}"
        ) from error
    return Figure(figsize=_SIZE, dpi=100, layout="constrained")


def _sides(tables: Sequence[pa.Table], column: NameParts) -> list[_Sides]:
    """Return the bounds of a column in each of some tables, on one scale."""
    evidence = [extent(files, column).evidence for files in tables]
    bounds = [bound for each in evidence for bound in (each.low, each.high)]
    if all(bound.null_count == len(bound) for bound in bounds):
        raise UsageError(f"no file has bounds of {join(column)!r}; pass columns= with others")
    on = scale(join(column), pa.concat_arrays(bounds))
    found, at = [], 0
    for each in evidence:
        count = len(each.low)
        low, high = on.places[at : at + count], on.places[at + count : at + 2 * count]
        found.append(_Sides(low, high, on))
        at += 2 * count
    return found


def _panel(figure: "Figure", axes: "Axes", sides: Sequence[_Sides]) -> int:
    """Draw the files of one table; return how many have bounds."""
    known = np.logical_and.reduce([np.isfinite(s.low) & np.isfinite(s.high) for s in sides])
    across = _Sides(sides[0].low[known], sides[0].high[known], sides[0].scale)
    across.scale.label(axes.xaxis)
    if len(sides) == 1:
        order = np.argsort(across.low, kind="stable")
        number = np.arange(len(order), dtype=np.float64)
        axes.hlines(number, across.low[order], across.high[order], color=COLOURS[0], linewidth=1)
        axes.set_ylabel("files, by lowest value")
        return int(known.sum())
    up = _Sides(sides[1].low[known], sides[1].high[known], sides[1].scale)
    up.scale.label(axes.yaxis)
    if known.sum() <= BOXES:
        _boxes(axes, across, up)
    else:
        _density(figure, axes, across, up)
    return int(known.sum())


def _boxes(axes: "Axes", across: _Sides, up: _Sides) -> None:
    from matplotlib.collections import PatchCollection  # noqa: PLC0415
    from matplotlib.patches import Rectangle  # noqa: PLC0415

    (left, width), (bottom, height) = (_visible(side) for side in (across, up))
    boxes = [
        Rectangle((x, y), w, h) for x, y, w, h in zip(left, bottom, width, height, strict=True)
    ]
    alpha = float(np.clip(4 / max(1, len(boxes)), 0.03, 0.35))
    axes.add_collection(PatchCollection(boxes, facecolor=COLOURS[0], alpha=alpha))
    axes.add_collection(
        PatchCollection(boxes, facecolor="none", edgecolor=COLOURS[0], linewidth=0.8)
    )
    axes.autoscale_view()


def _visible(side: _Sides) -> tuple[Floats, Floats]:
    """Return the start and width of each box, at least as wide as can be seen."""
    least = _LEAST * max(1e-9, _span(side.scale.places))
    width = np.maximum(side.high - side.low, least)
    return (side.low + side.high - width) / 2, width


def _span(places: Floats) -> float:
    return float(np.nanmax(places) - np.nanmin(places)) or 1.0


def _density(figure: "Figure", axes: "Axes", across: _Sides, up: _Sides) -> None:
    """Draw how many files cover each cell of a grid."""
    edges, cells = [], []
    for side, count in zip((across, up), _CELLS, strict=True):
        start, span = float(np.nanmin(side.scale.places)), _span(side.scale.places)
        edges.append(start + span * np.arange(count + 1) / count)
        at = [((bound - start) / span * count).astype(np.int64) for bound in (side.low, side.high)]
        cells.append([np.clip(each, 0, count - 1) for each in at])
    (left, right), (bottom, top) = cells
    change = np.zeros((_CELLS[1] + 1, _CELLS[0] + 1), np.int64)
    for rows, columns, sign in (
        (bottom, left, 1), (top + 1, right + 1, 1), (bottom, right + 1, -1), (top + 1, left, -1)
    ):  # fmt: skip
        np.add.at(change, (rows, columns), sign)
    covered = change.cumsum(axis=0).cumsum(axis=1)[:-1, :-1]
    drawn = np.ma.masked_equal(covered, 0)
    mesh = axes.pcolormesh(*edges, drawn, cmap="viridis", rasterized=True, vmin=1)
    figure.colorbar(mesh, ax=axes, label="files that cover a cell")


def _histogram(
    axes: "Axes", tables: Sequence[tuple[str, pa.Table]], columns: Sequence[NameParts]
) -> None:
    """Draw the number of files by depth, one colour a table, one hatch a column."""
    found = [(title, column, _depths(files, column)) for title, files in tables
             for column in columns]  # fmt: skip
    most = max((int(np.rint(each.max(initial=1))) for _, _, each in found), default=1)
    buckets = int(np.ceil(np.log2(max(1, most)))) + 1
    width = 0.84 / max(1, len(found))
    for number, (title, column, depth) in enumerate(found):
        at = np.ceil(np.log2(np.maximum(1, np.rint(depth[depth > 0])))).astype(np.int64)
        shares = np.bincount(at, minlength=buckets) / max(1, len(at))
        style: dict[str, Any] = {"hatch": "///", "alpha": 0.75} if number % len(columns) else {}
        name = f"{plain(title)}, {join(column)}" if len(tables) > 1 else join(column)
        colour = COLOURS[number // len(columns) % 2] if len(tables) > 1 else COLOURS[number % 2]
        places = np.arange(buckets) - 0.42 + (number + 0.5) * width
        axes.bar(places, 100 * shares, width, color=colour, edgecolor="white", label=name, **style)
    axes.set_xticks(range(buckets), [_bucket(n) for n in range(buckets)])
    axes.set_xlabel("depth: files of a partition that overlap within a file's range, on average")
    axes.set_ylabel("share of files, %")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def _depths(files: pa.Table, column: NameParts) -> Any:
    names = [field.name for field in files.schema.field("partition").type]
    number, _ = partition_numbers(files, names)
    return depths(extent(files, column), number).mean


def _bucket(number: int) -> str:
    high = 1 << number
    low = high // 2 + 1
    return f"{low:,} to {high:,}" if low < high else f"{high:,}"
