"""Two others write while a rewrite is under way."""

import shutil

import deltalake
import pytest

from integration.delta.conftest import Tables
from integration.kit.lakes import settings
from integration.kit.rivals import FIRST, SHARED, Rival, Trial, by_key, rows_of, run, source, trials
from zadapter_delta import DeltaBackend
from zadapter_delta.commits import rewrites

UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


class Rivals(Tables):
    """Tables that rivals name by their path."""

    def called(self, path):
        return f"delta.`{path}`"

    def create(self, path, start, stop):
        rows = self.sql(source(start, stop)).repartition(4)
        rows.write.format("delta").partitionBy("b").save(path)

    def values(self, path):
        """The rows by delta-rs, or by Spark where delta-rs does not read deletion vectors."""
        table = deltalake.DeltaTable(path)
        if "deletionVectors" in (table.protocol().reader_features or []):
            return by_key(self.load(path).toArrow())
        return by_key(table.to_pyarrow_table())


def drop(lake, path, n):
    shutil.rmtree(path)
    lake.create(path, 3_000 + n, 3_050)


def drop_log(lake, path, n):
    """The files of the old table stay in the folder, under other names."""
    shutil.rmtree(f"{path}/_delta_log")
    for each in ("b=0", "b=1"):
        shutil.move(f"{path}/{each}", f"{path}/old-{n}-{each}")
    lake.create(path, 3_000 + n, 3_050)


def vacuum(lake, path, n):
    with settings(lake.spark, UNCHECKED):
        lake.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS")


def on_path(text):
    return lambda lake, path, n: lake.sql(text.format(f"delta.`{path}`"))


def made_again(rows, first, n):
    return rows_of(range(3_000 + n, 3_050))


RIVALS = SHARED | {
    "vacuum": Rival(act=vacuum, cleans=True),
    "restore": Rival(
        act=on_path("RESTORE TABLE {} TO VERSION AS OF 0"),
        effect=lambda rows, first, n: first,
        may_fail=True,
    ),
    "compaction": Rival(act=on_path("OPTIMIZE {}")),
    "z-order": Rival(act=on_path("OPTIMIZE {} ZORDER BY (c)")),
    "drop": Rival(act=drop, effect=made_again, cleans=True, makes=True),
    "drop log": Rival(act=drop_log, effect=made_again, cleans=True, makes=True),
}
EVERY = trials(RIVALS)
SOME = [
    Trial("attempts", "delete", "restore"),
    Trial("attempts", "append", "drop"),
    Trial("jobs", "update", "compaction"),
    Trial("within", "append", "vacuum"),
]


@pytest.mark.parametrize("vectors", ["false", "true"])
def test_rows_are_those_of_a_serial_order(spark, tmp_path, trial, vectors, monkeypatch, request):
    """Rivals' changes stay and ours is invisible, whoever comes and whenever."""
    if vectors == "true" and request.config.getoption("--sweep") is None:
        pytest.skip("in the sweep")
    lake, path = Rivals(spark, tmp_path), str(tmp_path / "events")
    name = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
    with settings(spark, {name: vectors}):
        lake.create(path, 0, len(FIRST))
        run(lake, path, trial, RIVALS, (DeltaBackend, rewrites), monkeypatch)
