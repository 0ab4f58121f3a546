"""Two others write while a rewrite is under way."""

import shutil
from datetime import timedelta

import zadapter
from integration.kit.rivals import (
    FIRST,
    Rival,
    Trial,
    appended,
    by_key,
    deleted,
    overwritten,
    rows_of,
    run,
    source,
    trials,
)
from integration.parquet.conftest import Folders
from integration.parquet.lake import live
from zadapter_parquet import ParquetBackend, backend


class Rivals(Folders):
    """Folders whose rows are looked at by pyarrow."""

    def create(self, table, start, stop):
        self.sql(source(start, stop)).repartition(4).write.partitionBy("b").parquet(table)
        self.optimize(table, by=["a"], curve="linear")

    def values(self, table):
        return by_key(live(table))


def rows(lake, start, stop):
    return lake.sql(source(start, stop)).selectExpr("a", "c", "cast(b AS int) AS b")


def append(lake, table, n):
    zadapter.append(table, rows(lake, 1_000 * (n + 1), 1_000 * (n + 1) + 3), spark=lake.spark)


def delete(lake, table, n):
    zadapter.delete(table, f"a % 10 = {3 + n}", backend="parquet", spark=lake.spark)


def overwrite(lake, table, n):
    zadapter.overwrite(table, rows(lake, 1_000 * (n + 1), 1_000 * (n + 1) + 50), spark=lake.spark)


def vacuum(lake, table, n):
    zadapter.vacuum(
        table, older_than=timedelta(0), dry_run=False, backend="parquet", spark=lake.spark
    )


def drop(lake, table, n):
    shutil.rmtree(table)
    lake.create(table, 3_000 + n, 3_050)


def drop_log(lake, table, n):
    """What was written and staged stays in the folder, and so do the old rows: another log."""
    shutil.rmtree(f"{table}/_zadapter/log")
    shutil.rmtree(f"{table}/_zadapter/stats")
    for each in ("b=0", "b=1"):
        shutil.rmtree(f"{table}/{each}", ignore_errors=True)
    made = lake.folder / f"made-{n}"
    lake.create(str(made), 3_000 + n, 3_050)
    shutil.copytree(made, table, dirs_exist_ok=True)


def made_again(rows, first, n):
    return rows_of(range(3_000 + n, 3_050))


RIVALS = {
    "append": Rival(act=append, effect=appended),
    "delete": Rival(act=delete, effect=deleted),
    "overwrite": Rival(act=overwrite, effect=overwritten),
    "rewrite": Rival(act=lambda lake, table, n: lake.optimize(table, by=["c"])),
    "vacuum": Rival(act=vacuum, cleans=True),
    "restore": Rival(
        act=lambda lake, table, n: zadapter.restore(table, 1, backend="parquet", spark=lake.spark),
        effect=lambda rows, first, n: first,
        may_fail=True,
    ),
    "drop": Rival(act=drop, effect=made_again, cleans=True, makes=True),
    "drop log": Rival(act=drop_log, effect=made_again, cleans=True, makes=True),
}
EVERY = trials(RIVALS)
SOME = [
    Trial("attempts", "delete", "drop log"),
    Trial("attempts", "append", "drop"),
    Trial("jobs", "delete", "restore"),
    Trial("within", "rewrite", "overwrite"),
]


def test_rows_are_those_of_a_serial_order(spark, tmp_path, trial, monkeypatch):
    """Rivals' changes stay and ours is invisible, whoever comes and whenever."""
    lake, table = Rivals(spark, tmp_path), f"{tmp_path}/events"
    lake.create(table, 0, len(FIRST))
    run(lake, table, trial, RIVALS, (ParquetBackend, backend), monkeypatch)
