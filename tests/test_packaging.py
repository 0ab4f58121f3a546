"""What ``pip install`` puts on a user's machine."""

import subprocess
import sys
from configparser import ConfigParser
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

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
        if path.suffix in {".py", ".typed", ".properties"}
    }

    names = set(wheel.namelist())
    assert {name for name in names if ".dist-info/" not in name} >= shipped
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == set(PACKAGES)
    assert {name for name in names if name.endswith(".py")} <= shipped


def test_the_extras_leave_an_installed_pyspark_alone(wheel):
    """delta-spark would replace it by the PySpark of the newest delta-spark; the jar suffices."""
    (listing,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    requires = message_from_string(wheel.read(listing).decode()).get_all("Requires-Dist")
    of_users = [each for each in map(Requirement, requires) if "dev" not in str(each.marker)]
    spark = {str(each.marker): each.specifier for each in of_users if each.name == "pyspark"}

    assert "delta-spark" not in {each.name for each in of_users}
    for extra, name in (("delta", "delta"), ("iceberg", "iceberg"), ("spark", "delta")):
        library = formats()[name].library
        released = [each for each in SPARK if minor(each) in {b.spark for b in library.builds}]
        allowed = spark[f'extra == "{extra}"']
        assert [each for each in SPARK if each in allowed] == released
        assert "3.4.4" not in allowed


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
