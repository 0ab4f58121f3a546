"""Effect of a rewrite on range filters, by file and by row group, and whether it pays."""

from collections.abc import Sequence
from dataclasses import dataclass

NOISE = 0.02
"""Relative difference between two predicted shares that counts as none."""


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
    """Whether a layout, maybe of other columns, wrote some of the files to be replaced."""
    share_before: float
    """Share of rows in files that a filter cannot skip."""
    share_after: float
    row_group_share_before: float | None
    """Share of rows in row groups that a filter cannot skip; None: unknown."""
    row_group_share_after: float | None

    @property
    def pays(self) -> bool:
        """Whether filters read less, or as much from at most half as many files.

        Fewer files are no reason to give up a layout of other columns.

        Engines skip row groups within the files that they open. Where the share by row group is
        known, it decides.
        """
        shares = [(self.share_before, self.share_after)]
        if self.row_group_share_before is not None and self.row_group_share_after is not None:
            shares.insert(0, (self.row_group_share_before, self.row_group_share_after))
        for before, after in shares:
            if abs(after - before) > NOISE * before:
                return after < before
        return not self.clustered and 2 * self.files_after <= self.files_before


def by_row_group(effects: Sequence[Effect]) -> tuple[float, float] | None:
    """Return the mean shares by row group before and after several rewrites, or None if unknown."""
    known = [
        (effect.rows, effect.row_group_share_before, effect.row_group_share_after)
        for effect in effects
        if effect.row_group_share_before is not None and effect.row_group_share_after is not None
    ]
    rows = sum(weight for weight, _, _ in known)
    if len(known) < len(effects) or rows == 0:
        return None
    return (
        sum(weight * before for weight, before, _ in known) / rows,
        sum(weight * after for weight, _, after in known) / rows,
    )
