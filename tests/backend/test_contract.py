"""Backends are found by their entry points, as those of third parties are."""

import sys

import pytest

from zadapter.backend.plugins import GROUP, formats, load, names
from zadapter.errors import MissingBackendError

CLASS = """
from zadapter.backend.format import Format

class {name}:
    format = Format(name="lance")
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Make an environment of the packages that are installed by calling this."""
    site = tmp_path / "site"
    site.mkdir()
    kept = [path for path in sys.path if "site-packages" not in path and path]
    monkeypatch.setattr(sys, "path", [str(site), *kept])

    def install(package, entry, code=""):
        (site / f"{package}.py").write_text(code)
        info = site / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{GROUP}]\n{entry}\n")
        monkeypatch.delitem(sys.modules, package, raising=False)

    yield install
    for path in site.glob("*.py"):
        sys.modules.pop(path.stem, None)


def test_a_backend_is_what_its_entry_point_names(install):
    """Another package's is as good as our own."""
    install("zadapter_lance", "lance = zadapter_lance:Backend", CLASS.format(name="Backend"))

    assert load("lance").__name__ == "Backend"
    assert names() == ["lance"]


def test_no_backend_at_all(install):
    """Nothing is installed."""
    assert names() == []
    with pytest.raises(MissingBackendError, match="unknown backend 'delta'; installed: none"):
        load("delta")


def test_an_unknown_backend(install):
    """The error lists those there are, sorted."""
    install("zadapter_b", "b = zadapter_b:B")
    install("zadapter_a", "a = zadapter_a:A")

    with pytest.raises(MissingBackendError, match="unknown backend 'c'; installed: a, b"):
        load("c")


def test_two_packages_of_one_name(install):
    """Neither is preferred."""
    install("zadapter_a", "delta = zadapter_a:A")
    install("zadapter_b", "delta = zadapter_b:B")

    assert names() == ["delta"]
    with pytest.raises(MissingBackendError, match="2 packages") as raised:
        load("delta")
    assert "zadapter_a:A" in str(raised.value)
    assert "zadapter_b:B" in str(raised.value)


def test_a_package_seen_twice_is_one_package(install):
    """An editable install beside a regular one names the same class."""
    install("zadapter_a", "a = zadapter_a:A", CLASS.format(name="A"))
    install("zadapter_again", "a = zadapter_a:A")

    assert load("a").__name__ == "A"


def test_a_backend_whose_needs_are_missing(install):
    """The error has the package to install: another project's extras are not zadapter's."""
    install("zadapter_a", "a = zadapter_a:A", "import no_such_package")

    with pytest.raises(MissingBackendError, match="requires no_such_package") as raised:
        load("a")
    assert "; install no_such_package" in str(raised.value)
    assert isinstance(raised.value.__cause__, ImportError)


def test_a_backend_without_a_format(install):
    """It was written for an earlier contract."""
    install("zadapter_a", "a = zadapter_a:A", "class A: pass")

    with pytest.raises(MissingBackendError, match="backend 'a' has no attribute format"):
        load("a")


def test_formats_are_those_that_can_be_loaded(install):
    """A package whose needs are missing does not stop the others."""
    install("zadapter_a", "a = zadapter_a:A", "import no_such_package")
    install("zadapter_b", "b = zadapter_b:B", CLASS.format(name="B"))

    assert {name: form.name for name, form in formats().items()} == {"b": "lance"}


def test_our_own_backends_are_registered():
    """At least Delta's; its class is not imported to find that out."""
    assert "delta" in names()
