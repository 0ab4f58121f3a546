"""Patterns of names and paths: which tables a lake means, and which it can never mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.base import names
from zadapter.errors import UsageError
from zadapter.lake.patterns import has_wildcards, is_inner, literal, matches, may_meet, split

TEXTS = st.text("aB1.*?[]`-", min_size=1, max_size=6)
NAMES = st.lists(TEXTS, min_size=1, max_size=3)
PATTERNS = st.lists(st.text("aB*?", min_size=1, max_size=4), min_size=1, max_size=3)


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("sales.*", "sales.orders", True),
        ("sales.*", "SALES.Orders", True),
        ("Sales.tmp_?", "sales.TMP_1", True),
        ("sales.[a-c]*", "sales.b", True),
        ("sales.[!a-c]*", "sales.b", False),
        ("*.events", "web.events", True),
        ("sales.*", "sales.inner.orders", False),
        ("*", "sales.orders", False),
        ("iceberg.*.*", "iceberg.db.t", True),
        ("sales.*", "sales.`odd.name`", True),
        ("sales.`odd.name`", "sales.`odd.name`", True),
        ("sales.`a*`", "sales.`a*`", True),
        ("sales.`a*`", "sales.ab", False),
        ("sales.`[ab]`", "sales.a", False),
        ("sales.my-*", "sales.`my-table`", True),
    ],
)
def test_wildcards_stand_for_characters_of_one_part(pattern, name, expected):
    assert matches(split(pattern)[1], names.split(name)) is expected


@given(NAMES)
def test_a_quoted_name_matches_itself_and_has_no_wildcards(parts):
    text = names.quote(tuple(parts))

    written, pattern = split(text)

    assert written == tuple(parts)
    assert matches(pattern, parts)
    assert not has_wildcards(text, is_path=False)


@given(NAMES, NAMES)
def test_a_quoted_name_matches_no_other(parts, others):
    _, pattern = split(names.quote(tuple(parts)))

    assert matches(pattern, others) == ([p.lower() for p in parts] == [o.lower() for o in others])


@given(PATTERNS, PATTERNS, NAMES)
def test_patterns_that_match_the_same_name_may_meet(first, second, name):
    if matches(first, name) and matches(second, name):
        assert may_meet(first, second)
    own = [literal(part) for part in name]
    assert may_meet(own, first) == may_meet(first, own) == matches(first, name)


@pytest.mark.parametrize("text", ["", "sales.", ".t", "a..b", "sales.`x", " "])
def test_a_text_without_parts_is_no_pattern(text):
    with pytest.raises(UsageError, match="no pattern of tables"):
        split(text)


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("/lake/*", "/lake/t", False),
        ("/lake/*", "/lake/_delta_log", True),
        ("/lake/*/*", "/lake/t/day=1", True),
        ("/lake/*/*", "/lake/day=1/t", True),
        ("/lake/day=*", "/lake/day=1", True),
        ("/lake/env=prod/*", "/lake/env=prod/t", False),
        ("/_raw/*/", "/_raw/t", False),
        ("/lake/{.t,u}", "/lake/.t", True),
        ("lake/*", "/home/_me/lake/t", False),
        ("s3://lake/raw/*", "s3://lake/raw/.t", True),
        ("/lake/t/day=1", "/lake/t/day=1", False),
    ],
)
def test_what_a_wildcard_stands_for_is_no_folder_inside_of_a_table(pattern, path, expected):
    assert is_inner(pattern, path) is expected
