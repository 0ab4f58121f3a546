"""Small pictures of a trend as SVG, without matplotlib: a line of shares, and bars of amounts."""

import math
from collections.abc import Iterator, Sequence
from html import escape

Shares = tuple[float, float]
"""A share before and after a run, from 0 to 1."""

_ROOM = 8
"""Least number of runs that a picture has room for: bars of a few runs are not wide."""
_STEP, _HEIGHT, _MARGIN = 4, 32, 2
"""Units of a run across, of a picture up, and those that the line keeps from its edges."""
_BARS = _HEIGHT // 2
"""Units of the highest bar."""
STYLE = """
.trend { --line: #0072b2; --bar: #e69f00; display: block; border-bottom: 1px solid var(--rule); }
.trend .line { fill: none; stroke: var(--line); stroke-width: 1.6px; stroke-linecap: round;
  stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.trend .bars { fill: var(--bar); }
@media screen and (prefers-color-scheme: dark) { .trend { --line: #56b4e9; --bar: #a86f00; } }
@media print { .trend { print-color-adjust: exact; } }
"""
"""Style of a page with pictures, which has the colour ``--rule``."""


def sparkline(label: str, shares: Sequence[Shares | None], amounts: Sequence[float]) -> str:
    """Draw runs, the newest at the right edge.

    The line falls within a run that lowers the share, and rises between runs. All pictures have the
    same scale of shares, from 0 to 1, while the highest bar stands for the largest amount.

    Args:
        label: The picture in words, for those who do not see it.
        shares: The shares of each run; None: unknown, and a gap in the line.
        amounts: What each run has done.
    """
    room = max(_ROOM, len(shares))
    first = room - len(shares)
    return (
        f'<svg class="trend" role="img" viewBox="0 0 {room * _STEP} {_HEIGHT}" '
        f'preserveAspectRatio="none"><title>{escape(label)}</title>'
        f'<path class="bars" d="{"".join(_bars(amounts, first))}"/>'
        f'<path class="line" d="{"".join(_line(shares, first))}"/></svg>'
    )


def _line(shares: Sequence[Shares | None], first: int) -> Iterator[str]:
    """Return the parts of a path through the shares."""
    last: float | None = None
    for slot, pair in enumerate(shares, first):
        if pair is None or not all(map(math.isfinite, pair)):
            last = None
            continue
        across, (before, after) = slot * _STEP + _STEP // 2, map(_up, pair)
        if last is None:
            yield f"M{across} {before:g}h0"  # a point, if no other run follows
        else:
            yield f"H{across}" if before == last else f"L{across} {before:g}"
        if after != before:
            yield f"V{after:g}"
        last = after


def _up(share: float) -> float:
    """Return the place of a share."""
    kept = min(max(share, 0.0), 1.0)
    return round(_MARGIN + (1 - kept) * (_HEIGHT - 2 * _MARGIN), 1)


def _bars(amounts: Sequence[float], first: int) -> Iterator[str]:
    """Return a path around each bar; amounts of zero have none."""
    most = max(amounts, default=0)
    for slot, amount in enumerate(amounts, first):
        if amount > 0:
            height = max(1, round(_BARS * amount / most))
            yield f"M{slot * _STEP} {_HEIGHT}v-{height}h{_STEP - 1}v{height}z"
