"""All that can happen to a small plain Parquet table, in every order, breaks no law.

The search is breadth first and goes to the end, so a law that breaks comes with the shortest way
there. Each rule of the protocol is left out once, and is missed. :mod:`tests.parquet.kit.world` is
the other half: there the code itself runs, in orders that are drawn at random.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import pytest

from tests.kit.variants import slow
from tests.parquet.kit.model import Entry, Machine, Moves, Names, Role, Rule, Turn, entry, search

ROWS = {"A": [1, 2], "B": [3], "C": [4], "D": [5], "A again": [1, 2], "A less a row": [1]}
"""Rows of each data file."""
GONE = "a version that can be read lacks files"


@dataclass(frozen=True)
class Writer(Role):
    """Puts a staged file in the place of a live one, or adds it."""

    removes: Names
    staged: Names
    first, lost = "write_stats", "look"

    def entry(self, turn: Turn, version: int, base: Entry) -> Entry:
        live = base.live - self.removes | self.staged
        fresh = turn.holds(Rule.FRESH_NAMES)
        name = f"{version} of {self.name}" if fresh else "".join(sorted(live))
        return entry(version, self.name, live, f"stats {name}", base.oldest, self.staged)

    def write_stats(self, turn: Turn) -> Moves:
        new = self.claimed(turn)
        state = turn.state._replace(store=turn.state.store | {new.stats})
        yield f"writes stats for {new.version}", turn.to("create", state)

    def create(self, turn: Turn) -> Moves:
        yield from super().create(turn)
        yield "is refused", turn.to("read", refused=True)

    def read(self, turn: Turn) -> Moves:
        refused = turn.me.refused and turn.there is None
        yield from self._fail(turn, "finds it was refused") if refused else super().read(turn)
        if turn.there is None:
            yield "finds nothing, and is in doubt", turn.to("look", doubtful=True)

    def look(self, turn: Turn) -> Moves:
        """Look for the commit in all of the log, and for what it needs in the newest version."""
        log, head = turn.state.log, turn.head
        if any(each.by == self.name for each in log):
            yield "finds its commit", turn.to("landed")
            return
        yield from self._fail(turn, "gives up")
        live = self.removes <= head.live or not turn.holds(Rule.LIVE_ONLY)
        ruled_out = any(each.rules_out & self.staged for each in log) and turn.holds(Rule.OBEYED)
        if live and not ruled_out:
            doubtful = turn.me.doubtful and turn.holds(Rule.DOUBT_LASTS)
            then = turn.to("write_stats", base=head.version, doubtful=doubtful)
            yield f"is rebased on {head.version}", then

    def _fail(self, turn: Turn, why: str) -> Moves:
        doubtful = turn.me.doubtful or (turn.me.sent and turn.holds(Rule.REFUSAL_PROVES_NOTHING))
        if not (doubtful and turn.holds(Rule.DOUBT_KEEPS)):
            yield why, turn.to("discard", doubtful=doubtful)

    def discard(self, turn: Turn) -> Moves:
        state = turn.state._replace(store=turn.state.store - self.staged)
        yield "discards what it staged", turn.to("done" if turn.me.doubtful else "nothing", state)


@dataclass(frozen=True)
class Cleaner(Role):
    """Deletes a staged file whose commit it takes for dead."""

    first, won, lost = "list", "delete", "follow"

    def entry(self, turn: Turn, version: int, base: Entry) -> Entry:
        doomed = frozenset(turn.me.doomed)
        return entry(version, self.name, base.live, base.stats, base.oldest, rules_out=doomed)

    def list(self, turn: Turn) -> Moves:
        """Look which staged files no commit speaks of."""
        known = {file for each in turn.state.log for file in each.commits}
        staged = {file for role in turn.machine.roles for file in role.staged}
        then = "follow" if turn.holds(Rule.RULED_OUT_FIRST) else "delete"
        for file in sorted((staged & turn.state.store) - known):
            yield f"takes {file!r} for left behind", turn.to(then, doomed=(file,))

    def follow(self, turn: Turn) -> Moves:
        """Look whether the commit is ruled out already, or has landed."""
        doomed, log = set(turn.me.doomed), turn.state.log
        landed = any(each.commits & doomed for each in log) and turn.holds(Rule.LANDED_STAYS)
        if any(each.rules_out & doomed for each in log):
            yield "finds it ruled out", turn.to("delete")
        elif not landed:
            yield from super().follow(turn)

    def read(self, turn: Turn) -> Moves:
        yield from super().read(turn)
        if turn.there is None and not turn.holds(Rule.RULED_OUT_SURELY):
            yield "finds nothing, and goes ahead", turn.to("delete")


@dataclass(frozen=True)
class Vacuum(Role):
    """Lets versions expire, and deletes what they needed."""

    spares: int = 0
    """Versions before the newest that do not expire."""
    first, won, lost = "age", "sift", "follow"

    def entry(self, turn: Turn, version: int, base: Entry) -> Entry:
        oldest = max(turn.me.oldest, base.oldest * turn.holds(Rule.EXPIRED_FOR_GOOD))
        return entry(version, self.name, base.live, base.stats, oldest)

    def age(self, turn: Turn) -> Moves:
        """Look which version is to be the oldest."""
        oldest = max(turn.head.oldest, turn.head.version - self.spares)
        doomed = () if turn.holds(Rule.LOOKED_AFTERWARDS) else self._unneeded(turn, oldest)
        then = "follow" if turn.holds(Rule.EXPIRED_FIRST) else "sift"
        yield f"finds {oldest} the oldest", turn.to(then, oldest=oldest, doomed=doomed)

    def sift(self, turn: Turn) -> Moves:
        """Look what the versions that have expired needed, and no younger one does."""
        doomed = turn.me.doomed or self._unneeded(turn, turn.me.oldest)
        if doomed:
            yield f"dooms {', '.join(doomed)}", turn.to("delete", doomed=doomed, oldest=0)

    def _unneeded(self, turn: Turn, oldest: int) -> tuple[str, ...]:
        log, store = turn.state.log, turn.state.store
        found = _needed(log[:oldest], store) & store - {log[0].stats}
        if turn.holds(Rule.SHARED):
            found -= _needed(log[oldest:], store)
        # the stats last: they tell what else is to be deleted
        return tuple(sorted(found, key=lambda name: (name.startswith("stats"), name)))


def _needed(entries, store):
    return {name for e in entries if e.stats in store for name in (e.stats, *e.live)}


@dataclass(frozen=True)
class Restorer(Role):
    """Makes version 1 the newest."""

    first, lost = "find", "find"

    def entry(self, turn: Turn, version: int, base: Entry) -> Entry:
        wanted = turn.state.log[1]
        return entry(version, self.name, wanted.live, wanted.stats, base.oldest)

    def find(self, turn: Turn) -> Moves:
        """Look whether the version has expired."""
        if turn.head.oldest <= 1:
            then = "check" if turn.holds(Rule.ONE_HEAD) else "follow"
            yield f"finds 1 at {turn.head.version}", turn.to(then, base=turn.head.version)

    def follow(self, turn: Turn) -> Moves:
        yield f"follows {turn.head.version}", turn.to("check", base=turn.head.version)

    def check(self, turn: Turn) -> Moves:
        """Look whether all its files are there."""
        wanted = turn.state.log[1]
        if {wanted.stats, *wanted.live} <= turn.state.store:
            yield "finds all files", turn.to("create")


def laws(roles):
    """Return a function that names the law that a state breaks, if any."""
    roles = {role.name: role for role in roles}
    of_log = cache(lambda log: _broken_in(log, roles))
    needed = cache(lambda log: {n for e in log[log[-1].oldest :] for n in (e.stats, *e.live)})

    def broken(state):
        if (law := of_log(state.log)) is not None:
            return law
        if not needed(state.log) <= state.store:
            return GONE
        authors = {each.by for each in state.log}
        for name, actor in zip(roles, state.actors, strict=True):
            if actor.step == "landed" and name not in authors:
                return "a commit that landed is gone"
            if actor.step == "nothing" and name in authors:
                return "a commit that failed has landed"
        return None

    return broken


def _broken_in(log, roles):
    if None in log:
        return "a version is missing"
    if max(Counter(each.by for each in log).values()) > 1:
        return "a commit landed twice"
    # the first three are older than all actors
    for before, each in pairwise(log[2:]):
        role = roles[each.by]
        rows = _rows(log[1].live if isinstance(role, Restorer) else before.live)
        rows.update(_rows(role.staged))
        rows.subtract(_rows(getattr(role, "removes", ())))
        if rows != _rows(each.live):
            return "rows are lost, doubled or back"
    return None


def _rows(files) -> Counter:
    return Counter(row for file in files for row in ROWS[file])


REWRITER = Writer("rewriter", removes=frozenset("A"), staged=frozenset({"A again"}))
DELETER = Writer("deleter", removes=frozenset("A"), staged=frozenset({"A less a row"}))
DROPPER = Writer("dropper", removes=frozenset("C"), staged=frozenset())
APPENDER = Writer("appender", removes=frozenset(), staged=frozenset("D"))
CLEANER, HEIR = Cleaner("cleaner"), Cleaner("heir")
VACUUM, SPARING = Vacuum("vacuum"), Vacuum("sparing vacuum", spares=1)
RESTORER = Restorer("restorer")

SMALL = [
    (REWRITER, RESTORER, CLEANER, VACUUM),
    (REWRITER, APPENDER, VACUUM),
    (REWRITER, APPENDER, CLEANER),
    (DROPPER, VACUUM, SPARING),
    (REWRITER, CLEANER, HEIR),
]
LARGE = [
    (REWRITER, DELETER, CLEANER, VACUUM),
    (REWRITER, APPENDER, CLEANER, VACUUM),
    (REWRITER, DELETER, RESTORER, VACUUM),
    (REWRITER, RESTORER, VACUUM, SPARING),
]
MISSED = {
    Rule.ONE_CREATOR: ("an entry has changed", REWRITER, DELETER),
    Rule.READ_BACK: (GONE, REWRITER),
    Rule.DECIDED_FIRST: ("a version is missing", REWRITER),
    Rule.DOUBT_KEEPS: (GONE, REWRITER),
    Rule.DOUBT_LASTS: (GONE, REWRITER),
    Rule.REFUSAL_PROVES_NOTHING: ("a commit that failed has landed", DROPPER),
    Rule.LIVE_ONLY: ("rows are lost, doubled or back", REWRITER, DELETER),
    Rule.RULED_OUT_FIRST: (GONE, REWRITER, CLEANER),
    Rule.RULED_OUT_SURELY: (GONE, REWRITER, CLEANER),
    Rule.LANDED_STAYS: (GONE, REWRITER, CLEANER),
    Rule.OBEYED: (GONE, REWRITER, CLEANER),
    Rule.EXPIRED_FIRST: (GONE, VACUUM),
    Rule.EXPIRED_FOR_GOOD: (GONE, VACUUM, SPARING),
    Rule.LOOKED_AFTERWARDS: (GONE, VACUUM, RESTORER),
    Rule.SHARED: (GONE, VACUUM),
    Rule.ONE_HEAD: (GONE, VACUUM, RESTORER),
    Rule.FRESH_NAMES: (GONE, VACUUM, DROPPER),
}
"""The law that breaks without each rule, and among whom."""


def tried(roles, rules=Rule):
    return search(Machine(roles, rules), laws(roles))


@pytest.mark.parametrize(
    "roles",
    [*SMALL, *slow(*LARGE)],
    ids=lambda roles: "+".join(role.name for role in roles),
)
def test_no_order_of_events_breaks_a_law(roles):
    found = tried(roles)

    assert found.law is None, found.trace


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.name.lower())
def test_a_rule_that_is_left_out_is_missed(rule):
    law, *roles = MISSED[rule]

    assert tried(roles).law is None
    assert tried(roles, set(Rule) - {rule}).law == law


def test_every_outcome_is_met():
    """A law that nothing could break proves little."""
    states = [*tried((REWRITER, RESTORER, VACUUM)).states, *tried((REWRITER, CLEANER)).states]
    entries = {each for state in states for each in state.log}

    assert {state.actors[0].step for state in states} >= {"landed", "nothing"}
    assert {state.actors[1].step for state in states} >= {"landed", "delete"}
    assert any(state.actors[0].doubtful and not state.late for state in states)
    assert {each.oldest for each in entries} >= {0, 2, 3}
    assert {each.rules_out for each in entries} == {frozenset(), REWRITER.staged}


def test_what_breaks_a_law_comes_with_the_shortest_way_there():
    assert tried([REWRITER, CLEANER], set(Rule) - {Rule.RULED_OUT_FIRST}).trace.splitlines() == [
        "rewriter writes stats for 3",
        "cleaner takes 'A again' for left behind",
        "rewriter creates 3",
        "cleaner deletes 'A again'",
        f"so {GONE}",
    ]
