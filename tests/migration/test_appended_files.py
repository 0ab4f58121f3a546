"""Rows that were appended since a version, whatever commits without data change did to files."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from zadapter.errors import UnsupportedError
from zadapter.migration.appended_files import find_appended
from zadapter.migration.copy import Lot

State = dict[str, frozenset[int]]
"""Rows by file."""


class History:
    """A table's versions."""

    def __init__(self, first: State) -> None:
        self.states, self.rewrites = [first], list[tuple[int, int]]()
        self.files = self.rows = 1_000

    def append(self, rows: int) -> None:
        made = frozenset(range(self.rows, self.rows + rows))
        self.rows += rows
        self._commit({**self.states[-1], self._name(): made})

    def compact(self, files: Sequence[str]) -> None:
        state = dict(self.states[-1])
        joined = frozenset[int]().union(*(state.pop(name) for name in files))
        self._commit({**state, self._name(): joined})
        self.rewrites.append((len(self.states) - 2, len(self.states) - 1))

    def delete(self, file: str) -> None:
        self._commit({name: rows for name, rows in self.states[-1].items() if name != file})

    def lot(self, version: int) -> Lot:
        state = self.states[version]
        snapshot: Any = SimpleNamespace(
            table="t",
            version=version,
            rewritten=lambda since: [pair for pair in self.rewrites if pair[0] >= since],
        )
        files = {"path": list(state), "deletes": [None] * len(state), "rows": list(state.values())}
        table = pa.table(files | {"rows": [len(rows) for rows in state.values()]})
        return Lot(snapshot, table.cast(pa.schema([*SCHEMA])))

    def carried(self, since: int = 0) -> list[int]:
        """The rows that are carried, from files that the version of their lot has."""
        found = []
        for lot in find_appended(self.lot(since), self.lot(len(self.states) - 1), self.lot):
            state = self.states[lot.snapshot.version or 0]
            found += [row for path in lot.files["path"].to_pylist() for row in state[path]]
        return sorted(found)

    def _name(self) -> str:
        self.files += 1
        return f"f{self.files}"

    def _commit(self, state: State) -> None:
        self.states.append(state)


SCHEMA = pa.schema([("path", pa.string()), ("deletes", pa.string()), ("rows", pa.int64())])
FIRST: State = {"a": frozenset({1, 2}), "b": frozenset({3})}


def rows_of(state: State) -> list[int]:
    return sorted(row for rows in state.values() for row in rows)


@given(st.data())
def test_every_appended_row_is_carried_once(data):
    """Files may be joined any number of times, old ones with new ones as well."""
    history = History(FIRST)
    for _ in range(data.draw(st.integers(0, 8))):
        if data.draw(st.booleans()):
            history.append(data.draw(st.integers(1, 3)))
        else:
            names = sorted(history.states[-1])
            some = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
            history.compact(some)
    since = data.draw(st.integers(0, len(history.states) - 1))

    known = rows_of(history.states[since])
    assert sorted([*known, *history.carried(since)]) == rows_of(history.states[-1])


@given(st.data())
def test_a_change_of_data_is_refused_wherever_it_happened(data):
    """Whether a rewrite came before it or after it."""
    history = History(FIRST)
    steps = data.draw(st.permutations(["append", "compact", "delete", "compact"]))
    for step in steps:
        if step == "append":
            history.append(2)
            continue
        assume(names := sorted(history.states[-1]))
        if step == "compact":
            history.compact(data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True)))
        else:
            lost = data.draw(st.sampled_from(names))
            old = set(rows_of(FIRST))
            assume(history.states[-1][lost] & old)
            history.delete(lost)

    with pytest.raises(UnsupportedError, match="changes other than appends"):
        history.carried()


def test_what_is_still_live_is_read_in_the_newest_version():
    """Files of older versions may be deleted at any time."""
    history = History(FIRST)
    history.append(1)
    history.append(1)
    history.compact(["a", "f1001"])

    lots = find_appended(history.lot(0), history.lot(3), history.lot)

    assert [(lot.snapshot.version, lot.files["path"].to_pylist()) for lot in lots] == [
        (2, ["f1001"]),
        (3, ["f1002"]),
    ]


def test_rewrites_in_a_row_are_looked_at_once():
    """Each version in between would be a listing of all files."""
    history = History(FIRST)
    for name in ("a", "b", "f1001"):
        history.compact([name])
    looked: list[int] = []

    def at(version: int) -> Lot:
        looked.append(version)
        return history.lot(version)

    find_appended(history.lot(0), history.lot(3), at)

    assert looked == [0, 3]


def test_a_rewrite_that_lost_rows_is_refused():
    """It says that it changes no row, and the log knows better."""
    history = History(FIRST)
    history.compact(["a", "b"])
    history.states[-1] = {"f1001": frozenset({1})}

    with pytest.raises(UnsupportedError, match="states that it changes no row, but has 1 rows"):
        history.carried()
