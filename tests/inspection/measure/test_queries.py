"""What is passed as queries is a list of conditions, which must be right, or a log."""

from pathlib import Path

import pytest

from zadapter.errors import UsageError
from zadapter.inspection.measure.queries import conditions


@pytest.mark.parametrize(
    "queries",
    [
        ["a = 1", "selected = 2", "upper(s) = 'SELECT'"],
        ["url LIKE 's3://lake/%'"],
        ["file = 'log.sql'"],
        ["(a = 1)"],
        [],
    ],
)
def test_texts_that_are_no_statements_are_conditions(queries):
    """Also a single text, unless it is a path."""
    assert conditions(queries, matches=False) == queries
    if len(queries) == 1:
        assert conditions(queries[0], matches=True) == queries


@pytest.mark.parametrize(
    "queries",
    [
        *("queries.sql", "log/export.csv", "s3://lake/events", "hdfs:/log", Path("log")),
        *(["a = 1", "SELECT * FROM t"], "select 1", "-- why\nWITH x AS (SELECT 1) TABLE x"),
        *([("a = 1", 2.0)], ["(SELECT 1)"]),
    ],
)
def test_everything_else_is_a_log(queries):
    """Its entries may be wrong, and are counted."""
    assert conditions(queries, matches=True) is None


def test_a_file_that_is_there_is_a_path(tmp_path, monkeypatch):
    """Whatever its name."""
    monkeypatch.chdir(tmp_path)
    Path("log").mkdir()

    assert conditions("log", matches=False) is None
    assert conditions("flag", matches=False) == ["flag"]


def test_without_queries_nothing_matches():
    """And a condition must not be empty."""
    assert conditions(None, matches=False) == []
    with pytest.raises(UsageError, match="pass queries= as well"):
        conditions(None, matches=True)
    with pytest.raises(UsageError, match="queries= is empty"):
        conditions(["a = 1", " "], matches=False)
