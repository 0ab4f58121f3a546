"""Hints for installation fit the way in which zadapter was installed."""

import json
from importlib.metadata import PackageNotFoundError

import pytest

from zadapter.base import distribution


class Installed:
    """A distribution as an installer leaves it, with or without the file of PEP 610."""

    def __init__(self, source):
        self.source = source

    def read_text(self, name):
        assert name == "direct_url.json"
        return None if self.source is None else json.dumps(self.source)


def of(source):
    def found(name):
        assert name == "zadapter-spark"
        if source == "none":
            raise PackageNotFoundError
        return Installed(source)

    return found


@pytest.mark.parametrize(
    ("source", "command"),
    [
        (None, "run pip install 'zadapter-spark[delta]'"),
        ("none", "run pip install 'zadapter-spark[delta]'"),
        ({"archive_info": {}}, "run pip install 'zadapter-spark[delta]'"),
        ({"dir_info": {}}, "run pip install '.[delta]' in a clone of zadapter's repository"),
        (
            {"dir_info": {"editable": True}},
            "run pip install '.[delta]' in a clone of zadapter's repository",
        ),
    ],
    ids=["index", "path", "wheel", "clone", "editable clone"],
)
def test_the_hint_names_the_index_or_the_clone(monkeypatch, source, command):
    """In a clone, the index may not have the version; elsewhere, there is no clone."""
    monkeypatch.setattr(distribution, "distribution", of(source))

    assert distribution.install_command("delta") == command
