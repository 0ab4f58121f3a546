"""Changes of rows, schema and partitions by pyiceberg, and rewrites."""

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform
from pyiceberg.types import DoubleType, LongType, StringType

import zadapter
from integration.fuzz.trials.tally import Row, Tally
from integration.migration.tables import Lakes

STEPS = 10
STRUCT = pa.struct({"x": pa.int32(), "y": pa.string()})
SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("a", pa.int32()),
        pa.field("f", pa.float32()),
        pa.field("s", pa.string()),
        pa.field("n", STRUCT),
    ]
)


def evolution(lakes: Lakes, draw: Random, tally: Tally, scale: float) -> None:
    """Change a table at random by pyiceberg, rewrite it in between, and compare with a model."""
    story = Story(lakes, draw)
    for _ in range(max(3, int(STEPS * scale))):
        story.change()
        if draw.random() < 0.6:
            story.optimize()
            story.check(tally)
    story.optimize()
    story.check(tally)


class Story:
    """Iceberg table, and its expected rows."""

    def __init__(self, lakes: Lakes, draw: Random) -> None:
        self.lakes, self.draw = lakes, draw
        self.name = lakes.name("iceberg")
        self.told: list[str] = []
        self.rows: dict[int, Row] = {}
        self.added = 0
        self.make()
        self.table().append(self.arrow(self.fresh(range(200))))

    def make(self) -> None:
        """Make the table, of format version 1 or 2, partitioned or not."""
        properties = {"format-version": self.draw.choice(["1", "2"])}
        name = self.name.removeprefix("ice.")
        table = self.lakes.catalog.create_table(name, SCHEMA, properties=properties)
        if self.draw.random() < 0.5:
            with table.update_spec() as spec:
                spec.add_field("k", BucketTransform(2), "k_bucket")

    def table(self) -> Table:
        """Return the current table, by pyiceberg."""
        return self.lakes.iceberg(self.name)

    def schema(self) -> pa.Schema:
        """Return the current columns."""
        return self.table().schema().as_arrow()

    def value(self, type_: pa.DataType, key: int) -> Any:
        """Draw a value, sometimes null."""
        if self.draw.random() < 0.1:
            return None
        if pa.types.is_struct(type_):
            return {each.name: self.value(each.type, key) for each in type_}
        if pa.types.is_floating(type_):
            return self.draw.randrange(1_000) / 4
        if pa.types.is_integer(type_):
            return self.draw.randrange(1_000)
        return f"s{self.draw.randrange(50)}"

    def fresh(self, keys: Any) -> list[Row]:
        """Draw rows, and add them to the expected rows."""
        schema = self.schema()
        made = [
            {each.name: key if each.name == "k" else self.value(each.type, key) for each in schema}
            for key in keys
        ]
        self.rows |= {row["k"]: row for row in made}
        return made

    def arrow(self, rows: list[Row]) -> pa.Table:
        """Return rows in the table's types."""
        return pa.Table.from_pylist(rows, self.schema())

    def change(self) -> None:
        """Run one random change."""
        steps: list[Callable[[], str]] = [
            self.append, self.upsert, self.overwrite, self.delete, self.add, self.drop, self.rename,
            self.promote, self.move, self.nest, self.respec,
        ]  # fmt: skip
        self.told.append(self.draw.choice(steps)())

    def append(self) -> str:
        first = max(self.rows, default=0) + 1
        self.table().append(self.arrow(self.fresh(range(first, first + 40))))
        return "append"

    def upsert(self) -> str:
        first = max(self.rows, default=0)
        keys = [*self.draw.sample(sorted(self.rows), 10), *range(first + 1, first + 11)]
        before = dict(self.rows)
        try:
            self.table().upsert(self.arrow(self.fresh(keys)), join_cols=["k"])
        except ValueError as error:
            if "field names are not matching" not in str(error):
                raise
            self.rows = before  # pyiceberg 0.12 cannot, once columns have been renamed or moved
            return "-"
        return "upsert"

    def overwrite(self) -> str:
        low = self.draw.randrange(150)
        gone = [key for key in self.rows if low <= key < low + 20]
        for key in gone:
            del self.rows[key]
        rows = self.arrow(self.fresh(range(low, low + 5)))
        self.table().overwrite(rows, f"k >= {low} and k < {low + 20}")
        return "overwrite"

    def delete(self) -> str:
        low = self.draw.randrange(200)
        self.table().delete(f"k >= {low} and k < {low + 15}")
        self.rows = {key: row for key, row in self.rows.items() if not low <= key < low + 15}
        return "delete"

    def add(self) -> str:
        self.added += 1
        name, type_ = f"c{self.added}", self.draw.choice([LongType(), StringType(), DoubleType()])
        with self.table().update_schema() as change:
            change.add_column(name, type_)
        for row in self.rows.values():
            row[name] = None
        return f"add {name}"

    def others(self) -> list[str]:
        """Return the columns that may be dropped or renamed."""
        return [name for name in self.schema().names if name not in {"k", "n"}]

    def drop(self) -> str:
        if len(self.others()) < 2:
            return "-"
        name = self.draw.choice(self.others())
        with self.table().update_schema(allow_incompatible_changes=True) as change:
            change.delete_column(name)
        for row in self.rows.values():
            del row[name]
        return f"drop {name}"

    def rename(self) -> str:
        """Rename a column, sometimes to the name of a former one."""
        name, gone = self.draw.choice(self.others()), {"a", "f", "s"} - set(self.schema().names)
        self.added += 1
        new = self.draw.choice([*gone, f"r{self.added}"])
        with self.table().update_schema() as change:
            change.rename_column(name, new)
        for row in self.rows.values():
            row[new] = row.pop(name)
        return f"rename {name} to {new}"

    def promote(self) -> str:
        wider = {pa.int32(): LongType(), pa.float32(): DoubleType()}
        found = [field for field in self.schema() if field.type in wider]
        if not found:
            return "-"
        field = self.draw.choice(found)
        with self.table().update_schema() as change:
            change.update_column(field.name, wider[field.type])
        return f"promote {field.name}"

    def move(self) -> str:
        name = self.draw.choice(self.others())
        with self.table().update_schema() as change:
            change.move_first(name)
        return f"move {name}"

    def nest(self) -> str:
        """Add, rename or drop a field of the struct."""
        names = [each.name for each in self.schema().field("n").type]
        self.added += 1
        new = f"n{self.added}"
        if self.draw.random() < 0.5 or len(names) < 2:
            with self.table().update_schema() as change:
                change.add_column(("n", new), LongType())
            self.within(lambda inner: {**inner, new: None})
            return f"add n.{new}"
        old = self.draw.choice(names)
        with self.table().update_schema(allow_incompatible_changes=True) as change:
            if self.draw.random() < 0.5:
                change.rename_column(("n", old), new)
            else:
                change.delete_column(("n", old))
                new = ""
        self.within(
            lambda inner: {(new if name == old else name): v for name, v in inner.items()
                           if new or name != old}
        )  # fmt: skip
        return f"n.{old} becomes {new or 'nothing'}"

    def within(self, change: Callable[[Row], Row]) -> None:
        """Change the struct of each expected row."""
        for row in self.rows.values():
            row["n"] = None if row["n"] is None else change(row["n"])

    def respec(self) -> str:
        """Change the partition spec."""
        table = self.table()
        names = [field.name for field in table.spec().fields]
        if table.format_version == 1 or (names and self.draw.random() < 0.3):
            return "-"  # pyiceberg 0.12 cannot write after version 1 drops a field
        self.added += 1
        kinds = [BucketTransform(3), TruncateTransform(50), IdentityTransform()]
        transform = self.draw.choices(kinds, [5, 5, 1])[0]
        with table.update_spec() as change:
            for name in names:  # nor with two fields of one column
                change.remove_field(name)
            if not names or self.draw.random() < 0.6:
                change.add_field("k", transform, f"k_{self.added}")
        return f"partition by {transform} of k"

    def optimize(self) -> None:
        """Rewrite the table by random columns."""
        simple = [f.name for f in self.schema() if not pa.types.is_struct(f.type)]
        by = self.draw.sample(simple, min(len(simple), self.draw.choice([1, 2])))
        zadapter.optimize(
            self.name, by=by, backend="iceberg", target_file_size="4KB", spark=self.lakes.spark,
            where="k < 100" if self.draw.random() < 0.2 else None, row_groups=2,
            force=self.draw.random() < 0.3,
            curve=self.draw.choice(["adaptive", "zorder", "hilbert", "linear"]),
        )  # fmt: skip
        self.told.append(f"optimize by {','.join(by)}")

    def check(self, tally: Tally) -> None:
        """Compare with the rows that pyiceberg and Spark read."""
        wanted = list(self.rows.values())
        found = self.table().scan().to_arrow()
        tally.compare(f"pyiceberg, {self.told}", wanted, found, "k")
        rows = [
            row.asDict(recursive=True) for row in self.lakes.load("iceberg", self.name).collect()
        ]
        tally.compare(f"Spark, {self.told}", wanted, rows, "k")
