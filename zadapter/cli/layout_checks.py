"""Bounds of ``analyze --check``, which end the command with another exit code."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

from zadapter.errors import UsageError

if TYPE_CHECKING:
    from zadapter.inspection.analysis import Analysis

GAIN, SCANNED, DEPTH = "gain", "scanned", "depth"
_RANGES = {GAIN: (0.0, 1.0), SCANNED: (0.0, 1.0), DEPTH: (1.0, inf)}


def parse_checks(texts: Sequence[str]) -> dict[str, float]:
    """Parse the values of ``--check``.

    >>> parse_checks(["scanned=0.3", "depth=20"])
    {'scanned': 0.3, 'depth': 20.0}

    Raises:
        UsageError: A name is unknown, or a bound is not a number of its range.
    """
    bounds = {}
    for text in texts:
        name, _, number = map(str.strip, text.partition("="))
        low, high = _RANGES.get(name, (inf, inf))
        try:
            bound = float(number)
        except ValueError:
            bound = inf
        if not low <= bound <= high or bound == inf:
            raise UsageError(
                "--check must be gain= or scanned= and a share from 0 to 1, or depth= and a number "
                f"of files from 1, such as scanned=0.3, not {text!r}"
            )
        bounds[name] = bound
    return bounds


def find_exceeded(found: "Analysis", bounds: Mapping[str, float]) -> list[str]:
    """Return a sentence for each bound that a table exceeds, or whose gain it reaches.

    A table without files exceeds none.

    Raises:
        UsageError: The table has files, but no key columns.
    """
    figures = _figures(found)
    exceeded = []
    for name, bound in bounds.items():
        figure, told = figures[name]
        if figure is None and name != GAIN and found.totals.files:
            raise UsageError(
                f"--check {name}= needs key columns, and {found.table} has none; pass --by"
            )
        # a gain is reached, the others are exceeded
        if figure is not None and (figure >= bound if name == GAIN else figure > bound):
            exceeded.append(f"--check {name}={bound:g}: {told}")
    return exceeded


def _figures(found: "Analysis") -> dict[str, tuple[float | None, str]]:
    """Return what each bound is compared with, and what it is."""
    due = found.rewrite if found.due else None
    gain = None if due is None else due.gain
    depth = None if found.depth is None else found.depth.average
    return {
        GAIN: (gain, f"a rewrite saves {gain or 0:.1%} of the data that range filters scan"),
        SCANNED: (found.share, f"range filters scan {found.share or 0:.1%} of the rows"),
        DEPTH: (depth, f"{depth or 0:.1f} files overlap on average"),
    }
