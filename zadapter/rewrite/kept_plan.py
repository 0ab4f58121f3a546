"""Plans that are kept and run later, maybe in another session."""

from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial

import pyarrow as pa

from zadapter.backend.contract import Backend
from zadapter.base.names import NameParts, split
from zadapter.base.phases import phase
from zadapter.errors import StaleRewriteError
from zadapter.layout.layout import Request
from zadapter.planning.options import Options
from zadapter.planning.request import request_of
from zadapter.rewrite.file_selection import follow_layout
from zadapter.rewrite.job import AnyPlan
from zadapter.rewrite.planner import RewritePlan, with_stats
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot, keys, select_paths


@dataclass(frozen=True, kw_only=True)
class KeptPlan:
    """A plan without its session: the jobs with their layouts, and what the table must still have.

    It can be pickled.
    """

    options: Options
    """The options of the call; keys that a query log decides are known."""
    table: tuple[str, ...]
    """Id and definition of the table, its schema and its partitions."""
    _rest: Callable[..., AnyPlan] = field(repr=False)
    """Returns the plan for a backend and a snapshot."""

    @classmethod
    def of(cls, plan: AnyPlan, options: Options) -> "KeptPlan":
        """Return a plan without its backend and its snapshot, which belong to a session."""
        rest = {each.name: getattr(plan, each.name) for each in fields(plan)}
        del rest["backend"], rest["snapshot"]
        return cls(options=options, table=_table(plan.snapshot), _rest=partial(type(plan), **rest))

    def renewed(self, backend: Backend, seconds: MutableMapping[str, float]) -> AnyPlan:
        """Return the plan for the newest version of the table; it is not planned again.

        Args:
            backend: The table's backend.
            seconds: Gets the duration of the phase.

        Raises:
            StaleRewriteError: The table's definition, its layout or a file to rewrite has changed.
            UnsupportedError: The table uses a feature that zadapter cannot preserve.
        """
        with phase("plan", self.options.name, seconds) as step:
            snapshot = backend.snapshot(self.options.name)
            if _table(snapshot) != self.table:
                raise _stale(snapshot, ["the table's definition"])
            snapshot.check_rewritable()
            plan = self._rest(backend=backend, snapshot=snapshot)
            files = backend.files(snapshot, _columns_with_stats(plan.files))
            planned = [each.job.files for each in plan.jobs]
            self._check(plan, planned, files)
            collecting = self._collecting(plan)
            if collecting is not snapshot:  # a newer version, in which rivals may have committed
                files = backend.files(collecting, _columns_with_stats(plan.files))
                self._check(replace(plan, snapshot=collecting), planned, files)
            step.note(version=snapshot.version, **file_stats.totals(planned))
        return replace(plan, snapshot=collecting, asked=replace(plan.asked, files=files))

    def _check(self, plan: AnyPlan, planned: Sequence[pa.Table], files: pa.Table) -> None:
        """Check that a plan holds for a newer version, as a commit checks it for its own files.

        Args:
            plan: The plan, with the newer version.
            planned: The files to rewrite.
            files: All files of the newer version.

        Raises:
            StaleRewriteError: It does not.
        """
        to_rewrite = {key for each in planned for key in keys(each)}
        alive = keys(select_paths(files, {path for path, _ in to_rewrite}))
        if gone := to_rewrite - alive:
            raise _stale(plan.snapshot, sorted(path for path, _ in gone))
        if self._request(plan) != (plan.request if isinstance(plan, RewritePlan) else None):
            raise _stale(plan.snapshot, ["the layout that the table's files have"])

    def _request(self, plan: AnyPlan) -> Request | None:
        """Return the layout that the call asks for now; None: the table has none to follow."""
        options = follow_layout(self.options, plan.backend, plan.snapshot)
        return None if options is None else request_of(options, plan.snapshot, plan.files)

    def _collecting(self, plan: AnyPlan) -> Snapshot:
        """Return a snapshot that collects stats of the key columns, as the options allow it."""
        if not isinstance(plan, RewritePlan):
            return plan.snapshot
        columns, snapshot = plan.request.columns, plan.snapshot
        if plan.tiers is not None:
            columns = plan.tiers.with_column(columns, snapshot.partition)
        return with_stats(plan.backend, snapshot, columns, self.options, write=True)


def _stale(snapshot: Snapshot, changed: Sequence[str]) -> StaleRewriteError:
    advice = "Call zadapter.plan for the new version"
    return StaleRewriteError(snapshot.table, changed, advice=advice)


def _table(snapshot: Snapshot) -> tuple[str, ...]:
    # not every format's definition has the schema and the partitions
    fields = str(snapshot.schema), str(dict(snapshot.partition))
    return snapshot.id, snapshot.definition, *fields


def _columns_with_stats(files: pa.Table) -> list[NameParts]:
    return [split(each.name) for each in files.schema.field("stats").type]
