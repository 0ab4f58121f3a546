"""Toy tables: a folder of Parquet files on local disk, with one log entry per version.

A log entry is the file table of its version in an Arrow file, with the table's id, schema and
source and the commit's id as metadata. The first writer to create an entry wins.
"""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import feather
from pyspark.sql import types as T

from zadapter.backend.format import Format
from zadapter.base.commit_attempts import before_sending
from zadapter.base.locations import check_present
from zadapter.base.names import resolve
from zadapter.errors import ConflictError, UnknownTableError, UnsupportedError, UsageError
from zadapter.layout.store import Layouts
from zadapter.table import file_stats
from zadapter.table.snapshot import Snapshot, Source, Staged, Written
from zadapter.table.spark_schema import arrow_schema
from zadapter.table.spec import (
    Definition,
    Note,
    Status,
    convert_types,
    plain,
    storage_type,
    without_partition,
)


class Entry(NamedTuple):
    """A log entry: the live files and the metadata of a version."""

    files: pa.Table
    metadata: dict[str, Any]


class Folder:
    """The folder of a toy table."""

    def __init__(self, table):
        self.path = Path(table).absolute()
        self.log = self.path / "_toy" / "log"

    def read(self, path):
        """Return the content of a side file, such as a layout, or None if it does not exist."""
        file = self.path / path
        return file.read_bytes() if file.exists() else None

    def write(self, path, data):
        """Write a side file."""
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)

    def entries(self):
        """Return the paths of all log entries, oldest first."""
        return sorted(self.log.glob("*.arrow"))

    def entry(self, version):
        """Return the log entry of a version."""
        files = feather.read_table(self.log / f"{version:08}.arrow", memory_map=False)
        return Entry(files.replace_schema_metadata(), json.loads(files.schema.metadata[b"toy"]))

    def put(self, version, entry):
        """Create a log entry, in one step that fails if the version exists."""
        self.log.mkdir(parents=True, exist_ok=True)
        draft = self.log / uuid4().hex
        files = entry.files.replace_schema_metadata({"toy": json.dumps(entry.metadata)})
        feather.write_feather(files, draft, compression="uncompressed")
        try:
            os.link(draft, self.log / f"{version:08}.arrow")
        except FileExistsError as error:
            raise ConflictError(
                f"{self.path}: another writer committed version {version}"
            ) from error
        finally:
            draft.unlink()


class ToyBackend:
    """Toy tables, read and written through Spark's Parquet source."""

    format = Format(name="toy", migrates=True, log="_toy/log")

    def __init__(self, spark):
        self._spark = spark

    def snapshot(self, table, since=None):
        folder = Folder(table)
        versions = len(folder.entries())
        if not versions:
            raise UnknownTableError(f"{table} is not a toy table; it has no folder _toy/log")
        first = versions if since is None else 0 if since.version is None else since.version + 1
        news = [folder.entry(version).metadata["commit"] for version in range(first, versions)]
        snapshot = self.at(table, versions - 1)
        return replace(snapshot, applied=frozenset(news))

    def at(self, table, version):
        if not 0 <= version < len(Folder(table).entries()):
            raise UnknownTableError(f"{table} has no version {version}")
        return self._snapshot(table, version, Folder(table).entry(version))

    def _snapshot(self, table, version, entry):
        folder, metadata = Folder(table), entry.metadata
        source = metadata["source"] and Source.from_dict(metadata["source"])
        return Snapshot(
            table=table,
            format="toy",
            version=version,
            location=folder.path.as_uri(),
            schema=arrow_schema(metadata["schema"]),
            partition={},
            id=metadata["id"],
            definition=metadata["id"],
            physical={},
            without_stats=frozenset(),
            layouts=Layouts(folder),
            source=lambda: source,
            handle=entry,
        )

    def files(self, snapshot, columns=()):
        wanted = dict(resolve(parts, snapshot.schema) for parts in columns)
        return file_stats.select_stats(snapshot.handle.files, file_stats.schema(wanted, {}))

    def uris(self, snapshot, paths):
        return [(Folder(snapshot.table).path / path).as_uri() for path in paths]

    def collect_stats(self, snapshot, columns):
        return snapshot  # the log has stats of all columns

    def read(self, snapshot, files):
        schema = T.StructType.fromJson(snapshot.handle.metadata["schema"])
        if not files.num_rows:
            return self._spark.createDataFrame([], schema)
        folder = Folder(snapshot.table).path
        # Spark takes paths as they are; a URI is escaped
        paths = [str(folder / path) for path in files["path"].to_pylist()]
        return self._spark.read.schema(schema).parquet(*paths)

    def write(self, snapshot, rows, layout, encoding):
        folder = Folder(snapshot.table).path
        # Spark and other engines skip folders whose names start with an underscore
        data = folder / "_toy" / "data" / uuid4().hex
        rows.write.options(**encoding.settings({})).parquet(str(data))
        paths = sorted(str(file.relative_to(folder)) for file in data.glob("*.parquet"))
        uris = self.uris(snapshot, paths)
        return Written(
            paths=dict(zip(paths, uris, strict=True)), handle=None if layout is None else layout.id
        )

    def stage(self, snapshot, written, files):
        files = files.filter(pc.greater(files["rows"], 0))
        layouts = pa.array([written.handle] * files.num_rows, pa.string())
        files = file_stats.replace_column(files, files.schema.field("layout"), layouts)
        return Staged(paths=written.paths, files=files)

    def read_staged(self, snapshot, staged):
        return self.read(snapshot, staged.files)

    def commit(self, change):
        base, folder = change.base, Folder(change.base.table)
        with before_sending(base.table):
            check_present(change.sizes, lambda _: None)  # all files are on local disk
            for layout in change.layouts:
                Layouts(folder).keep(layout)
            files, metadata = base.handle
            stays = pc.invert(pc.is_in(files["path"], change.removed["path"]))
            live = [part for part in (files.filter(stays), change.added) if part.num_rows]
            source = change.source.to_dict() if change.source else metadata["source"]
            version = 0 if base.version is None else base.version + 1
            metadata = {**metadata, "commit": change.id, "source": source}
        folder.put(version, Entry(pa.concat_tables(live) if live else files, metadata))
        return version

    def close(self):
        pass

    def define(self, snapshot):
        return Definition(columns=plain(snapshot.handle.metadata["schema"]["fields"]))

    def accept(self, definition):
        lost = [f"property {key}" for key in definition.properties]
        lost += ["comment of the table"] if definition.comment else []
        made = replace(convert_types(definition, storage_type), properties={}, comment=None)
        made = made.with_items(*(Note(what, Status.LOST, "toy tables have none") for what in lost))
        partition = {field.name for field in made.partition}
        return without_partition(made, partition, "toy tables have no partitions")

    def pending(self, table, definition, source):
        folder = Folder(table)
        visible = (path.name for path in folder.path.glob("*") if not path.name.startswith("_"))
        if folder.entries() or next(visible, None) is not None:
            raise UsageError(f"{table} is not empty; specify another folder")
        schema = {"type": "struct", "fields": list(definition.columns)}
        metadata = {"id": uuid4().hex, "schema": schema, "source": None}
        return self._snapshot(table, None, Entry(file_stats.empty({}, {}), metadata))

    def adopt(self, snapshot, files, uris):
        raise UnsupportedError("a toy table has its files in its own folder; pass mode='copy'")

    def protect(self, snapshot):
        return "toy tables have no clean-up"

    def drop(self, snapshot):
        if len(Folder(snapshot.table).entries()) > 1:
            raise ConflictError(
                f"{snapshot.table} was changed by another writer; it was not dropped"
            )
        shutil.rmtree(Folder(snapshot.table).path / "_toy")
