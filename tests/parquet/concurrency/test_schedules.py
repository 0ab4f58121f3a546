"""Writers, a clean-up, lost answers, late requests and deaths, in any order a seed thinks of.

The first test runs the code as it is; the others break one of its rules each, and must see rows
lost, doubled or resurrected, or a live file deleted. A seed that fails is in the message:
``World(seed).run().check()`` runs it again.
"""

from dataclasses import replace

import pytest

from tests.kit.variants import slow, slow_but
from tests.parquet.kit.world import World
from zadapter.errors import ConflictError, UnknownOutcomeError
from zadapter_parquet.format.entries import encode
from zadapter_parquet.log import log
from zadapter_parquet.operations import vacuuming
from zadapter_parquet.store.contract import Outcome

SOME = range(52, 67)
MORE = (range(52), range(67, 100), *(range(n, n + 100) for n in range(100, 10_000, 100)))
ENOUGH = range(50, 3_000)
"""Seeds of which one at least finds a broken rule; each rule that is tried is found by 62."""


def broken(world):
    """The law that a world has broken, if any."""
    try:
        world.check()
    except AssertionError as error:
        return str(error) or "broken"
    return None


@pytest.mark.parametrize("seeds", [SOME, *slow(*MORE)], ids=str)
def test_no_order_of_events_breaks_a_law(seeds):
    """And some meet every outcome: seeds in which nothing goes wrong prove little."""
    worlds = {seed: World(seed).run() for seed in seeds}

    found = {seed: law for seed, world in worlds.items() if (law := broken(world)) is not None}
    assert found == {}
    outcomes = {outcome for world in worlds.values() for outcome in world.outcomes.values()}
    assert seeds != SOME or outcomes == {"landed", "lost", "unknown", "died"}


def believes_the_first_answer(self, entry):
    """No read-back: an unknown outcome counts as a lost race."""
    outcome = self._store.create(log.path_of(entry.version), encode(entry))
    if outcome is not Outcome.CREATED:
        raise ConflictError("taken, it seems")


def goes_on_while_undecided(self, entry):
    """An unknown outcome at one version, and the next version is claimed."""
    for version in range(entry.version, entry.version + 9):
        moved = replace(entry, version=version)
        outcome = self._store.create(log.path_of(version), encode(moved))
        if outcome is Outcome.CREATED:
            return
        if outcome is Outcome.EXISTS:
            raise ConflictError("taken")
    raise UnknownOutcomeError("t", entry.transaction)


def overwrites(self, entry):
    """A store without a conditional write."""
    self._store.write(log.path_of(entry.version), encode(entry))


def deletes_without_ruling_out(log, table, folder):
    """No fence: an old folder is taken for one that nobody will commit."""
    return True


def deletes_what_is_needed(files, log, table, oldest, cutoff):
    """The clean-up forgets that newer versions share files with older ones."""
    return sorted(vacuuming._list_needed_paths(files, map(log.entry, range(oldest))))  # noqa: SLF001


@pytest.mark.parametrize(
    ("place", "name", "mutant"),
    [
        *slow_but(of=[(log.Log, "claim", believes_the_first_answer)]),
        (log.Log, "claim", goes_on_while_undecided),
        (log.Log, "claim", overwrites),
        (vacuuming, "_abort", deletes_without_ruling_out),
        (vacuuming, "_find_unneeded", deletes_what_is_needed),
    ],
)
def test_a_rule_that_is_broken_is_found_out(monkeypatch, place, name, mutant):
    monkeypatch.setattr(place, name, mutant)

    assert any(broken(World(seed).run()) is not None for seed in ENOUGH)
