"""Options of ``optimize`` and ``plan``, with the checks that need no table and no Spark."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import cached_property, wraps
from math import inf
from numbers import Integral, Real
from os import PathLike, fspath
from typing import Any, ParamSpec, TypeVar

from zadapter.base.ages import age
from zadapter.base.commit_attempts import Backoff
from zadapter.base.sizes import parse
from zadapter.errors import UsageError
from zadapter.layout.filters import Filter, Keys
from zadapter.layout.layout import Curve
from zadapter.planning.cost import GivenPrices, Prices
from zadapter.planning.maintenance import Limits
from zadapter.planning.tier_ages import GivenTiers, TierAges, tier_ages

AUTO = "auto"
"""Value of ``target_file_size=`` that chooses a size from the table, and of ``by=`` that chooses
keys by a query log."""

ROW_GROUPS = 16
"""Target number of row groups in a written file, unless a caller states one."""

VERIFICATIONS = ("counts", "checksum")
"""Values of ``verify=``."""

RENAMED = {
    "max_group_bytes": "max_job_bytes",
    "settle": "min_age",
    "widen_stats": "collect_stats",
}
"""Present names of options, by the names that older releases had."""

By = str | Sequence[str] | Mapping[str, float] | Keys
P = ParamSpec("P")
R = TypeVar("R")


def refuse_old_names(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function so that a keyword with an old name raises an error with the new one.

    The signature stays, so type checkers and editors know the present names only.
    """

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for name in kwargs.keys() & RENAMED.keys():
            raise UsageError(f"{name}= was renamed; pass {RENAMED[name]}=")
        return function(*args, **kwargs)

    return checked


def named(table: object) -> str:
    """Return the name of a table as text.

    Raises:
        UsageError: *table* is neither text nor a path, or it is empty.
    """
    if not isinstance(table, (str, PathLike)) or not str(fspath(table)).strip():
        raise UsageError(f"{table!r} is not a table; pass a path or an identifier")
    return str(fspath(table))


def check_layout(curve: object, target_file_size: object, row_groups: object) -> None:
    """Check the options of a layout that need no table.

    Raises:
        UsageError: The curve is unknown, or a size or a number is invalid.
    """
    choices = [known.value for known in Curve]
    if curve not in choices:
        raise UsageError(f"unknown curve {curve!r}; expected one of: {', '.join(choices)}")
    if not isinstance(row_groups, Integral) or isinstance(row_groups, bool):
        raise UsageError(f"row_groups= must be an integer, not {row_groups!r}")
    if row_groups < 1:
        raise UsageError(f"row_groups= must be at least 1, not {row_groups}")
    if target_file_size != AUTO:
        parse(target_file_size, "target_file_size")


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
        if not isinstance(given, bool):
            raise UsageError(f"{name}= must be True or False, not {given!r}")


def check_version(version: object) -> None:
    """Check that *version* is a version number, a time or None.

    Raises:
        UsageError: It is something else.
    """
    valid = version is None or isinstance(version, (int, datetime))
    if isinstance(version, bool) or not valid:
        raise UsageError(f"version= must be an integer or a datetime, not {version!r}")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Arguments of ``optimize`` and ``plan``, as the caller passed them.

    Raises:
        UsageError: An argument is invalid for every table.
    """

    table: str | PathLike[str]
    by: By | None = None
    queries: object = None
    """A query log, which is read before the rewrite is planned; :meth:`advised` replaces it."""
    bloom_filters: Sequence[str] | None = None
    where: str | None = None
    curve: str = "adaptive"
    target_file_size: str | int = AUTO
    row_groups: int = ROW_GROUPS
    max_job_bytes: str | int = "256GB"
    max_bytes: str | int | None = None
    max_files: int | None = None
    max_seconds: float | None = None
    max_concurrent_jobs: int = 1
    min_age: str | timedelta | None = None
    tiers: GivenTiers | None = None
    collect_stats: bool = False
    force: bool = False
    verify: str = "counts"
    price: GivenPrices | None = None
    backoff: Backoff = field(default_factory=Backoff)

    def __post_init__(self) -> None:
        check_flags(collect_stats=self.collect_stats, force=self.force)
        if not isinstance(self.backoff, Backoff):
            raise UsageError(f"backoff= must be a zadapter.Backoff, not {self.backoff!r}")
        named(self.table)
        check_where(self.where)
        check_layout(self.curve, self.target_file_size, self.row_groups)
        if self.verify not in VERIFICATIONS:
            choices = ", ".join(VERIFICATIONS)
            raise UsageError(f"unknown verify={self.verify!r}; expected one of: {choices}")
        if self.queries is not None and self.by != AUTO:
            raise UsageError("queries= has an effect with by='auto' only; omit one of them")
        if self.filters and self.curve != Curve.ADAPTIVE.value:
            raise UsageError(
                f"curve={self.curve!r} cannot be fitted to filters; omit curve=, or pass names of "
                "columns in by="
            )
        if self.by is not None:
            _ = self.weights
        elif (self.curve, self.row_groups) != (Curve.ADAPTIVE.value, ROW_GROUPS):
            raise UsageError("curve= and row_groups= without by= have no effect; pass by= as well")
        _ = self.limits, self.least_age, self.tier_ages, self.filtered_columns, self.prices
        limits = (self.max_bytes, self.max_files, self.max_seconds, self.min_age, self.tiers)
        if self.force and limits != (None,) * 5:
            raise UsageError(
                "force= rewrites every file; omit max_bytes=, max_files=, max_seconds=, min_age= "
                "and tiers="
            )

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "Options":
        """Return the options among the arguments of a public function, by their names."""
        return cls(**{f.name: arguments[f.name] for f in fields(cls) if f.name in arguments})

    def advised(self, keys: Keys | None, bloom_filters: Sequence[str]) -> "Options":
        """Return the options with what a query log asks for, instead of the log.

        Args:
            keys: Key columns; None: those of the table stay, with its curve and row groups.
            bloom_filters: Columns with Bloom filters, unless the caller states them; none: those of
                the table stay.
        """
        filtered = self.bloom_filters
        if filtered is None and bloom_filters:
            filtered = bloom_filters
        stays = keys is None
        return replace(
            self,
            by=keys,
            queries=None,
            bloom_filters=filtered,
            curve=Curve.ADAPTIVE.value if stays else self.curve,
            row_groups=ROW_GROUPS if stays else self.row_groups,
        )

    @property
    def name(self) -> str:
        """The table's path or identifier, as text."""
        return named(self.table)

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
        _check_number("max_concurrent_jobs", self.max_concurrent_jobs, Integral)
        _check_number("max_files", self.max_files, Integral)
        _check_number("max_seconds", self.max_seconds, Real)
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
        """Ages up to which files are hot and warm; None: there are no tiers."""
        return None if self.tiers is None else tier_ages(self.tiers)

    @cached_property
    def prices(self) -> Prices | None:
        """Prices of requests, bytes and core hours; None: the caller states none."""
        return None if self.price is None else Prices.of(self.price)

    @cached_property
    def filtered_columns(self) -> tuple[str, ...]:
        """Names of the columns with Bloom filters, as far as they are stated."""
        return tuple(
            _listed(() if self.bloom_filters is None else self.bloom_filters, "bloom_filters")
        )

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """Weights of the key columns, by name."""
        stated = self.by.weights if isinstance(self.by, Keys) else self.by
        by = stated if isinstance(stated, Mapping) else dict.fromkeys(_listed(stated, "by"), 1.0)
        if not by:
            raise UsageError("no key columns; pass one to four columns that filters use")
        return {name: _weight(name, weight) for name, weight in by.items()}

    @property
    def filters(self) -> tuple[Filter, ...]:
        """Filters that the layout is fitted to."""
        return self.by.filters if isinstance(self.by, Keys) else ()


def _check_number(name: str, given: object, kind: type) -> None:
    is_number = isinstance(given, kind) and not isinstance(given, bool)
    if given is not None and not (is_number and 0 < given < inf):  # type: ignore[operator]
        unit = "whole number" if kind is Integral else "number"
        raise UsageError(f"{name}= must be a {unit} above 0, not {given!r}")


def _listed(given: Any, argument: str) -> list[str]:
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


def _weight(name: Any, weight: Any) -> float:
    if not isinstance(name, str):
        raise UsageError(f"by= must contain column names, not {name!r}")
    number = float(weight) if isinstance(weight, Real) and not isinstance(weight, bool) else -inf
    if not 0 < number < inf:
        raise UsageError(f"the weight of {name} in by= is {weight!r}; pass a positive number")
    return number
