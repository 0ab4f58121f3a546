"""A row's file is found by the name that Spark shows for it, whatever characters that has."""

from types import SimpleNamespace
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zadapter.backend.format import Format
from zadapter.backend.row_files import row_files

names = st.text(
    st.sampled_from("a %25+#?=/:;&[]{}*'\"\\\n\t\x01\x7füu\u0308\U0001f600.~")
    | st.characters(codec="utf-8", exclude_characters="\0"),
    min_size=1,
    max_size=12,
)
paths = st.lists(names.map("/t/{}".format), min_size=1, max_size=6, unique=True)
JAVA = "/=+&;:@$,!*'()~_.-"
"""Characters that Java's ``URI`` does not escape in a path."""


def escaped(path, extra=""):
    """Escape a path as Java does; *extra* stays, as other writers leave it."""
    return "".join(
        c if c in JAVA + extra or (ord(c) > 127 and c.isprintable()) else quote(c, safe="")
        for c in path
    )


def found(paths, shown, *, by_path):
    backend = SimpleNamespace(
        format=Format(name="x", rows_show_paths=by_path),
        uris=lambda _, paths: [f"file:{quote(path)}" for path in paths],
    )
    of_rows = row_files(backend, None, paths)
    assert not of_rows.is_ambiguous
    return [of_rows.number(name) for name in shown]


@given(paths)
def test_names_that_are_uris_are_unescaped_once(paths):
    """The log may escape other characters than Spark, and name the store in another form."""
    for form in ("file:{}", "file://{}"):
        shown = [form.format(escaped(path)) for path in paths]
        assert found(paths, shown, by_path=False) == list(range(len(paths)))


@given(paths)
def test_names_that_are_paths_are_not_unescaped(paths):
    """One file may be called as the URI of another."""
    every = list(dict.fromkeys([*paths, *map(escaped, paths)]))

    assert found(every, every, by_path=True) == list(range(len(every)))


@pytest.mark.parametrize("by_path", [True, False])
def test_a_file_of_another_version_has_no_number(by_path):
    assert found(["/t/a b"], ["/t/a%2520b"], by_path=by_path) == [None]


def test_the_same_path_in_two_stores_is_ambiguous():
    backend = SimpleNamespace(format=Format(name="x"), uris=lambda _, paths: paths)

    assert row_files(backend, None, ["s3://a/t/x", "s3://b/t/x"]).is_ambiguous
