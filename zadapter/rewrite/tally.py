"""Results of the jobs that a run has finished."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from zadapter.backend.commit import Landed
from zadapter.base.phases import Amounts
from zadapter.base.printable import abridge
from zadapter.errors import ZadapterError
from zadapter.planning.cost import Cost
from zadapter.report.optimize_report import Rebased, Verification
from zadapter.report.plan import Plan
from zadapter.table import file_stats
from zadapter.table.snapshot import Exchange


@dataclass(slots=True)
class Tally:
    """Results of the jobs that a run has finished."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    versions: list[int | None] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    rebased: Rebased | None = None
    jobs_left: int = 0
    read_twice: bool = False
    untested: str | None = None
    spent: list[Amounts | None] = field(default_factory=list[Amounts | None])
    """What the phases took, one by one; None if it is unknown."""
    bytes_read: int = 0
    """Bytes of the files that the jobs have read, once for each time."""
    earlier: tuple[str, ...] = ()
    """Lines of the report about earlier runs that did not end."""

    def note(self, landed: Landed, rebased: Rebased | None, stale: Iterable[str]) -> None:
        """Record a rewrite that landed, what its rebase has left out, and exchanges it dropped."""
        self.versions.append(landed.version)
        self.exchanges += landed.change.exchanges
        self.rebased = Rebased.add(self.rebased, rebased)
        self.stale += stale

    def add(self, other: "Tally") -> None:
        """Add what was found before the commit of a job."""
        for name, duration in other.seconds.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + duration
        self.bytes_read += other.bytes_read
        self.read_twice |= other.read_twice
        self.untested = self.untested or other.untested

    def facts(self) -> dict[str, int | None]:
        """Return the newest version, and the files, bytes and rows of all commits."""
        version = self.versions[-1] if self.versions else None
        return {"version": version, **file_stats.totals(e.added for e in self.exchanges)}

    def cost(self, plan: Plan) -> Cost:
        """Return what the run has needed; Spark's figures are unknown if some are missing.

        A writer may not report to Spark what it writes. Then Spark's figure is below what was
        committed. Bytes read are the sizes of files: Spark's ``inputBytes`` leaves out what Parquet
        reads by vectored I/O, which bypasses Hadoop's statistics. A sample reads the keys besides.

        Args:
            plan: The plan of the run.
        """
        amounts = [each for each in self.spent if each is not None]
        known = len(amounts) == len(self.spent)
        added = file_stats.totals(exchange.added for exchange in self.exchanges)
        removed = sum(exchange.removed.num_rows for exchange in self.exchanges)
        gets, puts = plan.requests(
            removed, added["files"] or 0, added["bytes"] or 0, len(self.versions)
        )
        written = sum(each.written for each in amounts)
        is_complete = known and written >= (added["bytes"] or 0)
        return Cost(
            bytes_read=self.bytes_read,
            bytes_written=written if is_complete else None,
            bytes_shuffled=sum(each.shuffled for each in amounts) if known else None,
            get_requests=gets,
            put_requests=puts,
            core_seconds=sum(each.core_seconds for each in amounts) if known else None,
        )

    def verification(self, requested: str) -> Verification:
        """Return how rows were compared, given the *requested* option."""
        by = "checksum" if self.untested else requested
        return Verification(by=by, read_twice=self.read_twice, untested=self.untested)

    @contextmanager
    def reporting_versions(self) -> Iterator[None]:
        """Add the versions that are already committed to an error: its message, or its notes."""
        try:
            yield
        except Exception as error:
            committed = f"Versions committed by this call: [{abridge(self.versions)}]"
            if self.versions and isinstance(error, ZadapterError):
                error.args = (f"{error}. {committed}",)
            elif self.versions:
                # as add_note does, which is Python 3.11 and later
                notes = [*getattr(error, "__notes__", []), committed]
                error.__notes__ = notes  # type: ignore[attr-defined]
            raise
