"""Without key columns, a call follows the layout of the table's own files."""

from dataclasses import dataclass, replace

import pyarrow as pa
import pytest

from tests.kit.builders import MIB, file_table, fitted, snapshot
from zadapter.errors import UsageError
from zadapter.layout.filters import Keys
from zadapter.planning.options import Options
from zadapter.rewrite.file_selection import follow_layout

HEAVY = fitted([[1, 2, 3], [1, 2, 3]], 2, weights=[2.0, 1.0], curve="zorder", row_groups=4)
LIGHT = fitted([[1, 2, 3]], 2)
TABLE = replace(
    snapshot(pa.schema({"c0": pa.int64(), "c1": pa.int64()})),
    layouts={layout.id: layout for layout in (HEAVY, LIGHT)},
)


@dataclass
class Log:
    """The files of a table, in a log."""

    found: pa.Table

    def files(self, snapshot):
        return self.found


def files(*layouts):
    sizes = [MIB * (1 + number) for number in range(len(layouts))]
    return Log(file_table([str(size) for size in sizes], sizes=sizes, layouts=list(layouts)))


def test_the_layout_of_most_bytes_is_followed():
    """With its weights, curve and row groups; the file size is chosen as ever."""
    options = follow_layout(Options(table="t"), files(LIGHT.id, None, HEAVY.id), TABLE)

    assert options == Options(
        table="t", by=Keys({"c0": 2.0, "c1": 1.0}), curve="zorder", row_groups=4
    )


def test_keys_of_the_caller_take_precedence():
    """And the log is not read for them."""
    options = Options(table="t", by="c1", row_groups=2)

    assert follow_layout(options, Log(None), TABLE) is options


@pytest.mark.parametrize("layouts", [(), (None,), ("0" * 32,)])
def test_a_table_without_a_layout_has_no_keys(layouts):
    """No file, no clustered file, or none whose request is known."""
    assert follow_layout(Options(table="t"), files(*layouts), TABLE) is None


def test_a_key_that_was_dropped_is_named():
    """Somebody has to say what filters use now."""
    without = replace(TABLE, schema=pa.schema({"c0": pa.int64()}))

    with pytest.raises(UsageError, match=r"was clustered by c0, c1, but .* no column 'c1'"):
        follow_layout(Options(table="t"), files(HEAVY.id), without)
