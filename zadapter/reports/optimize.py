"""What an optimize will bring, and what it brought."""

import time
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from zadapter.base.secrets import mask_fields
from zadapter.base.sizes import show

VERIFICATIONS = ("counts", "checksum")
"""What ``verify=`` takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an optimize would do, predicted from a sample; nothing was written."""

    table: str
    format: str
    version: int
    """The version that was looked at."""
    columns: tuple[str, ...]
    """Key columns."""
    curve: str
    groups: int
    """Groups of files to be rewritten, each within one partition."""
    files_before: int
    """Live files of the table."""
    files_asked: int
    """How many of them may hold rows that ``where`` is true for."""
    files_rewritten: int
    """How many of them go."""
    files_written: int
    """How many come for them."""
    bytes_rewritten: int
    """Bytes of the files that go."""
    rows: int | None
    """Live rows in the files that go; None where the log does not count them."""
    share_before: float
    """Mean share of the table's rows, from 0 to 1, in files that a range filter on the key columns
    has to open now (``zadapter.planning.predict`` says which filters)."""
    share_after: float
    """The same afterwards, predicted."""

    def __post_init__(self) -> None:
        mask_fields(self)

    @property
    def nothing_to_do(self) -> bool:
        """Whether everything in question is clustered already, or there is nothing."""
        return self.groups == 0

    def facts(self) -> Mapping[str, str]:
        """Return what there is to say, for people."""
        version = f"version {self.version}" if self.version >= 0 else "no version yet"
        named = f"{self.table} ({self.format}, {version})"
        if self.nothing_to_do:
            why = "already clustered as asked" if self.files_asked else "no file may hold such rows"
            why = why if self.files_before else "the table has no files"
            return {"table": named, "nothing to do": why}
        return {
            "table": named,
            "layout": f"{self.curve} by {', '.join(self.columns)}",
            "files": f"{self.files_rewritten} of {self.files_before} -> {self.files_written}",
            "bytes": show(self.bytes_rewritten),
            "rows": "unknown" if self.rows is None else f"{self.rows:,}",
            "a filter reads": f"{self.share_before:.1%} of the rows -> {self.share_after:.1%}, "
            "predicted",
        }

    def __str__(self) -> str:
        return aligned(self.facts())


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """How the rows that were written were compared with those that were read."""

    by: str
    """``"counts"``, or ``"checksum"`` where values were compared, too."""
    read_twice: bool = False
    """Whether a checksum needed the files that went to be read once more."""
    untested: str | None = None
    """Why plain DataFrame operations placed the rows, and a checksum was taken in any case: what
    in the session zadapter was not tested with."""

    def __str__(self) -> str:
        twice = ", the rows read twice" if self.read_twice else ""
        why = f"; by plain Spark, since untested with {self.untested}" if self.untested else ""
        return self.by + twice + why


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What an optimize did."""

    plan: Plan
    versions: tuple[int | None, ...]
    """Versions committed; None for one that landed although its answer was lost."""
    files_removed: int
    files_added: int
    bytes_removed: int
    bytes_added: int
    rows: int
    """Rows in the files that were committed."""
    share_after: float
    """Mean share of the table's rows that a range filter has to read now, by the stats."""
    stale: tuple[str, ...]
    """Groups left as they were, since another writer changed their files; one line each."""
    seconds: Mapping[str, float]
    """Seconds by phase: plan, fit (sampling, too), write, verify, commit, and in total."""
    verification: Verification
    """How rows were compared; where there was nothing to do, how they would have been."""

    def __post_init__(self) -> None:
        mask_fields(self)

    @property
    def nothing_to_do(self) -> bool:
        """Whether there was nothing to do."""
        return self.plan.nothing_to_do

    @property
    def share_before(self) -> float:
        """Mean share of the table's rows that a range filter had to read."""
        return self.plan.share_before

    def facts(self) -> Mapping[str, str]:
        """Return what there is to say, for people."""
        facts = dict(self.plan.facts())
        if self.plan.nothing_to_do:
            return facts
        facts["files"] = f"{self.files_removed} of {self.plan.files_before} -> {self.files_added}"
        facts["bytes"] = f"{show(self.bytes_removed)} -> {show(self.bytes_added)}"
        facts["rows"] = f"{self.rows:,}"
        facts["a filter reads"] = f"{self.share_before:.1%} of the rows -> {self.share_after:.1%}"
        facts["verified by"] = str(self.verification)
        facts["seconds"] = ", ".join(f"{name} {value:.1f}" for name, value in self.seconds.items())
        facts["committed"] = f"version {_listed(self.versions)}" if self.versions else "nothing"
        if self.stale:
            facts["left as it was"] = "; ".join(self.stale)
        return facts

    def __str__(self) -> str:
        return aligned(self.facts())


@contextmanager
def timing(seconds: MutableMapping[str, float], phase: str) -> Iterator[None]:
    """Add what a phase takes to *seconds*."""
    start = time.perf_counter()
    try:
        yield
    finally:
        seconds[phase] = seconds.get(phase, 0.0) + time.perf_counter() - start


def _listed(versions: Sequence[int | None]) -> str:
    return ", ".join("unknown" if version is None else str(version) for version in versions)


def aligned(facts: Mapping[str, str]) -> str:
    """Write facts one a line, values below one another."""
    width = max(len(name) for name in facts)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts.items())
