"""Tested releases: the table of the documents, and what counts as tested."""

import re

import pytest

from integration.matrix.cells import CELLS, PATCHES
from tests.kit.documents import read
from zadapter.backend import builds
from zadapter.backend.builds import SPARK, Standing, minor
from zadapter.backend.plugins import formats

DELTA, ICEBERG = (formats()[name].library.builds for name in ("delta", "iceberg"))


def releases(library, spark):
    return ", ".join(build.version for build in library if build.spark == spark) or "none"


def test_the_documents_have_the_table_of_the_code():
    """One row for each minor version of Spark, the preferred release first."""
    text = (
        read("zadapter/docs/how-to/platforms.md")
        .partition("## Tested releases")[2]
        .partition("\n## ")[0]
    )

    rows = re.findall(r"^\| (\d\.\d) \| (.*) \| (.*) \|$", text, re.MULTILINE)

    assert rows == [
        (spark, releases(DELTA, spark), releases(ICEBERG, spark))
        for spark in sorted({minor(release) for release in SPARK}, reverse=True)
    ]


@pytest.mark.parametrize(
    ("spark", "standing", "is_tested"),
    [
        ("4.1.4", Standing.LISTED, True),
        ("4.1.99", Standing.PATCH, True),
        ("4.1.4-amzn-0", Standing.BUILD, False),
        ("4.99.0", Standing.UNKNOWN, False),
        ("4.99.0-amzn-0", Standing.UNKNOWN, False),
        ("3.4.4", Standing.UNKNOWN, False),
    ],
)
def test_a_release_has_one_standing(spark, standing, is_tested):
    """A listed one needs no self-test of its rows, a tested one none of its commits."""
    assert builds.standing(spark) is standing
    assert standing.is_tested is is_tested


@pytest.mark.parametrize(
    ("spark", "delta", "tested", "nearest"),
    [
        ("4.1.4", "4.4.0", True, ("4.1.4", "4.4.0")),
        ("4.1.9", "4.4.1", True, ("4.1.4", "4.4.0")),
        ("4.1.1", "4.2.0", True, ("4.1.1", "4.2.0")),
        ("4.1.1-amzn-0", "4.2.0", False, ("4.1.1", "4.2.0")),
        ("3.5.6", "3.3.2-amzn-0", False, ("3.5.6", "3.3.2")),
        ("4.0.2", "4.2.0", False, ("4.0.2", "4.0.0")),
        ("4.3.0", "4.5.0", False, ("4.2.1", "4.4.0")),
        ("3.5.6", "4.4.0", False, ("3.5.6", "3.3.2")),
    ],
)
def test_patches_count_as_tested_and_variants_do_not(spark, delta, tested, nearest):
    """What is nearest has first the nearest Spark."""
    assert builds.is_tested(DELTA, spark, delta) is tested
    assert builds.nearest(DELTA, spark, delta) == nearest


@pytest.mark.parametrize("spark", SPARK)
def test_every_tested_spark_has_a_delta_of_its_scala(spark):
    """Spark 3.5 of PyPI is built for Scala 2.12, later ones for 2.13."""
    build = builds.choose_build(DELTA, spark)

    assert build.scala == ("2.12" if minor(spark) == "3.5" else "2.13")


def test_every_build_is_in_a_cell_and_every_cell_runs_at_night():
    """What counts as tested is tested, with the cell's Python."""
    assert {build.packages for cell in CELLS for build in cell.builds} == {
        build.packages for build in (*DELTA, *ICEBERG)
    }
    assert {cell.spark for cell in CELLS} == {*SPARK}
    assert all(builds.standing(cell.spark).is_tested for cell in PATCHES)
    assert not {cell.spark for cell in PATCHES} & {*SPARK}
    nightly = read(".github/workflows/nightly.yml")
    assert {cell.python for cell in (*CELLS, *PATCHES)} <= {
        *re.findall(r"\d\.\d+$", nightly, re.MULTILINE)
    }
