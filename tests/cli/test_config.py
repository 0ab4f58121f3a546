"""Files of tables and their options."""

import pytest

from zadapter.base.locations import VARIABLES
from zadapter.cli.config import TableOptions, load
from zadapter.errors import UsageError

CURVES = "adaptive, zorder, hilbert, linear"
SIZES = "pass a number of bytes, or '128MB'"
KEYS = (
    "table, backend, by, queries, bloom_filters, where, curve, target_file_size, row_groups, "
    "max_job_bytes, max_bytes, max_files, max_seconds, max_concurrent_jobs, min_age, tiers, "
    "collect_stats, force, verify, max_rebase, price"
)


@pytest.fixture
def written(tmp_path):
    """Write a file, and return its path."""

    def write(text):
        path = tmp_path / "tables.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def mistakes(path):
    """Return the lines of the refusal of a file, without the file's name."""
    with pytest.raises(UsageError) as refused:
        load(path, {})
    lines = str(refused.value).splitlines()
    assert all(line.startswith(f"{path}: ") for line in lines)
    return [line.removeprefix(f"{path}: ") for line in lines]


def test_tables_have_their_own_options_and_the_defaults(written):
    """An own option takes precedence."""
    path = written(
        """
        [defaults]
        by = ["event_time", "user_id"]
        target_file_size = "64MB"

        [[tables]]
        table = "db.events"

        [[tables]]
        table = "db.clicks"
        by = { page = 2, user_id = 1 }
        where = "day > '2025-01-01'"
        backend = "iceberg"
        """
    )

    assert load(path, {}) == [
        TableOptions("db.events", {"by": ["event_time", "user_id"], "target_file_size": "64MB"}),
        TableOptions(
            "db.clicks",
            {
                "by": {"page": 2, "user_id": 1},
                "target_file_size": "64MB",
                "where": "day > '2025-01-01'",
                "backend": "iceberg",
            },
        ),
    ]


def test_all_mistakes_are_found_at_once(written, tmp_path, monkeypatch):
    """Each with its table and its key; those of the defaults once, not for each table."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    path = written(
        f"""
        table = "db.events"

        [defaults]
        curve = "peano"
        verfy = "checksum"

        [[tables]]
        table = "db.events"
        by = []
        target-file-size = "1MB"
        row_groups = true

        [[tables]]
        table = "{tmp_path}/nowhere"
        backend = "detla"

        [[tables]]
        by = "a"
        max_job_bytes = "many"

        [[tables]]
        table = "db.events"
        by = "a"
        colour = "red"
        settle = "1h"
        widen-stats = true
        """
    )

    assert mistakes(path) == [
        "the file: unknown key 'table'; did you mean 'tables'?",
        "[defaults]: unknown key 'verfy'; did you mean 'verify'?",
        "[defaults]: curve: unknown curve 'peano'; expected one of: " + CURVES,
        "db.events: unknown key 'target-file-size'; did you mean 'target_file_size'?",
        "db.events: by: no key columns; pass one to four columns that filters use",
        "db.events: row_groups: must be an integer, not True",
        f"{tmp_path}/nowhere: backend: unknown backend 'detla'; installed: delta, iceberg, parquet",
        f"{tmp_path}/nowhere: table: {tmp_path}/nowhere: path not found; check its spelling",
        "table 3: max_job_bytes: 'many' is not a size; " + SIZES,
        "table 3: the key 'table' is missing",
        "db.events: unknown key 'colour'; expected one of: " + KEYS,
        "db.events: the key 'settle' was renamed; write 'min_age'",
        "db.events: the key 'widen-stats' was renamed; write 'collect_stats'",
        "db.events: the table is listed twice",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the file lists no tables"),
        ("tables = []", "the file lists no tables"),
        ("tables = ['db.events']", "the file lists no tables"),
        ("[tables]", "the file lists no tables"),
        ("defaults = 1\n[[tables]]\ntable = 't'\nby = 'a'", "defaults must be a table"),
        ("[[tables]]\ntable = 5\nby = 'a'", "5: table: 5 is not a table"),
        ("[[tables]]\ntable = 't'\nby = 'a'\nbackend = 1", "t: backend: 1 is not the name"),
        ("[[tables]]\ntable = 't'\nby = 'auto'", "t: by='auto' needs queries= (--queries)"),
        ("[[tables]]\ntable = 't'\ncurve = 'zorder'", "t: curve= and row_groups= without by="),
        ("[[tables]\n", "the file is not TOML: "),
    ],
)
def test_other_files_are_refused(written, text, expected):
    """The message names the file and shows what is expected."""
    (mistake,) = mistakes(written(text))

    assert mistake.startswith(expected)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    """As is one that is a folder."""
    path = tmp_path / "tables.toml"
    path.write_bytes(b"\xff\xfe")

    assert mistakes(path) == ["the file is not UTF-8: invalid start byte"]
    assert mistakes(tmp_path) == ["the file cannot be read: Is a directory"]


def test_paths_may_lie_in_another_file_system(written):
    """A setting of the call may name it, so Spark looks for them."""
    path = written("[[tables]]\ntable = '/lake/nowhere'\nby = 'a'")

    (found,) = load(path, {"spark.hadoop.fs.defaultFS": "hdfs://server"})

    assert found.table == "/lake/nowhere"
