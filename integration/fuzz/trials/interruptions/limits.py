"""A time limit that is raised at any return of a function, after the first file was written.

What a caller's time limit stops has to leave the table as it was, or as the whole call makes it,
and the same call completes it. The limit itself must reach the caller.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random

import zadapter
from integration.fuzz.trials.tally import Tally
from integration.migration.tables import FORMATS, Lakes, texts

ROOTS = tuple(
    str(Path(zadapter.__file__).parents[1] / folder) + "/" for folder in ("zadapter", "backends")
)
MOST = 40
"""Limits of a round of a case."""
Call = Callable[[Lakes, str], object]


class TimeLimit(Exception):  # noqa: N818 - such as those of Celery and of others
    """A time limit of the caller."""


class Returns:
    """Profiler that counts the returns of zadapter's functions, and raises at one of them."""

    def __init__(self, at: int = 0) -> None:
        self.at, self.last, self.count = at, dict[str, int](), 0
        self.counting = self.raised = False

    def __call__(self, frame, event: str, _argument: object) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(ROOTS):
            return
        if event == "call" and code.co_name in STARTS:
            self.counting = True
        if event == "return" and self.counting:
            self.count += 1
            self.last[f"{code.co_filename}:{code.co_qualname}"] = self.count
            if self.count == self.at:
                self.raised = True
                sys.setprofile(None)
                raise TimeLimit(f"{code.co_filename}:{code.co_qualname}, return {self.count}")


STARTS = {"write", "adopt", "publish_folder", "vacuum"}
"""Functions of backends with which the first file is written, moved or deleted."""


@contextmanager
def profiled(returns: Returns) -> Iterator[Returns]:
    """Run a block under a profiler."""

    def lost(_: object) -> None:
        # Python ignores what is raised where it closes a generator that nobody needs any more
        returns.raised = False

    before, sys.unraisablehook = sys.unraisablehook, lost
    sys.setprofile(returns)
    try:
        yield returns
    finally:
        sys.setprofile(None)
        sys.unraisablehook = before


def limits(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Stop each kind of call of each format at returns that are drawn."""
    for format_ in FORMATS:
        for name, call in CALLS.items():
            if format_ == "parquet" or name not in ROWS:
                Case(lakes, format_, name, call).run(draw, tally, max(1, round(MOST * scale)))


class Case:
    """A call on tables of one format, stopped again and again."""

    def __init__(self, lakes: Lakes, format_: str, name: str, call: Call) -> None:
        self.lakes, self.format, self.name, self.call = lakes, format_, name, call
        self.table = lakes.make(format_, rows(lakes, 0, 300), "p")
        if format_ == "parquet":
            optimize(lakes, self.table)

    def run(self, draw: Random, tally: Tally, number: int) -> None:
        """Stop the call at *number* returns, half of them the last of their function."""
        with profiled(Returns()) as whole:
            self.call(self.lakes, self.table)
        returns = [draw.randint(1, whole.count) for _ in range(number - number // 2)]
        last = sorted(whole.last.values())
        for at in [*returns, *draw.sample(last, min(len(last), number // 2))]:
            self.stop(tally, at)

    def stop(self, tally: Tally, at: int) -> None:
        """Stop the call at one return, and check the table and what the caller gets."""
        before, caught = self.read(), None
        try:
            with profiled(Returns(at)) as limit:
                self.call(self.lakes, self.table)
        except Exception as error:  # noqa: BLE001 - that of the caller, if all is well
            caught = error
        what = f"{self.format}, {self.name}: {caught}"
        if limit.raised and type(caught) is not TimeLimit:
            tally.failures.append(f"{what}: the limit was lost at return {at}")
        found = self.read()
        after = self.expected(before)
        state = before if found == before else after
        tally.compare(what, listed(state), listed(found), "row")
        self.call(self.lakes, self.table)
        tally.compare(
            f"{what}, and again", listed(self.expected(found)), listed(self.read()), "row"
        )

    def read(self) -> list[str]:
        return self.lakes.read(self.format, self.table)

    def expected(self, before: list[str]) -> list[str]:
        """Return the rows after a whole call."""
        change = ROWS.get(self.name)
        return before if change is None else sorted(change(before))


def listed(texts: list[str]) -> list[dict[str, object]]:
    """Return texts as rows; equal ones are numbered."""
    seen: dict[str, int] = {}
    found = []
    for text in texts:
        seen[text] = seen.get(text, 0) + 1
        found.append({"row": f"{text} {seen[text]}"})
    return found


def rows(lakes: Lakes, first: int, end: int):
    """Return rows with types that all formats support."""
    return lakes.spark.range(first, end).selectExpr(
        "id AS k", "int(id % 3) AS p", "concat('t', id) AS t", "IF(id % 7 = 0, NULL, id / 3) AS f"
    )


def said(lakes: Lakes, table: str) -> dict[str, object]:
    """Return the arguments by which all calls find a table."""
    format_ = "iceberg" if table.startswith("ice.") else None
    has_log = format_ is None and Path(table, "_delta_log").exists()
    return {"backend": format_ or ("delta" if has_log else "parquet"), "spark": lakes.spark}


def optimize(lakes: Lakes, table: str) -> None:
    """Rewrite all files."""
    zadapter.optimize(table, by="k", target_file_size="2KB", force=True, **said(lakes, table))


def migrate(lakes: Lakes, table: str, mode: str) -> None:
    """Migrate to a new table of another format, and call again if a limit has stopped it."""
    to = "delta" if table.startswith("ice.") else "iceberg"
    target, arguments = lakes.name(to), said(lakes, table)
    try:
        zadapter.migrate(table, to=to, target=target, mode=mode, **arguments)
    except TimeLimit:
        zadapter.migrate(table, to=to, target=target, mode=mode, **arguments)
        raise
    finally:
        if lakes.read(to, target) != lakes.read(str(arguments["backend"]), table):
            raise AssertionError(f"{target} differs from {table}")


CALLS: dict[str, Call] = {
    "optimize": optimize,
    "migrate": lambda lakes, table: migrate(lakes, table, "copy"),
    "migrate in place": lambda lakes, table: migrate(lakes, table, "in_place"),
    "append": lambda lakes, table: zadapter.append(
        table, rows(lakes, 300, 303), **said(lakes, table)
    ),
    "delete": lambda lakes, table: zadapter.delete(
        table, f"k = {min(map(key_of, lakes.read('parquet', table)))}", **said(lakes, table)
    ),
    "overwrite": lambda lakes, table: zadapter.overwrite(
        table, rows(lakes, 0, 300), **said(lakes, table)
    ),
    "publish": lambda lakes, table: (
        optimize(lakes, table),
        zadapter.publish(table, **said(lakes, table)),
    ),
    "vacuum": lambda lakes, table: (
        optimize(lakes, table),
        zadapter.vacuum(table, older_than=timedelta(0), dry_run=False, **said(lakes, table)),
    ),
}
ROWS: dict[str, Callable[[list[str]], list[str]]] = {
    "append": lambda before: before + texts_of(300, 303),
    "delete": lambda before: sorted(before, key=key_of)[1:],
    "overwrite": lambda _: texts_of(0, 300),
    "publish": lambda before: before,
    "vacuum": lambda before: before,
}
"""What calls for plain Parquet alone make of the rows."""


def key_of(text: str) -> int:
    """Return the key of a row as text."""
    return int(text.split("('k', '")[1].split("'", maxsplit=1)[0])


def texts_of(first: int, end: int) -> list[str]:
    """Return the rows of :func:`rows` as text."""
    return texts(
        [
            {"k": k, "p": k % 3, "t": f"t{k}", "f": None if k % 7 == 0 else k / 3}
            for k in range(first, end)
        ]
    )
