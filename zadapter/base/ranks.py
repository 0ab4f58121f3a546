"""Dense ranks of Arrow values in Spark's order.

In Spark's order -0.0 equals 0.0, NaN equals itself and is above all numbers, and strings and binary
are ordered by unsigned bytes. Ranks represent values of every orderable type as small integers.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from zadapter.base.key_types import has_nan

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


def rank(values: pa.Array | pa.ChunkedArray) -> Ranked:
    """Return the dense ranks of *values*."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if has_nan(array.type):
        return _rank_floats(array)
    distinct = pc.unique(array.drop_null())
    distinct = distinct.take(pc.sort_indices(distinct))
    indices = pc.index_in(array, value_set=distinct)
    ranks = pc.add(indices.cast(pa.int64()), 1).fill_null(0)
    return Ranked(ranks.to_numpy(zero_copy_only=False), distinct)


def _rank_floats(array: pa.Array) -> Ranked:
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    numbers = array.drop_null().to_numpy(zero_copy_only=False)
    with np.errstate(invalid="ignore"):  # a signalling NaN becomes a quiet one
        distinct, inverse = np.unique(numbers + numbers.dtype.type(0), return_inverse=True)
    ranks = np.zeros(len(array), np.int64)
    ranks[valid] = inverse + 1
    return Ranked(ranks, pa.array(distinct, array.type, from_pandas=False))
