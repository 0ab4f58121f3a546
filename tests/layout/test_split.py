"""Where a node of the tree is cut, when values repeat."""

import numpy as np
import pyarrow as pa
import pytest

from zadapter.base.ranks import rank
from zadapter.layout.split import cut


def left(values, files=1):
    """The share of rows on the left of the cut of one node; 0: it is not cut."""
    ranks = rank(pa.array(values)).ranks
    made = cut(ranks, np.zeros(len(ranks), np.int64), np.array([files]), to_files=files > 1)
    return float((ranks < made.cuts[0]).mean())


def test_a_hot_value_goes_to_the_few_not_to_the_many():
    """Ports: three have 36 %, one has 40 %, a thousand share the rest; filters ask for any."""
    ports = [22] * 50 + [53] * 200 + [80] * 110 + [443] * 400 + list(range(1_000, 1_240))

    assert left(ports) == 0.76
    assert left([-port for port in ports]) == 0.24


@pytest.mark.parametrize(("files", "share"), [(1, 0.5), (2, 0.5), (3, 1 / 3), (4, 0.5)])
def test_values_that_are_there_as_often_are_cut_at_the_quantile(files, share):
    """Nothing tells them apart, so files come out even."""
    assert left(list(range(12)) * 10, files) == pytest.approx(share)
    assert left(list(range(120)), files) == pytest.approx(share)


def test_no_border_is_taken_that_leaves_a_sliver_of_a_file():
    """However few the many values have, where the other border will do."""
    rows = [0] * 35 + [1] * 52 + list(range(2, 15))

    assert left(rows, files=2) == 0.35
    assert left(rows, files=1) == 0.87
