"""Who is measured on Delta; each rewrites the table at *path* into about *files* files."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

import deltalake

import zadapter
from integration.bench.data import KEYS


@dataclass
class DeltaContenders:
    """The rewrites of Delta tables, on one session."""

    spark: object
    source: object
    folder: Path
    files: int
    reports: list = field(default_factory=list)

    def __post_init__(self):
        self.base = self.folder / "base"
        if self.base.exists():
            shutil.rmtree(self.base)
        self.source.write.format("delta").save(str(self.base))
        sizes = [Path(path).stat().st_size for path in self.live(str(self.base))]
        # rounded down, so that Delta comes to the same number of files
        self.target = sum(sizes) // self.files

    def fresh(self, name):
        """Copy the table, so that every contender starts from the same files."""
        path = self.folder / name.replace(" ", "-")
        if path.exists():
            shutil.rmtree(path)
        shutil.copytree(self.base, path)
        return str(path)

    def live(self, path):
        """The live files, found by delta-rs."""
        return [uri.removeprefix("file://") for uri in deltalake.DeltaTable(path).file_uris()]

    def copy(self, path):
        """A plain copy through the same Delta writer: the floor."""
        shutil.rmtree(path)
        rows = self.spark.read.format("delta").load(str(self.base)).repartition(self.files)
        rows.write.format("delta").save(path)

    def zadapter(self, path):
        """Adaptive z-order."""
        asked = {"backend": "delta", "by": KEYS, "target_file_size": self.target}
        self.reports.append(zadapter.optimize(path, **asked, spark=self.spark))

    def zorder(self, path):
        """Delta's own OPTIMIZE ZORDER BY, at the same file size."""
        self.spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(self.target))
        self.spark.sql(f"OPTIMIZE delta.`{path}` ZORDER BY ({', '.join(KEYS)})").collect()

    def all(self):
        """Names and rewrites."""
        return {
            "plain copy": self.copy,
            "zadapter adaptive": self.zadapter,
            "Delta OPTIMIZE ZORDER": self.zorder,
        }
