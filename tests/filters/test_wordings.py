"""Which words of a condition mean something else in which sessions, and which ones never do."""

import pyarrow as pa
import pytest

from zadapter.filters.wordings import other_meaning

SCHEMA = pa.schema([("s", pa.string()), ("a", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
PLAIN = pa.schema([("s", pa.string()), ("a", pa.int64())])
DEFAULTS = {
    "spark.sql.variable.substitute": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.consecutiveStringLiterals.enabled": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "false",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
}
ESCAPED = {"spark.sql.parser.escapedStringLiterals": "true"}
CONSECUTIVE = {"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"}
QUOTED = {"spark.sql.ansi.doubleQuotedIdentifiers": "true"}
TEXTS = {
    "spark.sql.legacy.typeCoercion.datetimeToString.enabled": "true",
    "spark.sql.ansi.enabled": "false",
}
NTZ = {"spark.sql.timestampType": "TIMESTAMP_NTZ"}


def said(where, settings, schema=SCHEMA):
    return other_meaning(where, schema, (DEFAULTS | settings).__getitem__)


@pytest.mark.parametrize(
    ("settings", "where", "what"),
    [
        ({}, "s = '${wanted}'", "${wanted}"),
        ({}, "a = ${env:WANTED}", "${env:WANTED}"),
        (ESCAPED, r"s = 'a\tb'", "\\"),
        (ESCAPED, "s = 'it''s'", "''"),
        (ESCAPED, 's = "a""b"', '""'),
        (CONSECUTIVE, "s IN ('x', 'pr''od')", "''"),
        (QUOTED, 'a = 1 AND s = "b"', '"b"'),
        (TEXTS, "ts < '2024-1-1'", "'2024-1-1'"),
        (TEXTS, "a = 1 OR ts BETWEEN TIMESTAMP '2024-01-01' AND '2024-1-9'", "'2024-1-9'"),
        (NTZ, "ts = cast('2024-01-01 12:00:00Z' AS timestamp)", "'2024-01-01 12:00:00Z'"),
        (NTZ, "ts = '2024-01-01 12:00:00.5+09:00'::timestamp", "'2024-01-01 12:00:00.5+09:00'"),
        ({}, "a > 1 -- one \\\n AND a < 3", "a comment"),
    ],
)
@pytest.mark.parametrize("written", [str, str.upper, " {} ".format], ids=["", "upper", "spaces"])
def test_words_that_mean_something_else_are_named(settings, where, what, written):
    """However the setting is written."""
    settings = {name: written(value) for name, value in settings.items()}

    assert said(where, settings).startswith(what)
    assert not settings or said(where, {}) is None


@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({}, "s <> '${' AND s RLIKE '[$]{2}|a$'"),
        ({}, "s = 'a--b\\\nc'"),
        ({}, "`a--b` = 1 /* all */"),
        ({}, "a > 1 -- one\n AND a < 3"),
        ({"spark.sql.variable.substitute": "false"}, "s = '${wanted}'"),
        (ESCAPED, "s = 'a' AND s <> ''"),
        (CONSECUTIVE, "s <> '' AND s <> 'a' AND s NOT IN ('', '')"),
        (CONSECUTIVE, "s = 'a' 'b'"),
        (QUOTED, "s = 'say \"b\"'"),
        (QUOTED | {"spark.sql.ansi.enabled": "false"}, 's = "b"'),
        (TEXTS, "ts < TIMESTAMP '2024-01-01' AND a = 1"),
        (TEXTS | {"spark.sql.ansi.enabled": "true"}, "ts < '2024-1-1'"),
        (NTZ, "ts < '2024-01-12' AND ts > TIMESTAMP '2024-01-01 12:00:00Z'"),
        (NTZ, "ts = cast('2024-01-01 12:00:00' AS timestamp) AND s = 'x-12'"),
    ],
)
def test_words_that_mean_the_same_are_let_through(settings, where):
    assert said(where, settings) is None


def test_a_table_without_moments_compares_none_as_text():
    assert said("s = 'a'", TEXTS, PLAIN) is None


def test_what_is_no_sql_is_left_to_the_parser():
    assert said("s = '", ESCAPED) is None
