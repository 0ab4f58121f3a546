"""State machine of the commit protocol of plain Parquet tables, searched exhaustively.

A step is one access to the store. The following need no steps of their own:

* Death. A dead actor never takes another turn, and laws hold in every state. The same applies to
  actors that receive an unknown outcome or find nothing to do.
* Lost answers. A late request may arrive immediately, and a request that never arrives stays late.
* Planning. Writers have planned and staged on the first head; planning later equals a rebase.
* Losing. An actor whose version was taken changes nothing before its next read, so it reads next.
  Stats that were written for that version only are left out.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import NamedTuple

Names = frozenset[str]


class Rule(Enum):
    """Rule of the protocol."""

    ONE_CREATOR = "an entry is created only where there is none"
    READ_BACK = "who was not told that the entry was created looks whose it is"
    DECIDED_FIRST = "the next version is claimed only when this one is somebody's"
    DOUBT_KEEPS = "after an unknown outcome nothing is discarded"
    DOUBT_LASTS = "a later attempt does not end the doubt about an earlier one"
    REFUSAL_PROVES_NOTHING = "a request that is refused tells nothing of those before it"
    LIVE_ONLY = "a change is rebased only while the files that go are live"
    RULED_OUT_FIRST = "staged files are deleted only after their commit was ruled out"
    RULED_OUT_SURELY = "staged files stay while it is unknown whether their commit was ruled out"
    LANDED_STAYS = "a commit that has landed is not ruled out"
    OBEYED = "a commit that was ruled out is not tried again"
    EXPIRED_FIRST = "versions expire before what they need is deleted"
    EXPIRED_FOR_GOOD = "a version that has expired stays so"
    LOOKED_AFTERWARDS = "what nobody needs is found out after the versions have expired"
    SHARED = "what younger versions need, too, is not deleted"
    ONE_HEAD = "what may be restored is asked of the version that the restore follows"
    FRESH_NAMES = "stats are never written under a name that was used before"


@dataclass(frozen=True, eq=False)
class Entry:
    """Version. :func:`entry` creates it, so equal versions are identical and fast to compare."""

    version: int
    by: str
    live: Names
    stats: str
    oldest: int = 0
    commits: Names = frozenset()
    rules_out: Names = frozenset()


entry = cache(Entry)
HISTORY = (
    entry(0, "registration", frozenset("A"), "stats A"),
    entry(1, "first writer", frozenset("AB"), "stats AB"),
    entry(2, "second writer", frozenset("ABC"), "stats ABC"),
)
CLAIMING = {"write_stats", "check", "create", "read"}
ENDS = {"landed", "nothing", "done"}


class Actor(NamedTuple):
    """Position and memory of an actor."""

    step: str
    base: int = 0
    """Version that its claim follows."""
    sent: bool = False
    """Whether a request of its claim got no answer."""
    doubtful: bool = False
    """Whether an earlier claim ended without an answer."""
    refused: bool = False
    oldest: int = 0
    doomed: tuple[str, ...] = ()

    def to(self, step: str, **memory) -> "Actor":
        """Return the actor at *step*, without the memory that only a claim needs."""
        if step in ENDS:
            return Actor(step)
        if step in CLAIMING:
            return self._replace(step=step, **memory)
        forgetful = Actor(step, doubtful=self.doubtful, oldest=self.oldest, doomed=self.doomed)
        return forgetful._replace(**memory)


class State(NamedTuple):
    """State of the log, the store, the requests and the actors."""

    log: tuple[Entry | None, ...]
    store: Names
    """Existing data files and stats."""
    late: frozenset[Entry]
    """Entries whose creation was requested, and may still happen."""
    actors: tuple[Actor, ...]


Moves = Iterator[tuple[str, State]]


class Turn(NamedTuple):
    """Turn of one actor."""

    machine: "Machine"
    state: State
    number: int

    @property
    def me(self) -> Actor:
        return self.state.actors[self.number]

    @property
    def head(self) -> Entry:
        return self.state.log[-1]

    @property
    def there(self) -> Entry | None:
        """Entry at the version that the actor claims."""
        return next(iter(self.state.log[self.me.base + 1 :]), None)

    def holds(self, rule: Rule) -> bool:
        return rule in self.machine.rules

    def to(self, step: str, state: State | None = None, **memory) -> State:
        """Return *state*, by default the current one, with the actor at *step*."""
        log, store, late, actors = state or self.state
        me = actors[self.number].to(step, **memory)
        return State(log, store, late, _with(actors, self.number, me))


def _with(old: tuple, at: int, new: object) -> tuple:
    return (*old[:at], *(None,) * (at - len(old)), new, *old[at + 1 :])


class Machine:
    """All possible moves of the actors under *rules*."""

    def __init__(self, roles: Iterable["Role"], rules: Iterable[Rule] = Rule) -> None:
        self.roles, self.rules = tuple(roles), frozenset(rules)

    def start(self) -> State:
        """Return the state after all writers have planned and staged."""
        staged = {file for role in self.roles for file in role.staged}
        store = {*HISTORY[-1].live, *(each.stats for each in HISTORY)} | staged
        actors = tuple(Actor(role.first, base=HISTORY[-1].version) for role in self.roles)
        return State(HISTORY, frozenset(store), frozenset(), actors)

    def moves(self, state: State) -> Moves:
        """Yield the possible next moves, and the states that they lead to."""
        for each in state.late:
            yield f"{each.by}'s request for {each.version} arrives", self.put(state, each)
        for number, (role, me) in enumerate(zip(self.roles, state.actors, strict=True)):
            if me.step not in ENDS:
                for what, then in getattr(role, me.step)(Turn(self, state, number)):
                    yield f"{role.name} {what}", then

    def put(self, state: State, new: Entry) -> State:
        """Commit *new*; other actors that claim its version lose."""
        log, store, late, actors = state
        log = _with(log, new.version, new)
        if Rule.ONE_CREATOR not in self.rules:
            return State(log, store, late - {new}, actors)
        late = frozenset(each for each in late if each.version != new.version)
        store -= {f"stats {new.version} of {role.name}" for role in self.roles} - {new.stats}
        for at, (role, me) in enumerate(zip(self.roles, actors, strict=True)):
            if me.step in CLAIMING and me.base + 1 == new.version and role.name != new.by:
                actors = _with(actors, at, me.to(role.lost))
        return State(log, store, late, actors)


@dataclass(frozen=True)
class Role:
    """Behavior of an actor. All roles claim versions alike, each with its own ``entry``."""

    name: str

    first, won, lost = "", "landed", ""
    """First step, and the steps after a successful and a failed claim."""
    staged = frozenset()

    def claimed(self, turn: Turn) -> Entry:
        """Return the entry that the actor claims."""
        version = turn.me.base + 1
        return self.entry(turn, version, turn.state.log[:version][-1])

    def create(self, turn: Turn) -> Moves:
        """Send the request, which arrives with or without answer, arrives late, or never."""
        new, state = self.claimed(turn), turn.state
        unclear = "read" if turn.holds(Rule.READ_BACK) else self.lost
        if turn.there is None or not turn.holds(Rule.ONE_CREATOR):
            yield f"creates {new.version}", turn.to(self.won, turn.machine.put(state, new))
            state = state._replace(late=state.late | {new})
        else:
            yield f"is told that {new.version} is there", turn.to(unclear)
        sent = unclear == "read" and not turn.me.doubtful  # one doubt is enough
        yield f"has no answer about {new.version}", turn.to(unclear, state, sent=sent)

    def read(self, turn: Turn) -> Moves:
        """Read the claimed version."""
        there, version = turn.there, turn.me.base + 1
        if there is not None:
            then = self.won if there.by == self.name else self.lost
            yield f"finds {there.by}'s {version}", turn.to(then)
            return
        yield f"finds no {version}, and tries again", turn.to("create")
        if not turn.holds(Rule.DECIDED_FIRST):
            yield f"finds no {version}, and goes on", turn.to("create", base=version)

    def follow(self, turn: Turn) -> Moves:
        yield f"follows {turn.head.version}", turn.to("create", base=turn.head.version)

    def delete(self, turn: Turn) -> Moves:
        file, *left = turn.me.doomed
        state = turn.state._replace(store=turn.state.store - {file})
        yield f"deletes {file!r}", turn.to("delete" if left else "done", state, doomed=tuple(left))


class Found(NamedTuple):
    """Result of a search: the broken law, if any, the shortest path to it, and all states."""

    law: str | None
    trace: str
    states: dict[State, tuple[State, str] | None]


def search(machine: Machine, broken: Callable[[State], str | None]) -> Found:
    """Search all orders of moves, breadth first, until a law breaks."""
    start = machine.start()
    came, queue = {start: None}, deque([start])
    while queue:
        state = queue.popleft()
        for what, then in machine.moves(state):
            law = None if then.log[: len(state.log)] == state.log else "an entry has changed"
            if law is None and then in came:
                continue
            if law := law or broken(then):
                return Found(law, "\n".join([*_way_to(came, state), what, f"so {law}"]), came)
            came[then] = state, what
            queue.append(then)
    return Found(None, "", came)


def _way_to(came, state):
    return [] if came[state] is None else [*_way_to(came, came[state][0]), came[state][1]]
