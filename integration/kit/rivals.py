"""Two rivals of one rewrite, and the rows that a serial order results in."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from zadapter.base.commit_attempts import Backoff
from zadapter.errors import ConflictError, DataFileError, ForeignChangeError, VerificationError

ROWS = 400
PLACES = ("attempts", "jobs", "within")
"""When the second rival acts, after a first one before the first commit: between two attempts,
between the commits of two jobs, or after the backend has staged its commit."""
AT_ONCE = Backoff(attempts=4, initial=0.0)

Rows = dict[int, tuple[int, int]]
"""Columns b and c by column a, which is unique."""


@dataclass(frozen=True, kw_only=True)
class Rival:
    """Change of a table by another program.

    Attributes:
        act: Called with the lake, the table and the rival's number, 0 or 1.
        effect: Called with the current rows, those of the table's first version, and the number;
            returns the new rows. None: the rows stay.
        may_fail: Whether the format may refuse it after another rival.
        cleans: Whether it may delete uncommitted files.
        makes: Whether its result becomes the table's first version.
    """

    act: Callable
    effect: Callable | None = None
    may_fail: bool = False
    cleans: bool = False
    makes: bool = False


def rows_of(numbers):
    return {a: (a % 2, a) for a in numbers}


FIRST = rows_of(range(ROWS))


def source(start, stop):
    return f"SELECT id AS a, id % 2 AS b, id AS c FROM range({start}, {stop})"


def statement(text):
    """Return an action that runs SQL; {t} is the table, {n} and {k} are the rival's own numbers."""
    return lambda lake, table, n: lake.sql(
        text.format(t=lake.called(table), n=n, k=1_000 * (n + 1))
    )


MERGE = """
    MERGE INTO {t} AS t USING (SELECT id AS a FROM range(395, 405)) AS s ON t.a = s.a
    WHEN MATCHED THEN UPDATE SET c = -{n} - 1
    WHEN NOT MATCHED THEN INSERT (a, b, c) VALUES (s.a, s.a % 2, s.a)
"""


def appended(rows, first, n):
    return rows | rows_of(range(1_000 * (n + 1), 1_000 * (n + 1) + 3))


def deleted(rows, first, n):
    return {a: rest for a, rest in rows.items() if a % 10 != 3 + n}


def updated(rows, first, n):
    return {a: (b, c + 10_000 if a % 10 == 5 + n else c) for a, (b, c) in rows.items()}


def merged(rows, first, n):
    here = {a: (rows[a][0], -n - 1) if a in rows else (a % 2, a) for a in range(395, 405)}
    return rows | here


def overwritten(rows, first, n):
    return rows_of(range(1_000 * (n + 1), 1_000 * (n + 1) + 50))


SHARED = {
    "append": Rival(
        act=statement("INSERT INTO {t} (a, b, c) SELECT id, id % 2, id FROM range({k}, {k} + 3)"),
        effect=appended,
    ),
    "delete": Rival(act=statement("DELETE FROM {t} WHERE a % 10 = 3 + {n}"), effect=deleted),
    "update": Rival(
        act=statement("UPDATE {t} SET c = c + 10000 WHERE a % 10 = 5 + {n}"), effect=updated
    ),
    "merge": Rival(act=statement(MERGE), effect=merged),
    "overwrite": Rival(
        act=statement(
            "INSERT OVERWRITE {t} (a, b, c) SELECT id, id % 2, id FROM range({k}, {k} + 50)"
        ),
        effect=overwritten,
    ),
    "add column": Rival(act=statement("ALTER TABLE {t} ADD COLUMN d{n} int")),
    "rewrite": Rival(act=lambda lake, table, n: lake.optimize(table, by=["c"])),
}
"""Rivals of Delta and Iceberg."""


@dataclass(frozen=True)
class Trial:
    """Two rivals, and when the second one acts."""

    place: str
    first: str
    second: str

    def __str__(self):
        return f"{self.place}: {self.first}, {self.second}"


def trials(rivals):
    """Return all combinations of a place and two rivals."""
    return [Trial(*each) for each in product(PLACES, rivals, rivals)]


class Stage:
    """Table, its rivals, and its expected rows."""

    def __init__(self, lake, table, rivals):
        self.lake, self.table, self.rivals = lake, table, rivals
        self.rows = self.first = FIRST

    def enter(self, name, number):
        """Run a rival, and apply its effect to the expected rows."""
        rival = self.rivals[name]
        try:
            rival.act(self.lake, self.table, number)
        except Exception:
            if not rival.may_fail:
                raise
            return
        if rival.effect is not None:
            self.rows = rival.effect(self.rows, self.first, number)
        if rival.makes:
            self.first = self.rows


class Rivalry:
    """Runs each of two rivals once."""

    def __init__(self, trial, stage, module, monkeypatch):
        self.trial, self.stage, self.module, self.patch = trial, stage, module, monkeypatch
        self.look, self.ids, self.waiting = module.check_present, [], [trial.second]

    def second(self):
        if self.waiting:
            self.stage.enter(self.waiting.pop(), 1)

    def before(self, commit_id):
        """Run the rivals that are due before a commit, whose files are written."""
        known = list(self.ids)
        self.ids.append(commit_id)
        if not known:
            self.stage.enter(self.trial.first, 0)
            if self.trial.place == "attempts":
                raise ConflictError("the race is lost")
        elif self.trial.place == "attempts" or commit_id not in known:
            self.second()
        if self.trial.place == "within":
            self.patch.setattr(self.module, "check_present", self.within)

    def within(self, *arguments):
        """Run the second rival within a commit, before its last check of the files."""
        self.patch.setattr(self.module, "check_present", self.look)
        self.second()
        self.look(*arguments)


def run(lake, table, trial, rivals, how, monkeypatch):
    """Optimize among two rivals, and compare the rows with those of a serial order.

    Args:
        lake: Lake of the table's format.
        table: Table with the rows ``FIRST``.
        trial: The rivals, and when they act.
        rivals: All rivals by name.
        how: Backend, and its module that checks files before a commit.
        monkeypatch: Pytest's fixture.
    """
    stage = Stage(lake, table, rivals)
    more = {"max_job_bytes": "1KB"} if trial.place == "jobs" else {}
    cleans = any(rivals[name].cleans for name in (trial.first, trial.second))
    backend, module = how
    rivalry = Rivalry(trial, stage, module, monkeypatch)

    class Interrupted(backend):
        def commit(self, rewrite):
            rivalry.before(rewrite.id)
            return super().commit(rewrite)

    try:
        lake.optimize(table, backend=Interrupted, backoff=AT_ONCE, **more)
    except ConflictError:
        pass
    except (VerificationError, DataFileError, ForeignChangeError):
        assert cleans  # files were deleted during the read
    monkeypatch.undo()
    assert lake.values(table) == stage.rows
    # the result can be clustered
    lake.optimize(table)
    assert lake.values(table) == stage.rows


def by_key(table):
    """Return the rows of an Arrow table by column a."""
    found = table.select(["a", "b", "c"]).to_pylist()
    assert len({row["a"] for row in found}) == len(found), "rows are there twice"
    return {row["a"]: (row["b"], row["c"]) for row in found}
