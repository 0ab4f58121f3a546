"""A call reads the table's log once, by a backend that it closes."""

from collections import Counter

import pytest

import zadapter
from integration.migration.tables import Lakes
from zadapter.errors import UsageError
from zadapter_delta import DeltaBackend
from zadapter_iceberg import IcebergBackend
from zadapter_parquet import ParquetBackend

BACKENDS = {"delta": DeltaBackend, "iceberg": IcebergBackend, "parquet": ParquetBackend}


@pytest.fixture
def seen(monkeypatch, table_format):
    """Counts of what happens to backends: opened, closed; and the reads of the table's log."""
    counts = Counter()

    def spied(name, method):
        def spy(self, *args, **kwargs):
            counts[name] += 1
            return method(self, *args, **kwargs)

        return spy

    for name, backend in BACKENDS.items():
        monkeypatch.setattr(backend, "__init__", spied("opened", backend.__init__))
        monkeypatch.setattr(backend, "close", spied("closed", backend.close))
        if name == table_format:
            monkeypatch.setattr(backend, "snapshot", spied("read", backend.snapshot))
    return counts


@pytest.fixture
def table(spark, catalog, tmp_path, table_format):
    rows, lakes = spark.range(40).selectExpr("id", "id % 7 AS key"), Lakes(spark, catalog, tmp_path)
    name = lakes.make(table_format, rows, files=2)
    lakes.append(table_format, name, rows)  # a folder of Parquet files has a log from then on
    return name


@pytest.mark.every_format
def test_the_log_that_a_format_is_detected_by_is_read_once(spark, table, seen):
    """Whatever is asked, the backends that did not find the table are closed, too."""
    calls = {
        "plan": lambda: zadapter.plan(table, by="key", spark=spark),
        "analyze": lambda: zadapter.analyze(table, by="key", spark=spark),
    }
    for name, call in calls.items():
        seen.clear()
        call()
        assert seen["read"] == 1, name
        assert seen["opened"] == seen["closed"] > 0, name


@pytest.mark.every_format
def test_a_backend_stays_open_for_the_rows_that_are_read_later(spark, table, seen):
    """Iceberg's scans are registered until they are closed."""
    rows = zadapter.read(table, where="key = 1", spark=spark)

    assert seen["read"] == 1
    assert seen["opened"] == seen["closed"] + 1
    assert rows.count() == 12


def test_a_backend_is_closed_if_reading_fails(spark, table, seen):
    """No rows are read later."""
    with pytest.raises(UsageError):
        zadapter.read(table, where="no_such_column = 1", spark=spark)

    assert seen["opened"] == seen["closed"] > 0
