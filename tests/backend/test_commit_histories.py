"""The commit loop among racing writers, lost answers, and answers that land later."""

from collections import Counter
from random import Random

import pytest

from tests.kit.memory_log import MemoryLog, outcome_of, rewrite_of
from tests.kit.variants import slow
from zadapter.backend.commit import Landed
from zadapter.base.commit_attempts import Backoff
from zadapter.errors import (
    ConflictError,
    ReplacedTableError,
    StaleRewriteError,
    UnknownOutcomeError,
)
from zadapter.table.snapshot import keys

HISTORIES = range(1_200), range(1_200, 6_000)
FATES = ["fine", "lost", "never", "late", "raw lost", "raw never", "raw late"]


def busy(random):
    """Others who append, delete files or rows, change the table, and late answers."""

    def others(log):
        moves = ["nothing", "append", "delete file", "delete rows", "alter", "replace", "catch up"]
        move = random.choices(moves, [100, 20, 8, 8, 3, 2, 60])[0]
        path, deletes = random.choice([*sorted(log.head.files, key=str), ("x", None)])
        if move == "append":
            log.write(files=log.head.files | {(f"foreign {len(log.versions)}", None)})
        elif move == "delete file":
            log.delete(path)
        elif move == "delete rows":
            log.write(files=log.head.files - {(path, deletes)} | {(path, f"{len(log.versions)}")})
        elif move == "alter":
            log.write(definition=f"altered {len(log.versions)}")
        elif move == "replace":
            log.write(id=f"another {len(log.versions)}")
        elif move == "catch up":
            log.catch_up()

    return others


def check(log, rewrite, outcome):
    """Whatever happened, the outcome tells the truth, and goes on telling it."""
    landed = [number for number, v in enumerate(log.versions) if v.commit == rewrite.id]
    doubtful = set(log.tried) != {"fine"}
    assert len(landed) <= 1
    if isinstance(outcome, Landed):
        before, after = log.versions[landed[0] - 1], log.versions[landed[0]]
        done = [exchange for exchange in rewrite.exchanges if exchange not in outcome.stale]
        assert outcome.version in {None, landed[0]}
        assert outcome.doubtful == doubtful
        assert outcome.attempts == len(log.tried)
        assert before.definition == after.definition == rewrite.base.definition
        assert before.id == after.id == rewrite.base.id
        assert before.files - after.files == {file for e in done for file in keys(e.removed)}
        assert after.files - before.files == {file for e in done for file in keys(e.added)}
        assert all(keys(exchange.removed) - before.files for exchange in outcome.stale)
    elif isinstance(outcome, UnknownOutcomeError):
        assert doubtful
        assert outcome.commit_id == rewrite.id
        assert outcome.committed is None
        assert all(number > log.looked for number in landed)  # else the last look has seen it
    elif isinstance(outcome, ReplacedTableError):
        assert log.head.id != rewrite.base.id
        assert outcome.committed is (None if doubtful else False)
        assert all(number > log.looked for number in landed)
    else:
        assert isinstance(outcome, ConflictError)
        assert landed == []
        assert not doubtful
        assert (outcome.committed, outcome.retryable) == (False, True)


@pytest.mark.parametrize("seeds", [HISTORIES[0], *slow(HISTORIES[1])], ids=str)
def test_outcomes_are_true_in_every_history(seeds):
    """Nothing lands twice; what is reported landed has; what is called a conflict never does."""
    seen = Counter()
    for seed in seeds:
        random = Random(seed)
        fates = random.choices(FATES, [60, 10, 10, 30, 4, 4, 4], k=6)
        log = MemoryLog("abcdefgh", fates)
        rewrite = rewrite_of(log, "ab", "cd", "e")
        log.others = busy(random)

        outcome = outcome_of(log, rewrite, Backoff(attempts=random.randint(1, 5)))
        for _ in range(8):
            log.others(log)

        check(log, rewrite, outcome)
        seen[type(outcome)] += 1
        seen["in part"] += isinstance(outcome, Landed) and outcome.stale != ()
        seen["found out"] += isinstance(outcome, Landed) and outcome.version is None
    kinds = [Landed, "in part", "found out"]
    kinds += [UnknownOutcomeError, ConflictError, StaleRewriteError, ReplacedTableError]
    assert all(seen[kind] >= len(seeds) / 200 for kind in kinds), seen
