"""Arguments of a migration, checked without a table."""

import pytest

from zadapter.errors import MissingBackendError, UsageError
from zadapter.migration.migration_options import MigrationOptions

PLAIN = {"table": "db.t", "to": "iceberg", "target": "db.u"}


def test_a_new_layout_has_the_options_of_optimize():
    """Without keys, the layout of the old table is kept."""
    options = MigrationOptions(**PLAIN, by={"a": 2}, target_file_size="1MB", row_groups=4)

    assert options.names == ("db.t", "db.u")
    assert options.layout.weights == {"a": 2.0}
    assert (options.layout.file_bytes, options.layout.row_groups) == (1 << 20, 4)
    assert MigrationOptions(**PLAIN).layout is None


def test_a_migration_has_no_log_that_could_choose_keys():
    """So this word is the name of a column, as any other."""
    assert MigrationOptions(**PLAIN, by="auto").layout.weights == {"auto": 1.0}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"mode": "move"}, "unknown mode 'move'; expected one of: copy, in_place, auto"),
        ({"mode": ["copy"]}, "unknown mode"),
        ({"by": "a", "mode": "in_place"}, "by= rewrites all rows"),
        ({"by": []}, "no key columns"),
        ({"curve": "peano"}, "unknown curve"),
        ({"curve": "zorder"}, "curve= without by= has no effect, since the table's layout is kept"),
        ({"target_file_size": "1MB", "follow": True}, "target_file_size= without by="),
        ({"row_groups": 4, "mode": "in_place"}, "row_groups= without by= has no effect"),
        ({"follow": True, "mode": "in_place"}, "mode='in_place' has no effect, omit it"),
        ({"follow": True, "mode": "auto"}, "follow=True copies the appended rows"),
        ({"target_file_size": "many"}, "target_file_size: 'many'"),
        ({"row_groups": 0}, "at least 1"),
        ({"dry_run": "no"}, "dry_run= must be True or False"),
        ({"target": ""}, "is not a table"),
        ({"table": None}, "is not a table"),
        ({"to": 5}, "to= must be a format name or a backend class"),
        ({"backend": 5}, "backend= must be a format name"),
    ],
)
def test_a_wrong_argument_is_refused(changed, expected):
    """Each is wrong for every table."""
    with pytest.raises(UsageError, match=expected):
        MigrationOptions(**{**PLAIN, **changed})


@pytest.mark.parametrize("argument", ["to", "backend"])
def test_an_unknown_format_is_refused(argument):
    """The installed ones are listed."""
    with pytest.raises(MissingBackendError, match="unknown backend 'detla'; installed: delta"):
        MigrationOptions(**{**PLAIN, argument: "detla"})
