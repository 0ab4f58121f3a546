"""Plot of tables that aged: rows to read over rows written."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from integration.bench.appends.ageing import Aged
from integration.bench.appends.goals import mean, table
from integration.bench.contenders import OURS

PANELS = {"by_row_group": "by row group", "by_file": "by file"}
_HEIGHT = 3.8
_TICKS = (0, 1, 2, 5, 10, 20, 50, 100, 200)
_APART = 0.07
"""Least distance of two labels, as a share of the panel's height."""
_LABELS = 1.04
"""Where labels begin, as a share of the panel's width."""


def curves(path: Path, every: Sequence[Aged]) -> None:
    """Write a plot with one row of panels per table, and one point per contender."""
    tables = [list(found) for _, found in groupby(every, table)]
    figure = Figure(figsize=(12, _HEIGHT * len(tables)), layout="constrained")
    axes = figure.subplots(len(tables), len(PANELS), squeeze=False)
    for line, found in zip(axes, tables, strict=True):
        for axis, (what, label) in zip(line, PANELS.items(), strict=True):
            _panel(axis, found, what)
            workload, format_, appends = table(found[0])
            axis.set_title(f"{workload}, {format_}, {appends} appends: {label}", loc="left")
    figure.savefig(path)


def _panel(axis: Axes, found: Sequence[Aged], what: str) -> None:
    """Draw the points, and the labels beside the panel, in the order of the points."""
    points = sorted((mean(each, what), each.looks[-1].written, each.contender) for each in found)
    axis.set_xscale("symlog", linthresh=1)
    most = 2 * max(1.0, *(written for _, written, _ in points))
    axis.set_xlim(-0.1, most)
    axis.set_xticks([tick for tick in _TICKS if tick <= most], minor=False)
    axis.xaxis.set_major_formatter("{x:g}")
    low, high = min(1.0, points[0][0]), points[-1][0]
    axis.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low) + 0.05)
    axis.axhline(1, color="tab:green", linewidth=0.8, linestyle="--")
    axis.set_xlabel("rows written a row appended")
    axis.set_ylabel("rows to read, x a fresh fit")
    bottom, top = axis.get_ylim()
    heights = _apart([(read - bottom) / (top - bottom) for read, _, _ in points])
    for (read, written, name), height in zip(points, heights, strict=True):
        colour = "tab:orange" if name.startswith(OURS) else "tab:gray"
        axis.plot(written, read, "o", color=colour, zorder=3)
        axis.annotate(
            name, (written, read), xytext=(_LABELS, height), textcoords="axes fraction",
            va="center", annotation_clip=False, color="black",
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6},
        )  # fmt: skip


def _apart(wanted: Sequence[float]) -> list[float]:
    """Move heights in ascending order apart, within 0 to 1, as little as one pass can."""
    placed: list[float] = []
    for number, height in enumerate(wanted):
        least = placed[-1] + _APART if placed else 0.0
        room = 1 - _APART * (len(wanted) - 1 - number)
        placed.append(min(max(height, least), room))
    return placed
