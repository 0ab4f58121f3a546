"""When a table is clustered by another layout, since its queries have changed.

Layouts are the states of a metrical task system: queries cost what they read of the present one,
and to change it costs a rewrite. The *regret* is what the present layout has cost queries more than
the contender, the layout that is learned from the newer ones. It never falls below zero, so that
queries of long ago do not excuse what is lost now. The table is clustered by the contender once the
regret is two rewrites.

This is the work function algorithm for two layouts. It costs at most three times as much as the
best changes between them in hindsight, and a constant (A. Borodin, N. Linial, M. Saks, An Optimal
On-Line Algorithm for Metrical Task System, J. ACM 39, 1992). With n layouts in turn, the factor is
at most 2 n - 1. As in OReO (arXiv 2405.04984), the layouts themselves come from the queries.

Two additions keep noise from counting. The contender has to read a twentieth less. And no sixteenth
of the log counts more than an eighth of what is needed, whatever was asked in it: so what speaks
for another layout is half of the log at least. The bound holds for queries that cost no more than
that in each part. Of busier tables, a change is followed late, and none that does not last.
"""

from dataclasses import dataclass

from zadapter.base.quantities import show
from zadapter.layout.predict import Floats

REWRITE = 2.0
"""Cost of a rewrite, in reads of the whole table: all of it is read and written."""
ENOUGH = 2 * REWRITE
"""Regret at which the layout is learned again."""
PART = ENOUGH / 8
"""Maximum regret, and relief, of one part of the log."""
MARGIN = 0.05
"""Share by which reads of the contender count more than they are: what samples, and the accident of
which queries were asked, make of two equal layouts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Relearning:
    """Whether queries ask for another layout than the table has."""

    regret: float
    """What the present layout has cost them more, in reads of the whole table, as far as it counts;
    at most :data:`ENOUGH`."""
    bytes: int
    """Size of the table."""

    def __str__(self) -> str:
        more, enough = (show(round(each * self.bytes)) for each in (self.regret, ENOUGH))
        if self.is_due:
            return f"the layout is learned again: it has cost queries {enough} more, two rewrites"
        more = f"almost {more}" if more == enough else more
        return (
            f"the layout is kept: by what counts of the log it has cost queries {more} more than "
            f"another one, and it is learned again from {enough} on; force=True (--force) takes "
            "the layout of the log now"
        )

    @property
    def is_due(self) -> bool:
        """Whether the table is to be clustered by the contender."""
        return self.regret >= ENOUGH


def accumulate(present: Floats, contender: Floats) -> float:
    """Return the regret of a layout after some queries; at most :data:`ENOUGH`.

    Args:
        present: What the queries of each part of a log read of the layout, oldest first, in reads
            of the whole table.
        contender: The same of the contender.

    >>> import numpy as np
    >>> accumulate(np.full(16, 0.5), np.full(16, 0.1)), accumulate(np.zeros(16), np.full(16, 9.0))
    (4.0, 0.0)
    """
    regret = 0.0
    for more in (present - (1 + MARGIN) * contender).clip(-PART, PART).tolist():
        regret = min(max(regret + more, 0.0), ENOUGH)
    return regret
