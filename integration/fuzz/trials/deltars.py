"""Changes of Delta tables by deltalake and Polars, deletion vectors by Spark, and rewrites."""

from random import Random

import deltalake
import polars as pl
import pyarrow as pa
from deltalake import DeltaTable

import zadapter
from integration.fuzz.trials.model import Model
from integration.fuzz.trials.tally import Tally
from integration.kit.lakes import settings
from integration.migration.tables import Lakes

STEPS = 8
TYPES = pa.schema([("a", pa.int64()), ("p", pa.int64()), ("b", pa.string())])


def deltars(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Merge, update, delete, compact and append by deltalake; then delete by Spark's vectors."""
    story = Story(lakes, draw)
    for _ in range(max(3, int(STEPS * scale))):
        story.step()
        if draw.random() < 0.6:
            story.optimize(tally)
    story.vectors()
    story.optimize(tally)
    story.vectors()
    story.optimize(tally, force=True)


class Story:
    """Table made by deltalake, and its expected rows."""

    def __init__(self, lakes: Lakes, draw: Random) -> None:
        self.lakes, self.draw, self.model = lakes, draw, Model(draw)
        self.path, self.told = lakes.name("delta"), list[str]()
        self.has_vectors = False
        self.partition = ["p"] if draw.random() < 0.5 else None
        rows = pa.Table.from_pylist(self.model.fresh(200), TYPES)
        deltalake.write_deltalake(self.path, rows, partition_by=self.partition)

    def table(self) -> DeltaTable:
        """Return the current table."""
        return DeltaTable(self.path)

    def step(self) -> None:
        """Run one random change."""
        every = [self.append, self.polars, self.merge, self.update, self.delete, self.compact,
                 self.restore, self.overwrite]  # fmt: skip
        step = self.draw.choice(every)
        step(self.draw.randrange(1, 40))
        self.told.append(step.__name__)

    def append(self, number: int) -> None:
        rows = pa.Table.from_pylist(self.model.fresh(number), TYPES)
        deltalake.write_deltalake(self.path, rows, mode="append")

    def polars(self, number: int) -> None:
        frame = pl.DataFrame(pa.Table.from_pylist(self.model.fresh(number), TYPES))
        frame.write_delta(self.path, mode="append")

    def merge(self, number: int) -> None:
        keys = self.model.some(number)
        rows = self.model.put(keys[1:]) + self.model.fresh(3)
        gone = [{"a": key, "p": key % 3, "b": None} for key in keys[:1]]
        self.model.drop(lambda row: row["a"] in keys[:1])
        news = pa.Table.from_pylist([*rows, *gone], TYPES)
        merged = self.table().merge(news, "t.a = n.a", source_alias="n", target_alias="t")
        merged = merged.when_matched_delete("n.b IS NULL").when_matched_update_all()
        merged.when_not_matched_insert_all().execute()

    def update(self, number: int) -> None:
        low, text = self.draw.randrange(self.model.next), f"u{self.draw.randrange(99)}"
        which = f"a >= {low} AND a < {low + number}"
        self.table().update(new_values={"b": text}, predicate=which)
        self.model.change(lambda row: low <= row["a"] < low + number, text)

    def delete(self, number: int) -> None:
        low = self.draw.randrange(self.model.next)
        self.table().delete(f"a >= {low} AND a < {low + number}")
        self.model.drop(lambda row: low <= row["a"] < low + number)

    def compact(self, number: int) -> None:
        if number % 2:
            self.table().optimize.compact()
        else:
            self.table().optimize.z_order(["a", "b"])

    def restore(self, number: int) -> None:
        """Append, and restore the previous version."""
        version, before = self.table().version(), dict(self.model.rows)
        self.append(number)
        self.table().restore(version)
        self.model.rows = before

    def overwrite(self, number: int) -> None:
        low = self.draw.randrange(self.model.next)
        self.model.drop(lambda row: low <= row["a"] < low + number)
        rows = pa.Table.from_pylist(self.model.put(range(low, low + min(2, number))), TYPES)
        self.model.next = max(self.model.next, low + 2)
        where = f"a >= {low} AND a < {low + number}"
        deltalake.write_deltalake(self.path, rows, mode="overwrite", predicate=where)

    def vectors(self) -> None:
        """Delete rows by Spark's deletion vectors."""
        low = self.draw.randrange(self.model.next)
        key = "spark.databricks.delta.delete.deletionVectors.persistent"
        properties = "'delta.enableDeletionVectors' = 'true'"
        self.lakes.sql(f"ALTER TABLE delta.`{self.path}` SET TBLPROPERTIES ({properties})")
        with settings(self.lakes.spark, {key: "true"}):
            self.lakes.sql(f"DELETE FROM delta.`{self.path}` WHERE a >= {low} AND a < {low + 30}")
        self.model.drop(lambda row: low <= row["a"] < low + 30)
        self.told.append("deletion vectors")

    def optimize(self, tally: Tally, *, force: bool = False) -> None:
        """Rewrite, and compare."""
        where = f"a < {self.model.next // 2}" if not force and self.draw.random() < 0.3 else None
        zadapter.optimize(
            self.path, by=self.draw.choice(["a", "b"]), where=where, force=force,
            target_file_size="3KB", row_groups=2, backend="delta", spark=self.lakes.spark,
        )  # fmt: skip
        self.told.append("optimize" if where is None else f"optimize where {where}")
        wanted = self.model.listed()
        found = [row.asDict() for row in self.lakes.load("delta", self.path).collect()]
        tally.compare(f"Spark, {self.told}", wanted, found, "a")
        rows = pa.table(pl.read_delta(self.path).to_arrow())
        tally.compare(f"Polars, {self.told}", wanted, rows, "a")
        rows = pa.table(deltalake.QueryBuilder().register("t", self.table()).execute(
            "SELECT a, p, b FROM t").read_all())  # fmt: skip
        tally.compare(f"deltalake, {self.told}", wanted, rows, "a")
