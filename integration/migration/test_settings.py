"""What the user has set does not change what is migrated."""

from contextlib import suppress

import pyarrow.parquet as pq
import pytest

import zadapter
from integration.kit.sweep import rounds, rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of the types that all formats have, in gaps of calendars and time zones."""
    table = rows().drop_columns(["u64", "nothing"])
    path = tmp_path_factory.mktemp("settings")
    pq.write_table(table.slice(0, 300), path / "1.parquet")
    return str(path)


@pytest.mark.parametrize("to", ["delta", "iceberg"])
def test_no_setting_changes_what_is_migrated(lakes, spark, folder, to):
    """Nor what such a table is rewritten to, every boolean of Spark's being turned."""
    plain, turned = lakes.name(to), lakes.name(to)
    session = spark.newSession()
    lakes.migrate("parquet", folder, to, plain)
    for key, value in rounds(spark)[0].items():
        with suppress(Exception):  # some values go with certain others only
            session.conf.set(key, value)

    zadapter.migrate(folder, to=to, target=turned, backend="parquet", spark=session)
    assert lakes.read(to, turned) == lakes.read(to, plain)
    zadapter.optimize(turned, by="row", spark=session, force=True)
    assert lakes.read(to, turned) == lakes.read(to, plain)
