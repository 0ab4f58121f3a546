"""Effect of a rewrite on range filters, by file and by row group, and whether it pays."""

from collections.abc import Sequence
from dataclasses import dataclass

NOISE, LEAST = 0.02, 0.001
"""Relative and absolute difference between two predicted shares that count as none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Mean shares of the rows, from 0 to 1, that range filters read before and after a rewrite."""

    rows: int
    """Number of rows of the replaced files."""
    files_before: int
    """Number of files to be replaced."""
    files_after: int
    """Number of files to write."""
    clustered: bool
    """Whether a layout of other columns wrote some of the files to be replaced."""
    share_before: float
    """Share of rows in files that a filter cannot skip."""
    share_after: float
    row_group_share_before: float | None
    """Share of rows in row groups that a filter cannot skip; None if it is unknown."""
    row_group_share_after: float | None

    @property
    def pays(self) -> bool:
        """Whether filters read less, or as much from at most half as many files.

        Engines skip row groups within the files that they open. Where the share by row group is
        known and changes, it decides. Fewer files are no reason to give up a layout of other
        columns.
        """
        by_file = _gain(self.share_before, self.share_after)
        merges = not self.clustered and 2 * self.files_after <= self.files_before
        if self.row_group_share_before is None or self.row_group_share_after is None:
            return by_file > 0 or (by_file == 0 and merges)
        by_row_group = _gain(self.row_group_share_before, self.row_group_share_after)
        return by_row_group > 0 or (by_row_group == 0 and (by_file > 0 or merges))


def _gain(before: float, after: float) -> float:
    """Return what filters read less, or 0 if the difference is within the noise."""
    return before - after if abs(after - before) > max(NOISE * before, LEAST) else 0.0


def compute_gain(
    effects: Sequence[Effect | None], share_before: float, share_after: float, inside: float
) -> float:
    """Return the share of what filters read that several rewrites save, from 0 to 1.

    It is the share of rows in row groups if these shares are known and change, else in files.

    Args:
        effects: The effects of the rewrites.
        share_before: Share of the table's rows in files that a filter reads now.
        share_after: The same after the rewrites.
        inside: The part of *share_before* that is in files to be replaced.
    """
    groups = row_group_shares(effects)
    known = [effect for effect in effects if effect is not None]
    by_file = sum(effect.rows * effect.share_before for effect in known)
    if groups is not None and _gain(*groups) and by_file:
        by_file /= sum(effect.rows for effect in known)
        outside = max(0.0, share_before - inside)
        share_before, share_after = (outside + inside * share / by_file for share in groups)
    return max(0.0, 1 - share_after / share_before) if share_before else 0.0


def row_group_shares(effects: Sequence[Effect | None]) -> tuple[float, float] | None:
    """Return the mean shares by row group before and after several rewrites, or None if unknown."""
    known = [
        (effect.rows, effect.row_group_share_before, effect.row_group_share_after)
        for effect in effects
        if effect is not None
        and effect.row_group_share_before is not None
        and effect.row_group_share_after is not None
    ]
    rows = sum(weight for weight, _, _ in known)
    if len(known) < len(effects) or rows == 0:
        return None
    return (
        sum(weight * before for weight, before, _ in known) / rows,
        sum(weight * after for weight, _, after in known) / rows,
    )
