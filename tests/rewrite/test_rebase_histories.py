"""Rebases among writers that delete, update, merge, rewrite and restore at any moment."""

from collections import Counter
from random import Random

import pytest

from tests.kit.memory_log import Time
from tests.kit.row_log import RowLog
from tests.kit.variants import slow
from zadapter.backend.commit import Landed, commit_change
from zadapter.base.commit_attempts import Attempts, Backoff
from zadapter.errors import ConflictError, StaleRewriteError, UnknownOutcomeError
from zadapter.rewrite.rebase import Rebaser, is_hopeless
from zadapter.table.snapshot import keys

HISTORIES = range(600), range(600, 4_000)
DELETED = 0.15
"""Share of the rows that one delete removes."""
MOVES = {
    "nothing": 60,
    "append": 10,
    "delete": 25,
    "update": 10,
    "copy on write": 8,
    "compact": 3,
    "restore": 3,
    "alter": 1,
}


class Writer:
    """Another writer, which makes some change now and then."""

    def __init__(self, random, *, ids):
        self.random, self.ids = random, ids

    def __call__(self, log):
        (move,) = self.random.choices([*MOVES], [*MOVES.values()])
        changed = getattr(self, move.replace(" ", "_"))(log, log.head.files)
        if changed is not None:
            log.write(**changed)

    def row(self):
        row = self.random.choice([None, 0.0, 1, 2, 3])
        return (row, self.random.random()) if self.ids else row

    def nothing(self, log, files):
        return None

    def append(self, log, files):
        return {"files": files | {(log.new_file([self.row()]), None)}}

    def delete(self, log, files):
        left = dict(files)
        for path, deletes in files:
            live = log.live_at((path, deletes))
            gone = {at for at in live if self.random.random() < DELETED}
            if gone:
                left[path] = log.new_deletes(log.deleted[deletes] | gone)
        return {"files": frozenset(left.items())}

    def update(self, log, files):
        return {
            "files": self.delete(log, files)["files"] | {(log.new_file([self.row()] * 2), None)}
        }

    def copy_on_write(self, log, files):
        chosen = self.random.choice(sorted(files, key=str))
        rows = [row for row in log.live_at(chosen).values() if self.random.random() > DELETED]
        return {"files": files - {chosen} | {(log.new_file(rows), None)}}

    def compact(self, log, files):
        rows = [row for file in files for row in log.live_at(file).values()]
        return {"files": frozenset({(log.new_file(rows), None)})}

    def restore(self, log, files):
        return {"files": self.random.choice(log.versions).files}

    def alter(self, log, files):
        return {"definition": f"altered {len(log.versions)}"}


def history(seed):
    """Return the log and the outcome of a rewrite among other writers."""
    random = Random(seed)
    others = Writer(random, ids=seed % 2)
    files = [[others.row() for _ in range(random.randint(1, 8))] for _ in range(6)]
    fates = random.choices(["fine", "lost", "never"], [80, 10, 10], k=6)
    log = RowLog(files, strict=random.random() < 0.5, fates=fates)
    for _ in range(random.randint(0, 2)):  # files may have deleted rows before
        others(log)
    live = sorted(log.head.files, key=str)
    random.shuffle(live)
    groups = [live[:3], live[3:5]] if random.random() < 0.5 else [live[:4]]
    change = log.rewrite(*(group for group in groups if any(map(log.live_at, group))))
    log.others = others
    rebaser = Rebaser(follow=log.follow(change.staged[0]), max_rebase=0.6, written=[])
    attempts = Attempts(Backoff(attempts=6), Time().clock)
    try:
        outcome = commit_change(log, change, attempts, rebaser)
    except (ConflictError, UnknownOutcomeError) as error:
        outcome = error
    log.others = lambda log: None
    return log, change, rebaser, outcome


@pytest.mark.parametrize("seeds", [HISTORIES[0], *slow(HISTORIES[1])], ids=str)
def test_no_history_loses_doubles_or_resurrects_a_row(seeds):
    """Whatever other writers do meanwhile, the commit holds the rows that the head held."""
    seen = Counter()
    for seed in seeds:
        log, change, rebaser, outcome = history(seed)
        landed = [number for number, v in enumerate(log.versions) if v.commit == change.id]
        assert len(landed) <= 1, seed
        assert isinstance(outcome, UnknownOutcomeError) or bool(landed) == isinstance(
            outcome, Landed
        ), seed
        for number in landed:
            before, after = log.versions[number - 1], log.versions[number]
            assert log.content(after) == log.content(before), seed
            assert all(log.live_at(file) for file in after.files - before.files), seed
            if isinstance(outcome, Landed) and not outcome.doubtful:
                removed = {file for e in outcome.change.exchanges for file in keys(e.removed)}
                assert removed == before.files - after.files, seed
        seen[type(outcome)] += 1
        seen["rebased"] += bool(landed) and rebaser.result is not None and rebaser.result.rows > 0
        seen["in part"] += isinstance(outcome, Landed) and outcome.stale != ()
        seen["doubtful"] += isinstance(outcome, Landed) and outcome.doubtful
        seen["twice"] += len(rebaser.written) > 1
        seen["too many"] += any("max_rebase" in reason for reason in rebaser.stale)
        seen["returned"] += any("live again" in reason for reason in rebaser.stale)
    kinds = [
        Landed,
        StaleRewriteError,
        UnknownOutcomeError,
        "doubtful",
        "rebased",
        "in part",
        "twice",
        "too many",
        "returned",
    ]
    assert all(seen[kind] >= len(seeds) / 200 for kind in kinds), seen


def test_a_delete_of_few_rows_does_not_stop_a_rewrite():
    """A rewrite whose only rivals delete few rows lands as a whole."""
    for seed in range(200):
        random = Random(seed)
        log = RowLog([[n // 3 for n in range(20)] for _ in range(4)])
        change = log.rewrite(sorted(log.head.files))
        moments = iter(random.choices([True, False], k=4))

        def others(log, random=random, moments=moments):
            if next(moments, False):
                path, deletes = random.choice(sorted(log.head.files, key=str))
                gone = random.choice([*log.live_at((path, deletes))])
                changed = (path, log.new_deletes(log.deleted[deletes] | {gone}))
                log.write(files=log.head.files - {(path, deletes)} | {changed})

        log.others = others
        rebaser = Rebaser(follow=log.follow(change.staged[0]), max_rebase=0.2, written=[])
        outcome = commit_change(log, change, Attempts(Backoff(), Time().clock), rebaser)

        assert outcome.stale == ()
        assert rebaser.stale == []


def test_a_job_is_hopeless_once_all_its_groups_have_lost_too_many_rows():
    """It goes on while one group can be committed, or rebased."""
    log = RowLog([[1, 2, 3, 4, 5]] * 4)
    planned = log.snapshot("t")
    groups = [log.listed(sorted(log.head.files)[at : at + 2]) for at in (0, 2)]

    def hopeless():
        head = log.snapshot("t")
        return is_hopeless(groups, planned, head, log.files(head), 0.2)

    first, *others = sorted(log.head.files)
    marked = (first[0], log.new_deletes({1}))
    log.write(files=frozenset({marked, *others}))
    assert not hopeless()
    log.write(files=log.head.files - {marked})
    assert not hopeless()
    log.write(files=frozenset())
    assert hopeless()
    log.write(files=frozenset({first, *others}))
    assert not hopeless()
    log.write(definition="altered")
    assert hopeless()
