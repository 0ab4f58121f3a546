"""Values of columns as places on an axis, with ticks in the column's own unit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.key_types import BOOLEAN, DATE, TIMESTAMP, has_zone, kind_of, to_integers
from zadapter.base.ranks import rank

if TYPE_CHECKING:
    from matplotlib.axis import Axis

Floats = npt.NDArray[np.float64]

_DAY = 86_400_000_000
"""Microseconds of a day."""
_TICKS, _LONGEST = 4, 10
"""Number of ticks of a column that is not a number, and most characters of a label."""


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """The values of one column on an axis.

    Attributes:
        name: The column.
        places: Place of each value; NaN where it is unknown.
        labels: Texts of places, for columns that are no numbers; empty for numbers and times.
        is_time: Whether places are days since 1970.
        zone: The zone of times.
    """

    name: str
    places: Floats
    labels: tuple[tuple[float, str], ...] = ()
    is_time: bool = False
    zone: str = ""

    def label(self, axis: "Axis") -> None:
        """Write the name and the ticks of the axis."""
        from matplotlib import dates  # noqa: PLC0415 - an optional extra
        from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

        axis.set_label_text(f"{self.name} ({self.zone})" if self.zone else self.name)
        if self.labels:
            axis.set_ticks([place for place, _ in self.labels], [text for _, text in self.labels])
        elif self.is_time:
            locator: Any = dates.AutoDateLocator(maxticks=6)  # type: ignore[no-untyped-call]
            for frequency, whole in _WHOLE.items():
                locator.intervald[getattr(dates, frequency)] += [whole]
            axis.set_major_locator(locator)
            formatter: Any = dates.ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
            axis.set_major_formatter(formatter)
        else:
            axis.set_major_locator(MaxNLocator(6))


_WHOLE = {"MONTHLY": 12, "HOURLY": 24, "MINUTELY": 60, "SECONDLY": 60}
"""Steps of a year, a day, an hour and a minute: without them, matplotlib prints a warning about
times of a few years, days, hours or minutes, and draws more ticks than asked for."""


def scale(name: str, values: pa.Array) -> Scale:
    """Return the places of *values*, which may be of any type with an order."""
    kind = kind_of(values.type)
    if kind is DATE:
        return Scale(name, _floats(to_integers(values)), is_time=True)
    if kind is TIMESTAMP:
        ticks = to_integers(values.cast(pa.timestamp("us", values.type.tz)))
        zone = "UTC" if has_zone(values.type) else ""
        return Scale(name, _floats(ticks) / _DAY, is_time=True, zone=zone)
    if kind is BOOLEAN:
        return Scale(name, _floats(to_integers(values)), ((0.0, "false"), (1.0, "true")))
    if kind is not None and not kind.is_bytes:
        return Scale(name, _floats(to_integers(values)))
    ranked = rank(values)
    at = np.unique(np.linspace(0, max(0, len(ranked.distinct) - 1), _TICKS).astype(np.int64))
    shown = ranked.distinct.take(pa.array(at)).to_pylist() if len(ranked.distinct) else []
    labels = tuple(zip((at + 1.0).tolist(), _shorten_labels(shown), strict=False))
    return Scale(name, np.where(ranked.ranks > 0, ranked.ranks, np.nan), labels)


def _floats(values: pa.Array) -> Floats:
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), float)


def _shorten_labels(values: Sequence[Any]) -> list[str]:
    """Return values as short labels, from the first character in which they differ."""
    texts = [value.hex() if isinstance(value, bytes) else str(value) for value in values]
    texts = ["".join(c if c.isprintable() else "?" for c in text) for text in texts]
    shared = next((n for n, same in enumerate(zip(*texts, strict=False)) if len(set(same)) > 1), 0)
    start = shared if max(map(len, texts), default=0) > _LONGEST else 0
    return [_short(f"…{text[start:]}" if start else text) for text in texts]


def _short(text: str) -> str:
    cut = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return cut.replace("$", r"\$")  # a dollar sign would begin a formula
