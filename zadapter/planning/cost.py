"""What a rewrite costs: bytes, requests to an object store, core seconds, and a sum in money."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import astuple, dataclass, fields
from decimal import Decimal
from math import inf
from numbers import Real

from zadapter.base.quantities import show
from zadapter.errors import UsageError

GivenPrices = str | Mapping[str, float]
"""Prices as callers pass them: ``"put=0.005,get=0.0004,core_hour=0.05"``, or a mapping."""

SHUFFLED = 2.0
"""Bytes that a rewrite shuffles for each byte that it reads. Spark's metric ``shuffleWriteBytes``
was 2.9 times the bytes of TPC-H's lineitem as Snappy and 3.9 times as Zstandard, 1.7 and 2.2 times
those of TPC-DS's store_sales, 1.1 and 1.9 times those of rows that are mostly a hash (scale 0.1,
Spark 4.1): within a factor of two."""
BYTES_A_CORE_SECOND = 9 << 20
"""Bytes that a core rewrites in a second: 60 million rows of lineitem, 2.2 GB, in 236 core seconds
(integration/bench/README.md). A busy machine took up to 17 times as long, on small tables."""
_HOUR = 3600
_FEW = 360
"""Core seconds below which they are not shown as hours."""
_GB = 1 << 30
_THOUSAND = 1000
_SIGNIFICANT = 3
"""Digits of a sum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectStore:
    """A store that bills requests, as S3A makes them.

    The numbers of requests are those of rewrites of lineitem and store_sales in the three formats
    on a server that counted them (scale 0.1, Hadoop 3.4.2). A file with many row groups needs more.
    """

    renames: bool
    """Whether the writer renames each file, which is a copy."""

    def requests(self, *, read: int, written: int, size: int, commits: int) -> tuple[int, int]:
        """Estimate the requests that are billed as GET, and those that are billed as PUT.

        Args:
            read: Number of files that are read: once for the sample, once for the rewrite.
            written: Number of files that are written, and whose footers are read.
            size: Bytes of these files.
            commits: Number of commits.
        """
        gets, puts = (20, 18) if self.renames else (6, 2)
        parts = -(-size // (_PART * written)) if written else 1
        puts += parts + 1 if parts > 1 else 0  # the parts instead of one PUT, the begin and the end
        return (
            _GETS_TO_READ * read + gets * written + _FOR_LOG * commits,
            puts * written + _FOR_LOG * commits,
        )


_GETS_TO_READ = 13
_FOR_LOG = 45
"""Requests of each kind that read the log and commit to it."""
_BILLED = {"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs"}
_PART = 64 << 20
"""Default of ``fs.s3a.multipart.size``."""


def object_store(location: str, *, renames: bool) -> ObjectStore | None:
    """Return the store of a location; None: requests are not billed, as on a disk or HDFS."""
    scheme = location.partition("://")[0]
    return ObjectStore(renames=renames) if scheme in _BILLED else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a rewrite needs, or has needed."""

    bytes_read: int
    """Bytes of the files that are read, once for each time; without samples of the keys."""
    bytes_written: int | None
    """Bytes of the new files; None: Spark does not tell."""
    bytes_shuffled: int | None
    """Bytes written for shuffles, as they are compressed; None: Spark does not tell."""
    get_requests: int
    """GET and HEAD requests to an object store, estimated; 0 where no store bills them."""
    put_requests: int
    """PUT, COPY, POST and LIST requests to an object store, estimated."""
    core_seconds: float | None
    """Seconds that Spark's tasks run, added up; None: Spark does not tell."""

    def __str__(self) -> str:
        named = [(self.bytes_read, "read"), (self.bytes_written, "written")]
        named.append((self.bytes_shuffled, "shuffled"))
        parts = [f"{_show_size(size)} {what}" for size, what in named]
        if self.get_requests or self.put_requests:
            parts.append(f"about {self.get_requests:,} GET and {self.put_requests:,} PUT requests")
        return ", ".join([*parts, _core_time(self.core_seconds)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices in any one currency."""

    put: float = 0.0
    """Price of 1 000 PUT, COPY, POST and LIST requests."""
    get: float = 0.0
    """Price of 1 000 GET and HEAD requests."""
    gb_read: float = 0.0
    """Price of 1 GB (1024³ bytes) that leaves the store."""
    core_hour: float = 0.0
    """Price of an hour of a core."""

    @classmethod
    def of(cls, given: object) -> "Prices":
        """Return prices as a caller passes them.

        Raises:
            UsageError: A name is unknown, or a price is not a number of at least 0.
        """
        pairs = _pairs(given) if isinstance(given, str) else given
        if not isinstance(pairs, Mapping) or not pairs:
            raise UsageError(f"price= must have prices by name, not {given!r}; {_EXPECTED}")
        return cls(
            **{_check_price_name(name): _price(name, price) for name, price in pairs.items()}
        )

    def sum(self, cost: Cost) -> float | None:
        """Return what *cost* adds up to; None: an amount that has a price is unknown."""
        amounts = (
            cost.put_requests / _THOUSAND,
            cost.get_requests / _THOUSAND,
            cost.bytes_read / _GB,
            None if cost.core_seconds is None else cost.core_seconds / _HOUR,
        )
        priced = [
            None if amount is None else amount * price
            for price, amount in zip(astuple(self), amounts, strict=True)
            if price
        ]
        known = [each for each in priced if each is not None]
        return sum(known) if len(known) == len(priced) else None


_EXPECTED = (
    f"expected some of: {', '.join(field.name for field in fields(Prices))}, such as "
    "'put=0.005,get=0.0004,core_hour=0.05'"
)


def show_sum(amount: float | None) -> str:
    """Return a sum as text.

    >>> show_sum(1234.5678), show_sum(0.0000123456)
    ('1,234.57', '0.0000123')
    """
    if amount is None:
        return "unknown: Spark does not report the core seconds"
    return f"{amount:,.2f}" if amount >= 1 else format(Decimal(f"{amount:.{_SIGNIFICANT}g}"), "f")


def _show_size(size: int | None) -> str:
    return "unknown bytes" if size is None else show(size)


def _core_time(seconds: float | None) -> str:
    if seconds is None:
        return "unknown core seconds"
    return (
        f"{seconds:,.1f} core seconds" if seconds < _FEW else f"{seconds / _HOUR:,.1f} core hours"
    )


def _pairs(text: str) -> dict[str, str]:
    """Return names and prices of a text such as ``put=0.005,get=0.0004``."""
    pairs: dict[str, str] = {}
    for part in text.split(","):
        name, equals, price = (each.strip() for each in part.partition("="))
        if not equals:
            raise UsageError(f"price=: {part!r} is not name=number; {_EXPECTED}")
        if name in pairs:
            raise UsageError(f"price=: {name!r} is given twice; pass each price once")
        pairs[name] = price
    return pairs


def _check_price_name(name: object) -> str:
    known = [field.name for field in fields(Prices)]
    if name not in known:
        raise UsageError(f"price=: unknown price {name!r}; {_EXPECTED}")
    return str(name)


def _price(name: object, given: object) -> float:
    price = -inf
    if isinstance(given, Real | Decimal | str) and not isinstance(given, bool):
        with suppress(ValueError, OverflowError):
            price = float(given)
    if not 0 <= price < inf:
        raise UsageError(
            f"price=: the price of {name} must be a number of at least 0, not {given!r}; "
            f"{_EXPECTED}"
        )
    return price
