"""Spark SQL conditions, read into predicates.

What is read is what Spark's default settings make of the text: of literals with backslashes,
for instance. A part that zadapter cannot decide from bounds becomes ``Unknown``; it excludes
no file.
"""

import pyarrow as pa
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError

from zadapter.errors import UsageError
from zadapter.filters import datetimes, literals
from zadapter.filters.conditions import Scope, predicate
from zadapter.filters.predicate import Predicate

_REFLECTION = {"java_method", "reflect", "try_reflect"}
_SHOWN = 60


def parse(text: str, schema: pa.Schema, *, timezone: str = "UTC") -> Predicate:
    """Read a condition as Spark SQL writes it, ``day >= DATE '2024-01-01' AND b IS NULL``.

    Args:
        text: One condition, without WHERE.
        schema: The table's columns; partition columns are among them.
        timezone: The session's zone, for timestamps that name none. One that Python does not
            know makes them ``Unknown``.

    Returns:
        A predicate whose columns are written as *schema* writes them.

    Raises:
        UnknownColumnError: The text names a column that *schema* does not have.
        UsageError: The text is no condition, is nested too deep, or is one that zadapter
            refuses: subqueries, window functions and calls of Java methods.
    """
    try:
        tree = _tree(text)
        _refuse(tree)
        scope = Scope(schema, datetimes.zone(timezone))
        scope.check_columns(tree)
        return predicate(scope, tree)
    except RecursionError:
        raise UsageError(
            f"the condition {_short(text)} is nested too deep; drop the parentheses around "
            "chains of AND or OR, and write lists as IN (...)"
        ) from None


def _tree(text: str) -> exp.Expr:
    try:
        trees = Spark().parser().parse_into(exp.Condition, _tokens(text), text)
    except SqlglotError as error:
        raise UsageError(
            f"{_short(text)} is no Spark SQL condition: {_reason(error)}; write one as it "
            "stands after WHERE, for instance: day >= DATE '2024-01-01' AND country = 'de'"
        ) from error
    match [tree for tree in trees if tree is not None]:
        case [tree]:
            return tree
        case []:
            raise UsageError("the condition is empty; leave it out to mean every row")
        case _:
            raise UsageError(f"{_short(text)} is more than one condition; join them by AND")


def _tokens(text: str) -> list[Token]:
    """Cut *text*, its strings read by Spark's rules rather than those of the tokenizer."""
    tokens: list[Token] = []
    for token in Spark().tokenize(text):
        if token.token_type != TokenType.STRING:
            tokens.append(token)
            continue
        token.text = literals.unquote(text[token.start : token.end + 1])
        if not tokens or tokens[-1].token_type != TokenType.STRING:
            tokens.append(token)
            continue
        last = tokens[-1]
        last.text += text[token.start] * is_doubled(text, last, token) + token.text
        last.end = token.end
    return tokens


def names_function(name: str) -> bool:
    """Tell whether the parser takes *name* for a function with a meaning of its own."""
    parser = Spark.parser_class
    return name.upper() in {*parser.FUNCTIONS, *parser.FUNCTION_PARSERS}


def is_doubled(text: str, first: Token, second: Token) -> bool:
    """Tell whether two strings are one, of which a quote is doubled where they touch."""
    return second.start == first.end + 1 and text[first.end] == text[second.start]


def _reason(error: SqlglotError) -> str:
    if not isinstance(error, ParseError) or not error.errors:
        return str(error.__cause__ or error)
    first = error.errors[0]
    place = f"line {first['line']}, column {first['col']}, near {first['highlight']!r}"
    return f"{first['description']} at {place}"


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def _refuse(tree: exp.Expr) -> None:
    for node in tree.walk():
        if isinstance(node, exp.Query):
            what = "a subquery; run it first and write its result"
        elif isinstance(node, exp.Window):
            what = "a window function; a condition sees one row at a time"
        elif isinstance(node, exp.Anonymous) and str(node.this).lower() in _REFLECTION:
            what = "a call of a Java method; use a function of Spark"
        else:
            continue
        raise UsageError(f"the condition holds {_short(node.sql('spark'))}, {what}")
