"""Tables that move from one format to another."""

import pytest

from integration.migration.tables import Lakes


@pytest.fixture(scope="session")
def lakes(spark, catalog, tmp_path_factory):
    """Tables of all formats."""
    return Lakes(spark, catalog, tmp_path_factory.mktemp("lakes"))
