"""Runs of several jobs among racing runs, writers, lost answers, and answers that land later."""

from collections import Counter
from dataclasses import replace
from itertools import count
from random import Random

import pytest

from tests.kit.memory_log import LAYOUT, MemoryLog, Time, listed
from tests.kit.variants import slow
from zadapter.backend.commit import commit_change
from zadapter.base.commit_attempts import Attempts, Backoff
from zadapter.errors import NOT_COMMITTED, UnknownOutcomeError
from zadapter.table.snapshot import Change, Exchange, Operation, Staged, keys

HISTORIES = range(150), range(150, 800)
FATES = {"fine": 60, "lost": 10, "never": 10, "late": 20, "raw lost": 4, "raw late": 4}
MOVES = {
    "nothing": 60, "append": 20, "delete file": 6, "delete rows": 8, "rival": 12, "catch up": 30,
}  # fmt: skip
KINDS = ("merge", "refit", "limited")
"""What a run rewrites: some files, all files, or no more than a limit allows."""


class History:
    """A table whose rows are known, and all that a seed thinks of."""

    def __init__(self, seed):
        self.random, self.numbers, self.seen = Random(seed), count(), Counter()
        self.rows, self.expected, self.discarded = {}, set(), set()
        self.log = MemoryLog([self._file(range(6 * n, 6 * n + 6)) for n in range(6)])
        self.log.fates = iter(self._fate, None)
        self.log.others, self.busy = self.others, False

    def _fate(self):
        return self.random.choices([*FATES], [*FATES.values()])[0]

    def _file(self, rows):
        path = f"file {next(self.numbers)}"
        self.rows[path] = set(rows)
        return path

    def alive(self, file):
        """The rows of a file that no row-level delete removes."""
        path, deletes = file
        return self.rows[path] - set(map(int, (deletes or "").split()))

    def others(self, log):
        """Let others write; their own steps are not disturbed."""
        if self.busy:
            return
        self.busy = True
        move = self.random.choices([*MOVES], [*MOVES.values()])[0]
        getattr(self, move.replace(" ", "_"))(log)
        self.busy = False

    def nothing(self, log):
        """Nobody comes."""

    def append(self, log):
        first = 1_000 + 10 * next(self.numbers)
        log.write(files=log.head.files | {(self._file(range(first, first + 4)), None)})

    def delete_file(self, log):
        if log.head.files:
            log.delete(self.random.choice(sorted(path for path, _ in log.head.files)))

    def delete_rows(self, log):
        if log.head.files:
            path, deletes = self.random.choice(sorted(log.head.files, key=str))
            row = self.random.choice(sorted(self.rows[path]))
            more = f"{deletes or ''} {row}".strip()
            log.write(files=log.head.files - {(path, deletes)} | {(path, more)})

    def rival(self, log):
        """Another call of optimize."""
        self.run()

    def catch_up(self, log):
        log.catch_up()

    def run(self):
        """Plan jobs on one snapshot, and commit them one by one, as a run does."""
        base = self.log.snapshot("t")
        files = sorted(self.log.versions[base.version].files, key=str)
        kind = self.random.choice(KINDS)
        if kind != "refit":
            most = 2 if kind == "limited" else len(files)
            files = self.random.sample(files, min(most, len(files)))
        for job in parts(files, 3):
            self._publish(self._change(base, parts(job, 2)))
            self.seen[kind] += 1

    def _change(self, base, groups):
        exchanges = tuple(
            Exchange(
                removed=listed(*files),
                added=listed((self._file(set().union(*map(self.alive, files))), None)),
            )
            for files in groups
        )
        added = [file for each in exchanges for file in keys(each.added)]
        return Change(
            base=base,
            operation=Operation.OPTIMIZE,
            exchanges=exchanges,
            staged=(Staged(files=listed(*added), paths={}),),
            layouts=(LAYOUT,),
        )

    def _publish(self, change):
        """Commit a job; of files that are certain to be in no version, none is kept."""
        backoff = Backoff(attempts=self.random.randint(1, 4))
        try:
            outcome = commit_change(self.log, change, Attempts(backoff, Time().clock))
        except NOT_COMMITTED as error:
            self.seen[type(error).__name__] += 1
            unneeded = change.exchanges
        except UnknownOutcomeError:
            self.seen["unknown"] += 1
            unneeded = ()
        else:
            self.seen["in part"] += outcome.stale != ()
            unneeded = () if outcome.doubtful else outcome.stale
        self.discarded |= {path for each in unneeded for path, _ in keys(each.added)}

    def check(self):
        """Each version has the rows that the writers' changes alone lead to."""
        before = self.log.versions[0]
        rows = self._rows(before)
        for version in self.log.versions[1:]:
            if version.commit is None:
                removed, added = before.files - version.files, version.files - before.files
                rows += Counter(row for file in added for row in self.alive(file))
                rows -= Counter(row for file in removed for row in self.alive(file))
            assert self._rows(version) == rows, "rows are lost, doubled or back"
            assert not {path for path, _ in version.files} & self.discarded, "a live file is gone"
            before = version

    def _rows(self, version):
        return Counter(row for file in version.files for row in self.alive(file))


def parts(items, most):
    """Cut a list into up to *most* parts."""
    size = -(-len(items) // most) or 1
    return [items[at : at + size] for at in range(0, len(items), size)]


def lived(seed):
    history = History(seed)
    for _ in range(3):
        history.run()
    for _ in range(8):
        history.log.others(history.log)
    return history


def check_all(seeds):
    """Check the histories of seeds; return what has happened in them, and how often."""
    seen = Counter()
    for seed in seeds:
        history = lived(seed)
        history.check()
        seen += history.seen
    return seen


@pytest.mark.parametrize("seeds", [HISTORIES[0], *slow(HISTORIES[1])], ids=str)
def test_runs_and_their_rivals_keep_every_row(seeds):
    """Merges, new fits and limited runs, each of several jobs on one snapshot."""
    seen = check_all(seeds)
    told = (*KINDS, "in part", "unknown", "ConflictError", "StaleRewriteError")
    assert all(seen[each] >= len(seeds) / 20 for each in told), seen


def ignores_what_others_changed(change, head, live):
    """A job is committed again as it was planned."""
    return replace(change, base=head), ()


def test_a_job_that_ignores_other_runs_is_found_out(monkeypatch):
    """Its rows are in their files already, and those that were deleted come back."""
    monkeypatch.setattr(Change, "rebase", ignores_what_others_changed)
    monkeypatch.setattr(MemoryLog, "land", swap)
    with pytest.raises(AssertionError, match="lost, doubled or back"):
        check_all(HISTORIES[0])


def swap(log, change):
    """Compare and swap, without a look at the removed files."""
    if change.base.version != len(log.versions) - 1:
        return False
    removed = {file for each in change.exchanges for file in keys(each.removed)}
    added = {file for each in change.exchanges for file in keys(each.added)}
    log.write(files=log.head.files - removed | added, commit=change.id)
    return True
