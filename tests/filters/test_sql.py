"""What Spark SQL's conditions are read as; the ids are those of the catalogue."""

import math

import pyarrow as pa
import pytest

from zadapter.errors import UnknownColumnError, UsageError
from zadapter.filters.predicate import (
    And,
    Comparison,
    Constant,
    In,
    IsNull,
    Not,
    Or,
    StartsWith,
    Unknown,
)
from zadapter.filters.sql import parse

SCHEMA = pa.schema(
    [
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("d", pa.float64()),
        ("s", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("Camel", pa.struct([("b.c", pa.int32()), ("x y", pa.struct([("d`e", pa.int32())]))])),
        ("map", pa.map_(pa.string(), pa.int32())),
        ("list", pa.list_(pa.struct([("z", pa.int32())]))),
    ]
)


def read(text):
    """Read a condition on the columns above."""
    return parse(text, SCHEMA)


def compares(op, number, column="i"):
    """A comparison of an integer column."""
    return Comparison((column,), op, pa.scalar(number, pa.int32()))


def text_is(op, text):
    """A comparison of the string column."""
    return Comparison(("s",), op, pa.scalar(text))


def is_flag(op, *, value):
    """A comparison of the boolean column."""
    return Comparison(("flag",), op, pa.scalar(value))


def listed(*numbers, has_null=False):
    """A list of integers that the integer column may be one of."""
    return In(("i",), tuple(pa.scalar(n, pa.int32()) for n in numbers), has_null=has_null)


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("i = 1", compares("=", 1)),
        ("i == 1", compares("=", 1)),
        ("(i) = ((1))", compares("=", 1)),
        ("i < -1", compares("<", -1)),
        ("i <= - 1", compares("<=", -1)),
        ("i > -(-1)", compares(">", 1)),
        ("i >= +1", compares(">=", 1)),
        ("1 < i", compares(">", 1)),
        ("1 <= i", compares(">=", 1)),
        ("1 > i", compares("<", 1)),
        ("1 >= i", compares("<=", 1)),
        ("1 <=> i", compares("<=>", 1)),
        ("i <> 1", Not(compares("=", 1))),
        ("i != 1", Not(compares("=", 1))),
        ("NOT i = 1", Not(compares("=", 1))),
        ("! i = 1", Not(compares("=", 1))),
        ("i IS DISTINCT FROM 1", Not(compares("<=>", 1))),
        ("i IS NOT DISTINCT FROM 1", compares("<=>", 1)),
        ("i BETWEEN 1 AND 3", And((compares(">=", 1), compares("<=", 3)))),
        ("i NOT BETWEEN 1 AND 3", Not(And((compares(">=", 1), compares("<=", 3))))),
        ("2 BETWEEN i AND 3", And((compares("<=", 2), Unknown("2 BETWEEN i AND 3")))),
        ("i IN (1, 2)", listed(1, 2)),
        ("i NOT IN (1, (NULL))", Not(listed(1, has_null=True))),
        ("i IN (NULL)", listed(has_null=True)),
        ("i = NULL", Constant(value=None)),
        ("i <=> NULL", IsNull(("i",))),
        ("i IS NULL", IsNull(("i",))),
        ("i IS NOT NULL", Not(IsNull(("i",)))),
        ("isnull(i)", IsNull(("i",))),
        ("isnotnull(i)", Not(IsNull(("i",)))),
        ("(i = 1) IS NULL", IsNull(("i",))),
        ("(i <> 1) IS NULL", IsNull(("i",))),
        ("(s LIKE 'a%') IS NOT NULL", Not(IsNull(("s",)))),
        ("(i IS NULL) IS NULL", Constant(value=False)),
        ("flag", is_flag("=", value=True)),
        ("NOT flag", Not(is_flag("=", value=True))),
        ("flag = FALSE", is_flag("=", value=False)),
        ("flag IS TRUE", is_flag("<=>", value=True)),
        ("flag IS NOT FALSE", Not(is_flag("<=>", value=False))),
        ("flag IS UNKNOWN", IsNull(("flag",))),
        ("TRUE", Constant(value=True)),
        ("NULL", Constant(value=None)),
        ("i = 1 AND flag", And((compares("=", 1), is_flag("=", value=True)))),
        (
            "i = 1 OR i = 2 AND i = 3",
            Or((compares("=", 1), And((compares("=", 2), compares("=", 3))))),
        ),
        ("i = 1 -- one\n /* or */ OR i = 2", Or((compares("=", 1), compares("=", 2)))),
        ("startswith(s, 'a')", StartsWith(("s",), "a")),
        ("s = 'it''s'", text_is("=", "it's")),
        ("s = 'a' 'b' \"c\"", text_is("=", "abc")),
        ('s = "say ""a"""', text_is("=", 'say "a"')),
    ],
)
def test_conditions_become_predicates(text, predicate):
    """Every way to write a thing is read as the same thing."""
    assert read(text) == predicate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'a\\b'", "a\\b"),
        (r"'\'\"\n\t\r\b\0\Z'", "'\"\n\t\r\b\0\x1a"),
        (r"'\u00e9\U0001F600\uD83D\uDE00'", "é😀😀"),
        (r"'\101\x\18'", "Ax18"),
        (r"'\%\_'", r"\%\_"),
        (r"'\uD83D'", "?"),
    ],
)
def test_escapes_in_strings_are_those_of_spark(text, value):
    """The text of a literal is the one that Spark would compare with."""
    assert read(f"s = {text}") == text_is("=", value)


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("s LIKE 'abc'", text_is("=", "abc")),
        ("s LIKE ''", text_is("=", "")),
        ("s LIKE 'abc%'", StartsWith(("s",), "abc")),
        ("s LIKE 'abc%%'", StartsWith(("s",), "abc")),
        ("s LIKE '%'", StartsWith(("s",), "")),
        ("s LIKE 'a\n%'", StartsWith(("s",), "a\n")),
        ("s NOT LIKE 'abc%'", Not(StartsWith(("s",), "abc"))),
        (r"s LIKE 'a\_b\%%'", StartsWith(("s",), "a_b%")),
        (r"s LIKE 'a\\\\%'", StartsWith(("s",), "a\\")),
        ("s LIKE 'a/_/%//%' ESCAPE '/'", StartsWith(("s",), "a_%/")),
        ("s LIKE 'a^_%' ESCAPE '^'", StartsWith(("s",), "a_")),
        (r"s LIKE 'a\\%' ESCAPE '/'", StartsWith(("s",), "a\\")),
        ("s NOT LIKE 'a/%' ESCAPE '/'", Not(text_is("=", "a%"))),
        ("s LIKE '_a'", And((StartsWith(("s",), ""), Unknown("s LIKE '_a'")))),
        ("s LIKE 'a%b'", And((StartsWith(("s",), "a"), Unknown("s LIKE 'a%b'")))),
    ],
)
def test_s28_like_is_a_prefix_where_it_can_be(text, predicate):
    """Only wildcards that are not escaped end the prefix."""
    assert read(text) == predicate


@pytest.mark.parametrize(
    "text",
    [
        *("s ILIKE 'a%'", "s RLIKE 'a'", "'a%' LIKE s", "startswith('a', s)", "s LIKE lower('A')"),
        *("s LIKE ANY ('a%', 'b%')", "i LIKE '1%'", "s LIKE 'a%b' ESCAPE '%'", "contains(s, 'a')"),
        *("s LIKE 'a/b%' ESCAPE '/'", "s COLLATE UTF8_LCASE = 'a'", "s = 'a' COLLATE UTF8_LCASE"),
        *(
            "i = d",
            "i + 1 > 3",
            "-i < 2",
            "abs(i) = 1",
            "i IN (1, d)",
            "i & 1 = 1",
            "s || 'a' = 'b'",
        ),
        *("i = rand()", "day > current_date", "day < current_date()", "my_udf(i)", "f(i) IS NULL"),
        *(
            "input_file_name() = 'a'",
            "i = (1 + 1)",
            "CASE WHEN flag THEN TRUE END",
            "if(flag, i, 1) = 1",
        ),
        *(
            "1 / i = 0",
            "1 = 1",
            "i",
            "s",
            "map['a'] = 1",
            "map.a = 1",
            "list[0].z = 1",
            "list.z IS NULL",
        ),
        *("exists(list, y -> Y.z > 1)", "(i = 1) = TRUE", "i BETWEEN SYMMETRIC 3 AND 1"),
        *("(i, d) IN ((1, 2))", "i::int = 1", "day > current_date - INTERVAL 1 DAY", "isnan(i)"),
        *("localtimestamp > day", "user = 'me'", "datediff(DAY, day, day) > 1", "db.f(i) = 1"),
        *("s IN (1)", "(flag AND i = 1) IS NULL", "(i IN (1, NULL)) IS NULL", "i IN (1, '2')"),
    ],
)
def test_s26_s27_s33_what_is_not_evaluated_excludes_nothing(text):
    """Functions, arithmetic and casts of a column may be anything; all their columns are known."""
    assert isinstance(read(text), Unknown)


def test_isnan_is_true_or_false_never_null():
    """``isnan(NULL)`` is false in Spark."""
    for column, type_ in (("f", pa.float32()), ("d", pa.float64())):
        found = read(f"isnan({column})")

        assert (found.column, found.op, found.value.type) == ((column,), "<=>", type_)
        assert math.isnan(found.value.as_py())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("CAMEL.`b.c`", ("Camel", "b.c")),
        ("`camel`.`X Y`.`d``e`", ("Camel", "x y", "d`e")),
        ("Day", ("day",)),
        ("camel", ("Camel",)),
        ("map", ("map",)),
    ],
)
def test_s19_names_are_resolved_as_spark_does(text, parts):
    """Case does not matter, and dots, spaces and backticks may be parts of a name."""
    assert read(f"{text} IS NULL") == IsNull(parts)


def test_s19_a_column_named_like_a_function_is_the_column():
    """Spark looks for columns first."""
    names = ["User", "date", "aB", "Ab"]
    schema = pa.schema([(name, pa.string()) for name in names])

    assert parse("user = 'me'", schema) == Comparison(("User",), "=", pa.scalar("me"))
    assert parse("date IS NULL AND Ab IS NULL", schema) == And((IsNull(("date",)), IsNull(("Ab",))))
    with pytest.raises(UsageError, match="ambiguous"):
        parse("abs(ab) = 1", schema)


@pytest.mark.parametrize(
    "text",
    [
        *("x = 1", "x", "abs(x) = 1", "i = 1 OR f(g(x))", "Camel.x = 1", "i.x = 1", "s LIKE x"),
        *("rand() < x.y.z.u.v.w", "i IN (1, x)", "exists(list, y -> x.z = 1)", "if(x, 1, 2) = 1"),
    ],
)
def test_unknown_columns_are_found_anywhere(text):
    """A misspelt name is an error, even where the condition is not evaluated."""
    with pytest.raises(UnknownColumnError, match="x"):
        read(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (" -- nothing", "is empty"),
        ("i = ", "line 1, column 3"),
        ("i = 1 s", "line 1, column 7, near 's'"),
        ("(i = 1", r"Expecting \)"),
        ("s = 'a", "Missing '"),
        ("SELECT 1", "no Spark SQL condition"),
        ("i = 1; i = 2", "more than one condition"),
        ("i = 1; DROP TABLE t", "condition"),
        ("i IN (SELECT 1)", "subquery"),
        ("EXISTS (SELECT 1 FROM t)", "subquery"),
        ("i = (SELECT max(i) FROM t)", "SELECT MAX"),
        ("sum(i) OVER (PARTITION BY s) > 1", "window function"),
        ("java_method('java.lang.System', 'exit') = 1", "JAVA_METHOD"),
        ("f(Reflect('a', 'b')) = 1", "Java"),
        (r"s = '\U00110000'", "U0010FFFF"),
    ],
)
def test_what_is_no_condition_is_refused(text, message):
    """The error names the place or the part, and what to do."""
    with pytest.raises(UsageError, match=message):
        read(text)


def test_s29_long_chains_and_lists_are_read_without_recursion():
    """What programs write has thousands of parts; nesting that overflows is refused."""
    numbers = range(100_000)
    chain = " AND ".join(f"i <> {n}" for n in range(3_000))
    mixed = " OR ".join(f"(i = {n} AND flag)" for n in range(1_000))

    assert len(read(f"i IN ({', '.join(map(str, numbers))})").values) == len(numbers)
    assert read(chain) == And(tuple(Not(compares("=", n)) for n in range(3_000)))
    assert len(read(mixed).parts) == 1_000
    assert read("((i = 1 AND i = 2) AND (i = 3))") == And(
        tuple(compares("=", n) for n in (1, 2, 3))
    )
    for deep in ("(" * 5_000 + "flag" + ")" * 5_000, "NOT " * 5_000 + "flag"):
        with pytest.raises(UsageError, match="nested too deep"):
            read(deep)
