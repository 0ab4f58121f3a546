"""Values of any ordered type as numbers, so that widths of ranges can be compared."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from zadapter.base.key_types import is_bytes, to_integers

Floats = npt.NDArray[np.float64]

_LARGEST = 1e300
"""Larger numbers are cut, so that the width of a range is a number."""
_FAR = 1e6
"""Values count as their ranks if the outermost are this many times as far apart as most are: the
others would have no width beside them."""
_BYTES = 7
"""Number of bytes of a text, behind the prefix that all texts share, that count."""


def numbers(ordered: pa.Array) -> Floats:
    """Return numbers that do not descend where *ordered* ascends.

    Args:
        ordered: Distinct values in ascending order, as ``rank`` returns them.
    """
    found = _numbers(ordered)
    if len(found) < 2:  # noqa: PLR2004 - no distance
        return found
    low, high = np.quantile(found, (0.1, 0.9))
    far = found[-1] - found[0] > _FAR * (high - low)
    return np.arange(len(found), dtype=np.float64) if far else found


def _numbers(ordered: pa.Array) -> Floats:
    if is_bytes(ordered.type):
        return _of_texts(ordered.to_pylist())
    return _floats(to_integers(ordered))


def _floats(values: pa.Array) -> Floats:
    found = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    plain = np.nan_to_num(np.asarray(found, np.float64), nan=_LARGEST)
    return np.asarray(np.clip(plain, -_LARGEST, _LARGEST))


def _of_texts(values: list[Any]) -> Floats:
    texts = [value.encode() if isinstance(value, str) else bytes(value) for value in values]
    shared = _shared(texts[0], texts[-1]) if texts else 0
    parts = (text[shared : shared + _BYTES].ljust(_BYTES, b"\0") for text in texts)
    return np.array([int.from_bytes(part, "big") for part in parts], np.float64)


def _shared(first: bytes, last: bytes) -> int:
    """Return the length of the prefix of two texts, and so of all texts between them."""
    pairs = zip(first, last, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(first), len(last)))
