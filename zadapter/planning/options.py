"""Options of ``optimize`` and ``plan``, with the checks that need no table and no Spark."""
# ruff: noqa: RUF009 - `_option` is `dataclasses.field` with the columns of the table

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import cached_property
from math import inf
from numbers import Integral, Real
from os import PathLike, fspath
from sys import float_info
from typing import Any, get_args

from zadapter.base.commit_attempts import Backoff
from zadapter.base.quantities import MOST_WEIGHT, age, is_weight, parse
from zadapter.errors import UsageError
from zadapter.layout.filters import Filter, Keys
from zadapter.layout.layout import Curve, Request
from zadapter.planning.cost import GivenPrices, Prices
from zadapter.planning.maintenance import Limits
from zadapter.planning.relearning import Relearning
from zadapter.planning.tiers import GivenTiers, TierAges, tier_ages

AUTO = "auto"
"""Value of ``target_file_size=`` that chooses a size from the table, and of ``by=`` that chooses
keys by a query log."""

ROW_GROUPS = 16
"""Target number of row groups in a written file, unless a caller states one."""

MAX_REBASE = 0.2
"""Share of the rows that a rewrite moves which others may delete meanwhile."""

VERIFICATIONS = ("counts", "checksum")
"""Values of ``verify=``."""

RENAMED = {
    "max_group_bytes": "max_job_bytes",
    "settle": "min_age",
    "widen_stats": "collect_stats",
}
"""Present names of options, by the names that older releases had."""

By = str | Sequence[str] | Mapping[str, float] | Keys
Check = Callable[[Any, str], object]
"""Raises :class:`UsageError` if no table can have a value; the text is the option's name."""


def check_table(table: object) -> str:
    """Return the name of a table as text.

    Raises:
        UsageError: *table* is neither text nor a path, or it is empty.
    """
    if not isinstance(table, (str, PathLike)) or not str(fspath(table)).strip():
        raise UsageError(f"{table!r} is not a table; pass a path or an identifier")
    return str(fspath(table))


def check_where(where: object, name: str = "where") -> None:
    """Check that a condition is text; None means that there is no condition.

    Args:
        where: The condition.
        name: The argument that has it, for errors.

    Raises:
        UsageError: The condition is not text, empty or not valid Unicode.
    """
    if where is None:
        return
    if not isinstance(where, str):
        raise UsageError(f"{name}= must be a SQL string, not {where!r}")
    if not where.strip():
        raise UsageError(f"the condition in {name}= is empty; omit it to select all rows")
    try:
        where.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{name}={where!r} is not valid Unicode: {error.reason}") from error


def check_deleted(where: object) -> None:
    """Check the condition of a delete, which must be stated.

    Raises:
        UsageError: There is no condition, or it is not text.
    """
    if not where or not str(where).strip():
        raise UsageError("where= is empty; pass where='true' to delete all rows")
    check_where(where)


def check_flags(**flags: object) -> None:
    """Check that options are True or False.

    Raises:
        UsageError: An option has another value.
    """
    for name, given in flags.items():
        _check_flag(given, name)


def check_version(version: object) -> None:
    """Check that *version* is a version number, a time or None.

    Raises:
        UsageError: It is something else.
    """
    valid = version is None or isinstance(version, (int, datetime))
    if isinstance(version, bool) or not valid:
        raise UsageError(f"version= must be an integer or a datetime, not {version!r}")


def _check_flag(given: object, name: str) -> None:
    if not isinstance(given, bool):
        raise UsageError(f"{name}= must be True or False, not {given!r}")


def _check_curve(given: object, _: str) -> None:
    choices = [known.value for known in Curve]
    if given not in choices:
        raise UsageError(f"unknown curve {given!r}; expected one of: {', '.join(choices)}")


def _check_file_size(given: object, name: str) -> None:
    if given != AUTO:
        parse(given, name)


def _check_row_groups(given: object, name: str) -> None:
    if not isinstance(given, Integral) or isinstance(given, bool):
        raise UsageError(f"{name}= must be an integer, not {given!r}")
    if given < 1:
        raise UsageError(f"{name}= must be at least 1, not {given}")


def _check_number(kind: type) -> Check:
    unit = "whole number" if kind is Integral else "number"

    def check(given: Any, name: str) -> None:
        is_number = isinstance(given, kind) and not isinstance(given, bool)
        if not is_number or not 0 < given < inf:
            raise UsageError(f"{name}= must be a {unit} above 0, not {given!r}")

    return check


def _check_share(given: Any, name: str) -> None:
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if not is_number or not 0 <= given <= 1:
        raise UsageError(f"{name}= must be a number from 0 to 1, not {given!r}")


def _check_verify(given: object, name: str) -> None:
    if given not in VERIFICATIONS:
        choices = ", ".join(VERIFICATIONS)
        raise UsageError(f"unknown {name}={given!r}; expected one of: {choices}")


def _check_backoff(given: object, name: str) -> None:
    if not isinstance(given, Backoff):
        raise UsageError(f"{name}= must be a zadapter.Backoff, not {given!r}")


def _check_queries(given: object, name: str) -> None:
    if isinstance(given, Real | Mapping) or (isinstance(given, str) and not given.strip()):
        raise UsageError(f"{name}= must be a list of texts, a path or a DataFrame, not {given!r}")


def _check_columns(given: Any, argument: str) -> list[str]:
    if hasattr(given, "best"):
        raise UsageError(f"{argument}= takes column names or the best of an advice; pass its .best")
    names = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for name in names:
        if not isinstance(name, str):
            raise UsageError(f"{argument}= must contain column names, not {name!r}")
    if len(set(names)) < len(names):
        kind = "key columns" if argument == "by" else f"columns in {argument}="
        raise UsageError(f"duplicate {kind}: {', '.join(names)}; pass each column once")
    return names


def _weights(by: Any, argument: str = "by") -> Mapping[str, float]:
    stated = by.weights if isinstance(by, Keys) else by
    if not isinstance(stated, Mapping):
        stated = dict.fromkeys(_check_columns(stated, argument), 1.0)
    if not stated:
        raise UsageError("no key columns; pass one to four columns that filters use")
    # a layout may have been stored by a release without a limit
    most = float_info.max if isinstance(by, Keys) else MOST_WEIGHT
    return {name: _weight(name, weight, most) for name, weight in stated.items()}


def _weight(name: Any, weight: Any, most: float) -> float:
    if not isinstance(name, str):
        raise UsageError(f"by= must contain column names, not {name!r}")
    if not is_weight(weight, most):
        raise UsageError(
            f"the weight of {name} in by= is {weight!r:.60}; pass a number above 0 and up to "
            f"{most:g}"
        )
    return float(weight)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What the table of options states of one, besides its name, type and default."""

    help: str
    """For docstrings and the command line."""
    check: Check
    """Checks a value other than a default of None."""
    metavar: str = ""
    """What the command line shows for the value; empty if there is none, as for a flag."""
    syntax: str = ""
    """How the value is written on the command line, if that differs."""
    choices: tuple[str, ...] = ()
    """All values, or those that have a name."""
    python_only: bool = False
    """Whether neither the command line nor a file of tables has the option."""


def _option(default: Any, help_: str, check: Check, metavar: str = "", **more: Any) -> Any:
    row = Row(help=help_, check=check, metavar=metavar, **more)
    return field(default=default, metadata={"row": row})


@dataclass(frozen=True, kw_only=True)
class Options:
    """The table of the options of ``optimize`` and ``plan``, and their values in one call.

    The command line, files of tables and the checks follow this table. A new option needs a row
    here, its place in the signatures and the docstring of :mod:`zadapter.api.optimize`, and its
    use.

    Raises:
        UsageError: An argument is invalid for every table.
    """

    table: str | PathLike[str]
    by: By | None = _option(
        None,
        "Key columns, or their weights. Defaults to the table's; without any, it is compacted.",
        _weights,
        "COLUMNS",
        syntax="Comma-separated, repeatable; one to four are useful. name=2 gives a column the "
        "weight 2, others have 1.",
    )
    queries: object = _option(
        None,
        "A query log, as for advise; by=auto takes the keys that suit it best.",
        _check_queries,  # it is read later, and `follow_queries` replaces it
        "PATH",
    )
    bloom_filters: Sequence[str] | None = _option(
        None,
        "Columns with a Bloom filter in each row group. Defaults to the table's.",
        _check_columns,
        "COLUMNS",
        syntax="Comma-separated; repeatable; '' for none.",
    )
    where: str | None = _option(
        None,
        "A SQL condition. Files that cannot hold a matching row are not rewritten.",
        check_where,
        "SQL",
    )
    curve: str = _option(
        Curve.ADAPTIVE.value,
        "Shape of the layout: adaptive, zorder, hilbert or linear.",
        _check_curve,
        "NAME",
        choices=tuple(curve.value for curve in Curve),
    )
    target_file_size: str | int = _option(
        AUTO,
        "Size of written files, such as 128MB; auto chooses it from the table.",
        _check_file_size,
        "SIZE",
    )
    row_groups: int = _option(
        ROW_GROUPS,
        "Target number of row groups in a written file.",
        _check_row_groups,
        "N",
    )
    max_job_bytes: str | int = _option(
        "256GB",
        "Maximum bytes of a job; larger partitions are clustered box by box.",
        parse,
        "SIZE",
    )
    max_bytes: str | int | None = _option(
        None,
        "Maximum bytes of the files that a call rewrites; the next call continues.",
        parse,
        "SIZE",
    )
    max_files: int | None = _option(
        None,
        "Maximum number of files that a call rewrites; the next call continues.",
        _check_number(Integral),
        "N",
    )
    max_seconds: float | None = _option(
        None,
        "Time after which no further job starts; at least one job runs.",
        _check_number(Real),
        "SECONDS",
    )
    max_concurrent_jobs: int = _option(
        1,
        "Number of jobs that run side by side; each needs memory of its own.",
        _check_number(Integral),
        "N",
    )
    min_age: str | timedelta | None = _option(
        None,
        "Age, such as 10 minutes; younger files are skipped.",
        lambda given, name: age(given, f"{name}="),
        "AGE",
    )
    tiers: GivenTiers | None = _option(
        None,
        "Ages of a column's values: hot files are skipped, cold ones become larger.",
        lambda given, _: tier_ages(given),
        "COLUMN:AGES",
        syntax="Such as day:hot=2d,warm=30d.",
    )
    collect_stats: bool = _option(
        False,  # noqa: FBT003 - a default
        "Collect stats of key columns that have none, by a table property.",
        _check_flag,
    )
    force: bool = _option(
        False,  # noqa: FBT003 - a default
        "Fit new cuts, also to files that are clustered or predicted to gain nothing.",
        _check_flag,
    )
    verify: str = _option(
        "counts",
        "counts compares row counts; checksum all values, with one more read.",
        _check_verify,
        "HOW",
        choices=VERIFICATIONS,
    )
    max_rebase: float = _option(
        MAX_REBASE,
        "Largest share of the rows of replaced files that may leave them during the call.",
        _check_share,
        "SHARE",
    )
    price: GivenPrices | None = _option(
        None,
        "Prices, such as put=0.005,core_hour=0.05; the report has the sum.",
        lambda given, _: Prices.of(given),
        "PRICES",
        syntax="Names: put and get, of 1 000 requests; gb_read; core_hour.",
    )
    backoff: Backoff | None = _option(
        None,
        "Retry policy for commits that lose a race. Defaults to Backoff().",
        _check_backoff,
        python_only=True,
    )

    relearning: Relearning | None = None
    """Whether a query log has changed the table's layout; None: it was not asked."""
    by_log: bool = False
    """Whether a query log has decided the key columns."""
    unchosen: str = ""
    """Why a query log has chosen no layout; empty: it has, or was not asked."""

    def __post_init__(self) -> None:
        check_table(self.table)
        for name in ("by", "bloom_filters"):  # an iterator is read once, and a plan is pickled
            given = getattr(self, name)
            if isinstance(given, Iterable) and not isinstance(given, Sequence | Mapping | Keys):
                object.__setattr__(self, name, tuple(given))
        for name in OPTIONS:
            check_option(name, getattr(self, name))
        self._check_log()
        if self.filters and self.curve != Curve.ADAPTIVE.value:
            raise UsageError(
                f"curve={self.curve!r} cannot be fitted to filters; omit curve=, or pass names of "
                "columns in by="
            )
        if self.by is None and self._stated:
            raise UsageError("curve= and row_groups= without by= have no effect; pass by= as well")
        limits = (self.max_bytes, self.max_files, self.max_seconds, self.min_age, self.tiers)
        if self.force and limits != (None,) * 5:
            raise UsageError(
                "force= rewrites every file; omit max_bytes=, max_files=, max_seconds=, min_age= "
                "and tiers="
            )

    def _check_log(self) -> None:
        """Check that there is a query log if it decides the keys, and only then.

        Raises:
            UsageError: It is missing, or has no effect.
        """
        if self.queries is not None and self.by != AUTO:
            raise UsageError("queries= has an effect with by='auto' only; omit one of them")
        if self.queries is None and self.by == AUTO:
            raise UsageError(
                "by='auto' needs queries= (--queries); pass a query log, or by=['auto'] "
                "(--by auto=1) for a column of this name"
            )

    def with_advice(self, keys: Keys | None, bloom_filters: Sequence[str]) -> "Options":
        """Return the options with what a query log asks for, instead of the log.

        Args:
            keys: Key columns; None: no layout suits the log, so those of the caller have no effect.
            bloom_filters: Columns with Bloom filters, unless the caller states them; none: those of
                the table stay.
        """
        found = self.with_bloom_filters(bloom_filters)
        if keys is not None:
            return replace(found, by=keys, queries=None, by_log=True)
        unchosen, stated = UNCHOSEN, " and ".join(f"{name}=" for name in self._stated)
        if stated:
            unchosen += f", and {stated} without one {'have' if ' ' in stated else 'has'} no effect"
        plain: dict[str, Any] = {name: default_of(name) for name in _OF_LAYOUT}
        return replace(found, by=None, queries=None, unchosen=unchosen, **plain)

    def with_bloom_filters(self, columns: Sequence[str]) -> "Options":
        """Return the options with Bloom filters, unless the caller states others; none: as is."""
        stated = self.bloom_filters is not None or not columns
        return self if stated else replace(self, bloom_filters=columns)

    def with_layout(self, request: Request) -> "Options":
        """Return the options with the key columns of a layout, and what else is not stated.

        Raises:
            UsageError: The layout cannot have the stated curve.
        """
        known: dict[str, Any] = {"curve": request.curve.value, "row_groups": request.row_groups}
        return replace(
            self,
            by=request.keys,
            queries=None,
            by_log=self.by == AUTO,
            **{name: value for name, value in known.items() if name not in self._stated},
        )

    @property
    def is_for_table(self) -> bool:
        """Whether the layout is meant for the whole table, and not for a part of it.

        Also a query log that decides the keys does so for the whole table.
        """
        return self.where is None or self.by_log

    @property
    def _stated(self) -> tuple[str, ...]:
        """Names of the options that only a layout has, as far as the caller states them."""
        return tuple(name for name in _OF_LAYOUT if getattr(self, name) != default_of(name))

    @property
    def name(self) -> str:
        """The table's path or identifier, as text."""
        return check_table(self.table)

    @cached_property
    def file_bytes(self) -> int | None:
        """``target_file_size`` in bytes; None: it is chosen from the table."""
        size = self.target_file_size
        return None if size == AUTO else parse(size, "target_file_size")

    @cached_property
    def job_bytes(self) -> int:
        """``max_job_bytes`` in bytes."""
        return parse(self.max_job_bytes, "max_job_bytes")

    @cached_property
    def limits(self) -> Limits:
        """The limits of one call."""
        return Limits(
            job_bytes=self.job_bytes,
            bytes=None if self.max_bytes is None else parse(self.max_bytes, "max_bytes"),
            files=self.max_files,
        )

    @cached_property
    def least_age(self) -> timedelta | None:
        """Age below which files are left alone; None: all files may be rewritten."""
        return None if self.min_age is None else age(self.min_age, "min_age=")

    @cached_property
    def tier_ages(self) -> TierAges | None:
        """Ages up to which files are hot and warm; None if there are no tiers."""
        return None if self.tiers is None else tier_ages(self.tiers)

    @cached_property
    def prices(self) -> Prices | None:
        """Prices of requests, bytes and core hours; None: the caller states none."""
        return None if self.price is None else Prices.of(self.price)

    @cached_property
    def filtered_columns(self) -> tuple[str, ...]:
        """Names of the columns with Bloom filters, as far as they are stated."""
        return (
            ()
            if self.bloom_filters is None
            else tuple(_check_columns(self.bloom_filters, "bloom_filters"))
        )

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """Weights of the key columns, by name."""
        return _weights(self.by)

    @property
    def filters(self) -> tuple[Filter, ...]:
        """Filters that the layout is fitted to."""
        return self.by.filters if isinstance(self.by, Keys) else ()


_OF_LAYOUT = ("curve", "row_groups")
UNCHOSEN = (
    "no layout lets queries like those of the log read far fewer rows by file, and no more by row "
    "group, so none is chosen"
)
"""What :attr:`Options.unchosen` says if no layout suits a log."""
OPTIONS: Mapping[str, Row] = {
    each.name: each.metadata["row"] for each in fields(Options) if "row" in each.metadata
}
"""The table of options, by name."""
KEYWORDS = tuple(name for name, row in OPTIONS.items() if not row.python_only)
"""Names of the options that the command line and files of tables have."""
OLD_KEYWORDS = {old: f"was renamed; write {new!r}" for old, new in RENAMED.items()}
"""What to write instead of the names that older releases had."""


def default_of(name: str) -> Any:
    """Return the default of an option."""
    return getattr(Options, name)


def plain_type(annotation: Any) -> type:
    """Return bool, int or float if an annotation is such a type and allows no text, else str."""
    types = {annotation, *get_args(annotation)}
    numbers = [] if str in types else [kind for kind in (bool, int, float) if kind in types]
    return numbers[0] if numbers else str


def check_option(name: str, given: object) -> None:
    """Check the value of an option by itself.

    Raises:
        UsageError: No table can have this value.
    """
    if given is not None or default_of(name) is not None:
        OPTIONS[name].check(given, name)


def check_layout(curve: object, target_file_size: object, row_groups: object) -> None:
    """Check the options of a layout that need no table.

    Raises:
        UsageError: The curve is unknown, or a size or a number is invalid.
    """
    check_option("curve", curve)
    check_option("target_file_size", target_file_size)
    check_option("row_groups", row_groups)
