"""What ``pip install`` puts on a user's machine."""

import re
import subprocess
import sys
from configparser import ConfigParser
from email import message_from_string
from itertools import chain
from pathlib import Path
from zipfile import ZipFile

import pytest
import tomli
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from zadapter.backend.builds import SPARK, minor
from zadapter.backend.plugins import formats

ROOT = Path(__file__).parents[1]
PACKAGES = ("zadapter", "zadapter_delta", "zadapter_iceberg", "zadapter_parquet")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built as a release is."""
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT],
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    (path,) = folder.glob("*.whl")
    with ZipFile(path) as opened:
        yield opened


def test_the_wheel_holds_the_two_source_roots_and_nothing_else(wheel):
    """No ``backends``, no ``tests`` in anybody's site-packages, and no module is forgotten."""
    shipped = {
        path.relative_to(root).as_posix()
        for root in (ROOT, ROOT / "backends")
        for package in PACKAGES
        for path in (root / package).rglob("*")
        if path.suffix in {".py", ".typed", ".properties", ".java"}
    }

    names = set(wheel.namelist())
    assert {name for name in names if ".dist-info/" not in name} >= shipped
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    assert {name for name in names if name.endswith(".py")} <= shipped
    assert not [name for name in names if name.startswith("zadapter/docs/")]


def metadata(wheel):
    """The text of the wheel's metadata."""
    (listing,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return wheel.read(listing).decode()


def test_the_extras_leave_an_installed_pyspark_alone(wheel):
    """delta-spark would replace it by the PySpark of the newest delta-spark; the jar suffices."""
    requires = message_from_string(metadata(wheel)).get_all("Requires-Dist")
    of_users = [each for each in map(Requirement, requires) if "dev" not in str(each.marker)]
    spark = {str(each.marker): each.specifier for each in of_users if each.name == "pyspark"}

    assert "delta-spark" not in {each.name for each in of_users}
    for extra, name in (("delta", "delta"), ("iceberg", "iceberg"), ("spark", "delta")):
        library = formats()[name].library
        released = [each for each in SPARK if minor(each) in {b.spark for b in library.builds}]
        allowed = spark[f'extra == "{extra}"']
        assert [each for each in SPARK if each in allowed] == released
        assert "3.4.4" not in allowed


def test_the_index_shows_a_readme_that_needs_no_clone(wheel):
    """Its links and pictures would lead nowhere there, and ``.`` is no distribution."""
    shown = message_from_string(metadata(wheel)).get_payload()

    assert re.findall(r"\]\((?!https?:)[^)]*\)", shown) == []
    assert re.findall(r"pip install (\S+)", shown) == ['"zadapter-spark[delta,java,plot]"']
    assert "## Example" in shown
    assert "## Limits" in shown


@pytest.mark.parametrize(
    ("tag", "entry", "reason"),
    [
        ("v0.2.1", "## [0.2.0] - 2026-11-28", "the tag is v0.2.1"),
        ("v0.2.0", "## [Unreleased]", "the newest version of .github/CHANGELOG.md is ''"),
        (
            "v0.2.0",
            "## [0.1.9] - 2026-01-01",
            "the newest version of .github/CHANGELOG.md is '0.1.9'",
        ),
    ],
)
def test_no_release_has_a_version_that_the_tag_or_the_changelog_lacks(tmp_path, tag, entry, reason):
    """It ends before anything is built or published."""
    for name, text in {
        ".ci/release": (ROOT / ".ci" / "release").read_text(),
        ".github/CHANGELOG.md": f"# Changelog\n\n{entry}\n",
        "pyproject.toml": 'version = "0.2.0"\n',
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    done = subprocess.run(
        ["bash", tmp_path / ".ci" / "release", tag], capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert reason in done.stderr
    assert not (tmp_path / "dist").exists()


def test_this_version_has_an_entry_in_the_changelog():
    """Otherwise the tag would be pushed and nothing released."""
    version = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    changelog = (ROOT / ".github" / "CHANGELOG.md").read_text()

    assert re.search(r"^## \[(\d.*)\]", changelog, re.MULTILINE)[1] == version


@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12"])
def test_ci_installs_a_known_release_of_each_dependency(python):
    """``.ci/lock`` was run after the last change of ``pyproject.toml``; no index is named."""
    project = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [project["dependencies"], *project["optional-dependencies"].values()]
    here = default_environment() | {"python_version": python, "python_full_version": f"{python}.0"}
    lines = (ROOT / ".ci" / "constraints.txt").read_text().splitlines()
    locked = [Requirement(line) for line in lines if not line.startswith("#")]
    known = {
        each.name: str(each.specifier).removeprefix("==")
        for each in locked
        if each.marker is None or each.marker.evaluate(here)
    }

    wrong = [
        text
        for text in chain(*asked)
        if (each := Requirement(text)).name != "zadapter-spark"
        and (each.marker is None or each.marker.evaluate(here))
        and known.get(canonicalize_name(each.name), "") not in each.specifier
    ]
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_may_trust_every_package(wheel, package):
    """PEP 561 asks for a marker in each."""
    assert f"{package}/py.typed" in wheel.namelist()


def test_entry_points_lead_to_modules_that_are_there(wheel):
    """The command line, and the formats found in the way a third party's backend would be."""
    (listing,) = (name for name in wheel.namelist() if name.endswith("/entry_points.txt"))
    parser = ConfigParser()
    parser.read_string(wheel.read(listing).decode())

    found = {section: dict(parser[section]) for section in parser.sections()}
    assert found == {
        "console_scripts": {"zadapter": "zadapter.cli.app:app"},
        "zadapter.backends": {
            "delta": "zadapter_delta:DeltaBackend",
            "iceberg": "zadapter_iceberg:IcebergBackend",
            "parquet": "zadapter_parquet:ParquetBackend",
        },
    }
    assert {"zadapter/cli/app.py", "zadapter_delta/__init__.py"} <= set(wheel.namelist())
