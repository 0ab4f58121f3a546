"""Dense ranks of Arrow values in Spark's order.

In Spark's order -0.0 equals 0.0, NaN equals itself and is above all numbers, and strings and binary
are ordered by unsigned bytes. Ranks represent values of every orderable type as small integers.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import has_nan, to_integers

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Values as ranks.

    Attributes:
        ranks: Rank of each value: 0 for null, 1 for the smallest value, 2 for the next larger, …
        distinct: The distinct values in ascending order; rank r stands for ``distinct[r - 1]``.
    """

    ranks: Ints
    distinct: pa.Array

    def value_of(self, ranks: Ints) -> pa.Array:
        """Return the values with *ranks*, null for rank 0."""
        return self.distinct.take(pa.array(ranks - 1, mask=ranks < 1))

    def ceiling(self, values: pa.Array) -> Ints:
        """Return the rank of the smallest distinct value that is not below each of *values*.

        It is one more than there are distinct values if all are below, and 0 for null.
        """
        is_valid = values.is_valid().to_numpy(zero_copy_only=False)
        return np.where(is_valid, self._search(values, "left") + 1, 0)

    def floor(self, values: pa.Array) -> Ints:
        """Return the rank of the largest distinct value that is not above each of *values*.

        It is 0 if all are above, and for null.
        """
        return self._search(values, "right")

    def _search(self, values: pa.Array, side: Literal["left", "right"]) -> Ints:
        found = np.zeros(len(values), np.int64)
        valid = values.is_valid().to_numpy(zero_copy_only=False)
        asked = values.drop_null().cast(self.distinct.type)
        if len(asked) == 0:
            return found
        if pa.types.is_primitive(asked.type):  # NumPy sorts the least timestamp last
            known, some = (to_integers(each).to_numpy() for each in (self.distinct, asked))
            found[valid] = np.searchsorted(known, some, side=side)
        else:  # NumPy would compare objects of Python
            joint = rank(pa.concat_arrays([self.distinct, asked])).ranks
            here = len(self.distinct)
            found[valid] = np.searchsorted(joint[:here], joint[here:], side=side)
        return found

    def extend(self, values: pa.Array) -> "Ranked":
        """Return the same values in ranks among *values*, too, which need not occur."""
        if len(values) == 0:
            return self
        joint = rank(pa.concat_arrays([self.distinct, values.cast(self.distinct.type)]))
        places = joint.ranks[: len(self.distinct)]
        return Ranked(np.concatenate(([0], places))[self.ranks], joint.distinct)


def rank(values: pa.Array | pa.ChunkedArray | Ranked) -> Ranked:
    """Return the dense ranks of *values*; those that are ranked already stay as they are."""
    if isinstance(values, Ranked):
        return values
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if has_nan(array.type):
        return _rank_floats(array)
    if pa.types.is_null(array.type):
        return Ranked(np.zeros(len(array), np.int64), array.slice(0, 0))
    coded = array.dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank_of = np.zeros(len(order) + 1, np.int64)  # the last is that of null
    rank_of[order] = np.arange(1, len(order) + 1)
    ranks = rank_of[coded.indices.fill_null(len(order)).to_numpy()]
    return Ranked(ranks, coded.dictionary.take(pa.array(order)))


def narrow(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return numbers from 0 in the smallest type that holds them.

    NumPy sorts numbers of 32 bits in half the time of 64, and those of 16 bits by radix.
    """
    return numbers.astype(np.min_scalar_type(numbers.max(initial=0)))


def argsort(numbers: npt.NDArray[Any]) -> Ints:
    """Return the stable order of numbers from 0, along the last axis."""
    return np.argsort(narrow(numbers), axis=-1, kind="stable")


def _rank_floats(array: pa.Array) -> Ranked:
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = array.drop_null().to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        distinct, inverse = np.unique(numbers + numbers.dtype.type(0), return_inverse=True)
    ranks = np.zeros(len(array), np.int64)
    ranks[valid] = inverse + 1
    return Ranked(ranks, pa.array(distinct, array.type, from_pandas=False))
