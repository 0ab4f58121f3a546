"""Partitions of files, by number."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from zadapter.base.ranks import Ints


def partition_numbers(files: pa.Table, names: Sequence[str]) -> tuple[Ints, list[str]]:
    """Return the number of each file's partition, and the text of each partition.

    Files with rows of several partitions count as a partition of their own.
    """
    count = files.num_rows
    if not names:
        return np.zeros(count, np.int64), [""]
    values = files["partition"].combine_chunks()
    mixed = np.asarray(values.is_null().to_numpy(zero_copy_only=False), np.bool_)
    number = np.where(mixed, 0, 1).astype(np.int64)
    for name in names:
        encoded = files["partition"].combine_chunks().field(name).dictionary_encode("encode")
        code = encoded.indices.to_numpy().astype(np.int64)
        number = number * max(1, len(encoded.dictionary)) + np.where(mixed, 0, code)
    _, first, inverse = np.unique(number, return_index=True, return_inverse=True)
    shown = values.take(pa.array(first)).to_pylist()
    return inverse.astype(np.int64), [_text(each) for each in shown]


def _text(values: Mapping[str, object] | None) -> str:
    if values is None:
        return "rows of several partitions"
    return ", ".join(f"{name}={value}" for name, value in values.items())
