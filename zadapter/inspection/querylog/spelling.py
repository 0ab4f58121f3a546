"""Names of the table in texts, and texts of statements."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import quote as escaped

from zadapter.base.locations import STORE, unescape_uri, within
from zadapter.base.names import NameParts, quote, split
from zadapter.table.snapshot import Snapshot

_STRING = r"""'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.)*\""""
_COMMENT = r"--[^\n]*|/\*.*?\*/"
_PART = r"(?:`(?:[^`]|``)*`|[^\W\d]\w*)"
_TOKENS = re.compile(rf"{_STRING}|{_COMMENT}|{_PART}(?:\s*\.\s*{_PART})+", re.DOTALL)
_PIECES = re.compile(rf"{_STRING}|{_COMMENT}|`[^`]*`|;", re.DOTALL)
_BEFORE_TABLES = re.compile(r"\b(from|join|table|into|update|using)\s*\Z", re.IGNORECASE)
_VERSION = re.compile(
    r"\s+(?:FOR\s+)?(?:SYSTEM_)?(?:VERSION|TIMESTAMP|TIME)\s+AS\s+OF\s+"
    r"(?:(?:TIMESTAMP\s*|DATE\s*)?'[^']*'|\d+)",
    re.IGNORECASE,
)
_NEAR = 80
"""Characters before a name in which a word marks it as the name of a table."""
_FORMATS = {"delta", "parquet", "iceberg"}


def statements(text: str) -> Iterator[str]:
    """Yield the statements of a script, which semicolons separate."""
    start = 0
    for match in _PIECES.finditer(text):
        if match[0] == ";":
            yield text[start : match.start()]
            start = match.end()
    yield text[start:]


def without_comments(text: str) -> str:
    """Return a text without its comments."""
    return re.sub(
        rf"{_STRING}|{_COMMENT}|`[^`]*`",
        lambda match: " " if match[0].startswith(("--", "/*")) else match[0],
        text,
        flags=re.DOTALL,
    )


@dataclass(frozen=True, slots=True)
class Spelling:
    """The names by which texts refer to a table."""

    names: NameParts
    """The table's name in its catalog, or the name of its folder."""
    location: str
    """Root of the table, unescaped."""
    registered: bool
    """Whether a catalog knows the table. If not, names with other catalogs and schemas before the
    folder's name refer to the table, too, unless a catalog knows them."""
    elsewhere: Callable[[NameParts], bool]
    """Returns whether a catalog has a table or view of a name."""

    @property
    def view(self) -> str:
        """The name of the view that stands for the table."""
        return self.names[-1]

    def is_location(self, path: str) -> bool:
        """Return whether files of a location belong to the table."""
        whole = path if re.match(STORE, path) else f"file:{path}"
        return within(escaped(f"{whole.rstrip('/')}/_", safe=":/@"), self.location)

    def is_table(self, parts: NameParts) -> bool:
        """Return whether a table's name means the table."""
        lowered = tuple(part.lower() for part in parts)
        known = tuple(part.lower() for part in self.names)
        if len(parts) == 2 and lowered[0] in _FORMATS and "/" in parts[1]:  # noqa: PLR2004
            return self.is_location(parts[1])
        if self.registered:
            return known[-len(lowered) :] == lowered
        return lowered[-1] == known[-1] and not (len(parts) > 1 and self.elsewhere(parts))

    def replace_table(self, text: str) -> str:
        """Return a text in which the view stands for the table, without versions of the table."""
        whole = {
            parts[at:]
            for match in _TOKENS.finditer(text)
            if (parts := _names(match[0]))
            and _BEFORE_TABLES.search(text[max(0, match.start() - _NEAR) : match.start()])
            if self.is_table(parts)
            for at in range(len(parts) - 1)
        }
        if self.registered:
            whole |= {self.names[at:] for at in range(len(self.names) - 1)}

        def view(match: re.Match[str]) -> str:
            parts = _names(match[0])
            for length in range(len(parts), 1, -1):
                if any(_same(parts[:length], known) for known in whole):
                    return quote((self.view, *parts[length:]))
            return match[0]

        return re.sub(
            rf"(`{re.escape(self.view)}`|\b{re.escape(self.view)}\b){_VERSION.pattern}",
            r"\1",
            _TOKENS.sub(view, text),
            flags=re.IGNORECASE,
        )


def _names(token: str) -> NameParts:
    """Return the parts of a dotted name; none for texts and comments."""
    if token.startswith(("'", '"', "--", "/*")):
        return ()
    found = re.findall(_PART, token)
    return tuple(p[1:-1].replace("``", "`") if p.startswith("`") else p for p in found)


def _same(left: NameParts, right: NameParts) -> bool:
    return [part.lower() for part in left] == [part.lower() for part in right]


def spelling(snapshot: Snapshot, elsewhere: Callable[[NameParts], bool]) -> Spelling:
    """Return the names of a snapshot's table."""
    is_uri = re.match(STORE, snapshot.location)
    location = unescape_uri(snapshot.location) if is_uri else snapshot.location
    folder = location.rstrip("/").rpartition("/")[2]
    identifier = snapshot.identifier
    names = (folder,) if identifier is None else split(identifier)
    return Spelling(names, location, identifier is not None, elsewhere)
