"""Pictures of what queries read before and after a rewrite."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from zadapter.report.pictures.axes import Floats
from zadapter.report.pictures.figures import COLOURS, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SHOWN = 16
"""Maximum number of queries that are drawn one by one: those that change most."""
_LONGEST = 56
"""Maximum number of characters of a query."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """What queries read of a table before and after."""

    title: str
    after: str
    """Name of the layout that they read after the rewrite; empty: the table stays as it is."""
    labels: tuple[str, ...]
    """The queries."""
    weights: tuple[float, ...]
    shares: tuple[tuple[float, float], ...]
    """Share of the rows that each query reads, before and after."""
    layouts: tuple[tuple[str, float], ...]
    """Mean share of the rows that queries read of each layout, by its name; today's first."""


def effects(drawn: Effects) -> "Figure":
    """Draw single queries, all queries, and layouts.

    Raises:
        MissingBackendError: matplotlib is not installed.
    """
    figure = new_figure()
    grid = figure.add_gridspec(2, 2, height_ratios=(1.5, 1), width_ratios=(1, 1))
    weights, shares = np.array(drawn.weights), 100 * np.array(drawn.shares).reshape(-1, 2)
    _single(figure.add_subplot(grid[0, :]), drawn, weights, shares)
    _together(figure.add_subplot(grid[1, 0]), weights, shares)
    _layouts(figure.add_subplot(grid[1, 1]), drawn)
    return figure


def _single(axes: "Axes", drawn: Effects, weights: Floats, shares: Floats) -> None:
    """Draw the queries that change most, the largest gain at the top."""
    change = (shares[:, 0] - shares[:, 1]) * weights
    most = np.argsort(-np.abs(change), kind="stable")[:SHOWN]
    most = most[np.argsort(change[most], kind="stable")]
    place = np.arange(len(most))
    before, after = shares[most].T
    axes.hlines(place, before, after, color="#999999", linewidth=1.2, zorder=1)
    axes.scatter(before, place, color=COLOURS[1], label="as it is", zorder=2)
    if drawn.after:
        axes.scatter(after, place, color=COLOURS[0], marker="D", label=drawn.after, zorder=2)
    axes.set_yticks(place, [_short(drawn.labels[at]) for at in most], fontsize=8)
    axes.set_xlim(-2, 102)
    axes.set_xlabel("rows in files that a query cannot skip, %; the queries that change most")
    axes.set_title(plain(drawn.title), loc="left")
    axes.grid(axis="x", color="#e5e5e5")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)


def _together(axes: "Axes", weights: Floats, shares: Floats) -> None:
    """Draw the rows that queries read, in ascending order, before and after."""
    for read, colour, style in ((shares[:, 0], COLOURS[1], "--"), (shares[:, 1], COLOURS[0], "-")):
        order = np.argsort(read, kind="stable")
        passed = np.concatenate([[0.0], np.cumsum(weights[order])])
        values = np.concatenate([read[order], read[order][-1:]])
        axes.step(100 * passed / passed[-1], values, where="post", color=colour, linestyle=style)
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 102)
    axes.set_xlabel("queries, in the order of what they read, %")
    axes.set_ylabel("rows read, %")
    axes.grid(color="#e5e5e5")


def _layouts(axes: "Axes", drawn: Effects) -> None:
    """Draw the mean of all queries for each layout, today's at the top."""
    names, shares = zip(*reversed(drawn.layouts), strict=True)
    colours = [COLOURS[0] if name == drawn.after else "#bbbbbb" for name in names]
    colours[-1] = COLOURS[1]
    bars = axes.barh(range(len(names)), [100 * share for share in shares], color=colours)
    axes.bar_label(bars, fmt="%.1f", padding=3)
    axes.set_yticks(range(len(names)), [_short(name) for name in names], fontsize=8)
    axes.set_xlim(0, max(5.0, 115 * max(shares)))
    axes.set_xlabel("rows that a query reads on average, %")


def _short(text: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in text)
    half = _LONGEST // 2
    cut = shown if len(shown) <= _LONGEST else f"{shown[:half]}…{shown[-half:]}"
    return cut.replace("$", r"\$")
