"""Conditions are what the session says they are; the ids are those of the catalogue."""

import math
from datetime import date, datetime, timezone
from decimal import Decimal

import pyarrow as pa
import pytest

from tests.kit.file_tables import table_of
from tests.kit.leaves import is_, leaves
from tests.kit.variants import slow_but
from zadapter.errors import UnknownColumnError, UsageError
from zadapter.predicates.predicate import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    StartsWith,
)
from zadapter.predicates.pruning import matching
from zadapter.predicates.texts import causes, text
from zadapter.spark.where import condition

UTC = timezone.utc
NOON = datetime.fromisoformat("2024-01-05 12:00")
MICROS, MOMENT = pa.timestamp("us"), pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("text", "leaf"),
    [
        ("i = 1", is_("i", "=", 1, pa.int32())),
        ("1 < i", is_("i", ">", 1, pa.int32())),
        ("i <> 1", Not(is_("i", "=", 1, pa.int32()))),
        ("i <=> 1", is_("i", "<=>", 1, pa.int32())),
        ("i IS NOT DISTINCT FROM 1", is_("i", "<=>", 1, pa.int32())),
        ("i = 2 - 1", is_("i", "=", 1, pa.int32())),
        ("i <= 1.5", is_("i", "<=", 1, pa.int32())),
        ("t < 100", is_("t", "<", 100, pa.int8())),
        ("d > 1.5", is_("d", ">", 1.5, pa.float64())),
        ("f > 0.5", is_("f", ">", 0.5, pa.float32())),
        ("d = -0.0D", is_("d", "=", -0.0, pa.float64())),
        ("dec >= 2.5", is_("dec", ">=", Decimal("2.50"), pa.decimal128(12, 2))),
        ("s = 'it''s'", is_("s", "=", "it's", pa.string())),
        ("s LIKE 'abc'", is_("s", "=", "abc", pa.string())),
        ("s LIKE 'ab%'", StartsWith(("s",), "ab")),
        ("startswith(s, 'ab')", StartsWith(("s",), "ab")),
        ("flag", is_("flag", "=", True, pa.bool_())),
        ("flag = 'true'", is_("flag", "=", True, pa.bool_())),
        ("day >= '2024-01-05'", is_("day", ">=", date(2024, 1, 5), pa.date32())),
        (
            "ntz > '2024-01-05 12:00'",
            is_("ntz", ">", NOON, MICROS),
        ),
        ("ts > '2024-01-05 12:00'", is_("ts", ">", datetime(2024, 1, 5, 12, 0, 0, 0, UTC), MOMENT)),
        ("ts = date'2024-01-05'", is_("ts", "=", datetime(2024, 1, 5, 0, 0, 0, 0, UTC), MOMENT)),
        ("bytes = X'00ff'", is_("bytes", "=", b"\0\xff", pa.binary())),
        ("ODD.`B.c` = 3", Comparison(("Odd", "b.c"), "=", pa.scalar(3, pa.int32()))),
        ("Odd.x.y = 3", Comparison(("Odd", "x", "y"), "=", pa.scalar(3, pa.int32()))),
        ("map IS NULL", IsNull(("map",))),
        ("i <=> NULL", IsNull(("i",))),
        ("i = 1 AND i = 2", Constant(value=False)),
        ("i > 9000000000", Constant(value=False)),
        ("i = NULL", Constant(value=False)),
        ("dec = 2.555", Constant(value=False)),
    ],
)
def test_conditions_become_predicates(read, text, leaf):
    """Names, constants, casts and what can be folded are Spark's; what is left is compared."""
    found = read(text)

    assert leaves(found) == [leaf] or found == leaf


def test_everything_is_read_as_no_condition(read):
    """Nothing is excluded."""
    assert read("TRUE") == And(())
    assert leaves(read("1 = 1 OR i > 5")) == []


@pytest.mark.parametrize(
    ("text", "column", "values", "has_null"),
    [
        ("i IN (1, 2, NULL)", "i", [1, 2], True),
        (f"i IN ({', '.join(map(str, range(20)))})", "i", range(20), False),
        (f"i IN (NULL, {', '.join(map(str, range(20)))})", "i", range(20), True),
        (f"s IN ({', '.join(repr(str(n)) for n in range(20))}, NULL)", "s", range(20), True),
        (
            f"day IN ({', '.join(repr(f'2024-01-{n:02}') for n in range(1, 20))})",
            "day",
            [date(2024, 1, n) for n in range(1, 20)],
            False,
        ),
        (
            f"ts IN ({', '.join(repr(f'2024-01-{n:02}') for n in range(1, 20))})",
            "ts",
            [datetime(2024, 1, n, 0, 0, 0, 0, UTC) for n in range(1, 20)],
            False,
        ),
        (
            f"d IN (double('NaN'), {', '.join(f'{n}.5D' for n in range(20))})",
            "d",
            [math.nan, *(n + 0.5 for n in range(20))],
            False,
        ),
        (
            f"dec IN ({', '.join(f'{n}.25' for n in range(20))})",
            "dec",
            [Decimal(f"{n}.25") for n in range(20)],
            False,
        ),
    ],
)
def test_lists_of_any_length(read, columns, text, column, values, has_null):
    """Spark keeps a longer list as a set, of its own representation of values."""
    (found,) = leaves(read(text))
    type_ = columns.field(column).type
    wanted = {str(pa.scalar(str(v) if column == "s" else v, type_)) for v in values}

    assert isinstance(found, In)
    assert {str(value) for value in found.values} == wanted
    assert {value.type for value in found.values} == {type_}
    assert found.has_null == has_null


@pytest.mark.parametrize(
    "text",
    [
        *("s ILIKE 'a%'", "s RLIKE 'a'", "low = 'a'", "s = 'a' COLLATE UTF8_LCASE", "low IN ('a')"),
        *("low LIKE 'a%'", "s LIKE ANY ('_a%', '_b%')", "i + 1 > d", "abs(i) = 1", "i = rand()"),
        *("map['a'] = 1", "list[0].z = 1", "exists(list, y -> y.z > 1)", "i % 2 = 0", "s > 5"),
        *("input_file_name() = 'a'", "CASE WHEN flag THEN i END = 1", "cast(i AS string) = '3'"),
        *(
            "day > ts",
            "1 / i = 0",
            "s IN ('a', lower(s))",
            "day = date'12024-01-01'",
            "day > date'0000-01-01'",
        ),
        *("day > date'0000-01-01'", "octet_length(s) > 2", "contains(s, 'a')", "s LIKE '%a'"),
    ],
)
def test_what_is_not_evaluated_excludes_nothing(read, text):
    """Functions, arithmetic and casts of a column may be anything."""
    assert matching(read(text), table_of({})).tolist() == [True]


def test_a_pattern_begins_with_a_prefix(read):
    """Up to its first wildcard or escape, whatever the escape is."""
    for like in ("s LIKE 'ab_c%'", "s LIKE 'ab/_%_d' ESCAPE '/'", r"s LIKE r'ab\%_'"):
        prefixes = [leaf for leaf in leaves(read(like)) if isinstance(leaf, StartsWith)]
        assert prefixes == [StartsWith(("s",), "ab")], like


def test_isnan_is_true_or_false_never_null(read):
    """``isnan(NULL)`` is false in Spark."""
    found = read("isnan(f)")

    assert (found.parts[0].column, found.parts[0].op) == (("f",), "<=>")
    assert math.isnan(found.parts[0].value.as_py())


@pytest.mark.parametrize(
    ("settings", "text", "leaf"),
    [
        (
            {"spark.sql.session.timeZone": "Asia/Tokyo"},
            "ts > '2024-01-05 12:00'",
            is_("ts", ">", datetime(2024, 1, 5, 3, 0, 0, 0, UTC), MOMENT),
        ),
        (
            {"spark.sql.session.timeZone": "Europe/Berlin"},
            "ts = timestamp'2024-10-27 02:30:00+01:00'",  # there are two half past two
            is_("ts", "=", datetime(2024, 10, 27, 1, 30, 0, 0, UTC), MOMENT),
        ),
        ({"spark.sql.parser.escapedStringLiterals": "true"}, r"s = 'a\tb'", r"a\tb"),
        ({"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"}, "s = 'pr''od'", "prod"),
        ({"wanted": "prod"}, "s = '${wanted}'", "prod"),
        ({"spark.sql.caseSensitive": "true"}, "s = 'a'", "a"),
    ],
)
def test_the_session_says_what_a_condition_means(read, conf, settings, text, leaf):
    """What the second reader of SQL had to refuse is Spark's own business."""
    conf(settings)

    assert leaves(read(text)) == [
        is_("s", "=", leaf, pa.string()) if isinstance(leaf, str) else leaf
    ]


def test_double_quotes_may_be_names(read, conf):
    """A session decides whether they hold a text or a column."""
    assert leaves(read('s = "flag"')) == [is_("s", "=", "flag", pa.string())]
    conf({"spark.sql.ansi.enabled": "true", "spark.sql.ansi.doubleQuotedIdentifiers": "true"})
    assert leaves(read('"i" = 3')) == [is_("i", "=", 3, pa.int32())]


def test_long_chains_are_read_without_recursion(read):
    """What programs write has thousands of parts."""
    chain = read(" OR ".join(f"(i = {n} AND flag)" for n in range(700)))

    assert len(str(chain)) > 700


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", UsageError, "is empty"),
        ("  ", UsageError, "is empty"),
        (5, UsageError, "must be a SQL string"),
        ("i = ", UsageError, "condition 'i = '"),
        ("i = 1; i = 2", UsageError, "condition"),
        ("i", UsageError, "not a boolean"),
        ("sum(i) > 1", UsageError, "sum"),
        ("nofunction(i) = 1", UsageError, "nofunction"),
        ("i IN (SELECT 1)", UsageError, "subquery"),
        ("EXISTS (SELECT 1)", UsageError, "subquery"),
        ("i = 1 OR", UsageError, "ends in 'OR'"),
        ("flga", UnknownColumnError, "flga.*did you mean 'flag'"),
        ("Odd.x.u = 1", UsageError, "u"),
        ("abs(missing) = 1", UnknownColumnError, "missing"),
        ("s = '\ud800'", UsageError, "not valid Unicode"),
        ("day = 'x'", UsageError, "condition"),
        *slow_but(of=[("(" * 5_000 + "flag" + ")" * 5_000, UsageError, "nested too deeply")]),
    ],
)
def test_what_is_no_condition_is_refused(read, text, error, message):
    """The error names the part, and what to do."""
    with pytest.raises(error, match=message):
        read(text)


def test_columns_are_told(empty, columns):
    """Those that are nested by the outermost name."""
    found = condition("odd.x.y = 1 AND abs(d) > 2", empty, columns, later=False)

    assert found.columns == {"Odd", "d"}


@pytest.mark.parametrize(
    ("condition", "shown", "cause"),
    [
        ("upper(s) = 'A'", "(upper(s) = 'A')", "upper(s), a function"),
        ("upper(s) IS NOT NULL", "(upper(s) IS NOT NULL)", "upper(s), a function"),
        ("CAST(i AS STRING) = '7'", "(CAST(i AS STRING) = '7')", "CAST(i AS STRING), a cast"),
        ("i < d", "(CAST(i AS DOUBLE) < d)", "CAST(i AS DOUBLE), a cast"),
        ("i = t + t", "(i = CAST((t + t) AS INT))", "(t + t), a function"),
        ("NOT (flag AND size(list) = 1)", "(size(list) = 1)", "size(list), a function"),
        ("s LIKE 'x%a_b'", "s LIKE 'x%a_b'", "s LIKE 'x%a_b', a function"),
    ],
)
def test_what_bounds_say_nothing_about_is_shown_as_sql(read, condition, shown, cause):
    """As users write it, without names of Spark's classes."""
    predicate = read(condition)

    assert shown in text(predicate)
    assert causes(predicate)[0].startswith(cause)
