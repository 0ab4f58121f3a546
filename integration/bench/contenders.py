"""Who is measured; each rewrites the table at *path* into about *files* files."""

import shutil
from dataclasses import dataclass, field

import zadapter
from integration.bench.data import KEYS


@dataclass
class Contenders:
    """The rewrites, on one session."""

    spark: object
    base: object
    target: int
    files: int
    reports: list = field(default_factory=list)

    def copy(self, path):
        """A plain copy through the same Delta writer: the floor."""
        shutil.rmtree(path)
        rows = self.spark.read.format("delta").load(str(self.base)).repartition(self.files)
        rows.write.format("delta").save(str(path))

    def zadapter(self, path):
        """Adaptive z-order."""
        self.reports.append(
            zadapter.optimize(
                str(path), backend="delta", by=KEYS, target_file_size=self.target, spark=self.spark
            )
        )

    def delta_zorder(self, path):
        """Delta's own OPTIMIZE ZORDER BY, at the same file size."""
        self.spark.conf.set("spark.databricks.delta.optimize.maxFileSize", str(self.target))
        self.spark.sql(f"OPTIMIZE delta.`{path}` ZORDER BY ({', '.join(KEYS)})").collect()

    def all(self):
        """Names and rewrites."""
        return {
            "plain copy": self.copy,
            "zadapter adaptive": self.zadapter,
            "Delta OPTIMIZE ZORDER": self.delta_zorder,
        }
