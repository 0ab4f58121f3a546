"""What in a condition some sessions of Spark take for something else.

Conditions are read by Spark's defaults (:mod:`zadapter.filters.sql`). A setting that gives words
another meaning is no matter where those words are not used.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
from sqlglot import Token, TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from zadapter.base.names import leaves
from zadapter.filters.sql import is_doubled

_REFERENCE = re.compile(r"\$\{(?:\w+?:)?\S+?\}", re.ASCII)
"""``ConfigReader.REF_RE`` of Spark."""
_ZONED = re.compile(r":\d{1,2}(?:\.\d+)?(?:Z|[+-]\d{2}:\d{2}).\Z", re.ASCII | re.DOTALL)
_TYPES = frozenset(
    {TokenType.DATE, TokenType.TIMESTAMP, TokenType.TIMESTAMPTZ, TokenType.TIMESTAMPNTZ}
)


@dataclass(frozen=True, slots=True)
class _Text:
    whole: str
    tokens: tuple[Token, ...]
    schema: pa.Schema

    def strings(self, *, but_after: frozenset[TokenType] = frozenset()) -> list[str]:
        """Return strings as they are written, in quotes, but those that follow such a word."""
        words = [None, *(each.token_type for each in self.tokens)]
        return [
            self.whole[each.start : each.end + 1]
            for word, each in zip(words, self.tokens, strict=False)
            if each.token_type == TokenType.STRING and word not in but_after
        ]

    @property
    def untyped(self) -> list[str]:
        """Strings that no word before says the type of, as ``DATE '2024-01-01'`` does."""
        return self.strings(but_after=_TYPES)

    @property
    def between(self) -> str:
        """What stands between the tokens: comments."""
        starts = [each.start for each in self.tokens] + [len(self.whole)]
        ends = [0, *(each.end + 1 for each in self.tokens)]
        return "".join(self.whole[a:b] for a, b in zip(ends, starts, strict=True))


def _reference(text: _Text) -> str | None:
    found = _REFERENCE.search(text.whole)
    return found and found[0]


def _backslash(text: _Text) -> str | None:
    return "\\" if any("\\" in each for each in text.strings()) else None


def _doubled(text: _Text) -> str | None:
    """Return a quote that is doubled within a string: two tokens that touch."""
    for first, second in pairwise(text.tokens):
        strings = first.token_type == second.token_type == TokenType.STRING
        if strings and is_doubled(text.whole, first, second):
            return text.whole[first.end] * 2
    return None


def _double_quoted(text: _Text) -> str | None:
    return next((each for each in text.strings() if each.startswith('"')), None)


def _moment_as_text(text: _Text) -> str | None:
    temporal = any(pa.types.is_temporal(type_) for _, type_ in leaves(text.schema))
    return next(iter(text.untyped), None) if temporal else None


def _zoned(text: _Text) -> str | None:
    return next((each for each in text.untyped if _ZONED.search(each)), None)


@dataclass(frozen=True, slots=True)
class _Rule:
    setting: str
    found: Callable[[_Text], str | None]
    on: str = "true"
    ansi: str | None = None
    """What ``spark.sql.ansi.enabled`` must be for the setting to count."""

    def counts(self, settings: Callable[[str], str]) -> bool:
        wanted = {self.setting: self.on} | ({_ANSI: self.ansi} if self.ansi else {})
        return all(settings(name).strip().lower() == value for name, value in wanted.items())


_ANSI = "spark.sql.ansi.enabled"
_RULES = (
    _Rule("spark.sql.variable.substitute", _reference),
    _Rule("spark.sql.parser.escapedStringLiterals", _backslash),
    _Rule("spark.sql.parser.escapedStringLiterals", _doubled),
    _Rule("spark.sql.legacy.consecutiveStringLiterals.enabled", _doubled),
    _Rule("spark.sql.ansi.doubleQuotedIdentifiers", _double_quoted, ansi="true"),
    _Rule("spark.sql.legacy.typeCoercion.datetimeToString.enabled", _moment_as_text, ansi="false"),
    _Rule("spark.sql.timestampType", _zoned, on="timestamp_ntz"),
)


def other_meaning(text: str, schema: pa.Schema, settings: Callable[[str], str]) -> str | None:
    """Say what in a condition Spark would take for something else than zadapter does.

    Args:
        text: The condition.
        schema: The table's columns.
        settings: Returns a setting of the session.

    Returns:
        What it is, and why; None if there is nothing, or if the text is no SQL at all.
    """
    try:
        read = _Text(text, tuple(Spark().tokenize(text)), schema)
    except SqlglotError:
        return None
    # SqlBaseLexer.g4, SIMPLE_COMMENT
    if "--" in read.between and "\\\n" in read.between:
        return (
            "a comment and a backslash at the end of a line, behind which Spark takes the next "
            "line for a comment, too; leave the comment out"
        )
    for rule in _RULES:
        words = rule.found(read)
        if words and rule.counts(settings):
            return (
                f"{words}, which Spark reads in a way of its own, since {rule.setting} is "
                f"{rule.on} in this session; write it in another way, or set that back"
            )
    return None
