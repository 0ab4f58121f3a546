"""``python -m integration.fuzz.pruning.engines``: Spark reads the files that ``explain`` names."""

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import zadapter
from integration.fuzz.pruning.trials import _INTERPRETED, SESSION, WRITERS, Trial, _name
from integration.kit.lakes import settings
from zadapter.backend.plugins import load
from zadapter.errors import UsageError

_METRICS = ("numFiles", "resultDataFiles")
"""Metrics of the operators that read files: of Spark's file sources, and of Iceberg's scans."""


class EngineTrial(Trial):
    """A table, and conditions that are explained and run."""

    def run(self):
        """Explain and run all conditions before and after an ``optimize``."""
        self.table = self._written()
        with settings(self.spark, _INTERPRETED):
            self._explained("before")
        zadapter.optimize(
            self.table,
            by=["row", "day"],
            backend=self.format,
            target_file_size="20KB",
            row_groups=4,
            spark=self.spark,
        )
        with settings(self.spark, _INTERPRETED):
            self._explained("after")
        return self.found

    def _explained(self, when):
        rows = self._load()
        conditions = [each for each in self.conditions if self._analysed(rows, each, when)]
        matches = self._scanned(rows, conditions)
        for condition, of_file in zip(conditions, matches, strict=True):
            try:
                found = zadapter.explain(
                    self.table, condition.sql, backend=self.format, spark=self.spark
                )
            except UsageError:
                self.found.left_out[f"{when}, explain: refused by zadapter"] += 1
                continue
            self.found.asked[f"{when}, explain"] += 1
            self._compare(when, condition, found, of_file)

    def _compare(self, when, condition, found, of_file):
        kept = found.files.filter(found.files["kept"])
        names = self._names(kept)
        share = 1 - len(names) / found.files.num_rows
        self.found.pruned.setdefault(f"{when}, explain", []).append(share)
        if lost := set(of_file) - names:
            self._note(when, "explain", condition, f"without {len(lost)} files with matches")
        if found.engine.read is None:
            if self._fails(condition.sql):  # as Iceberg, at NULL in a list of binary values
                self.found.left_out[f"{when}, explain: Spark fails without zadapter"] += 1
                return
            self._note(when, "explain", condition, f"no plan: {found.engine.note}")
            return
        said, read = found.engine.read.files, self._files_read(condition.sql)
        if said != read:
            self._note(when, "explain", condition, f"{said} files of Spark's, which reads {read}")
        if self.format == "delta":
            planned = self._load().where(condition.sql).inputFiles()
            chosen = self._names(found.files.filter(found.files["engine"]))
            if set(map(_name, planned)) != chosen:
                self._note(when, "explain", condition, "other files than Spark's inputFiles")

    def _names(self, files):
        with_backend = load(self.format)(self.spark)
        snapshot = with_backend.snapshot(self.table)
        return set(map(_name, with_backend.uris(snapshot, files["path"].to_pylist())))

    def _fails(self, sql):
        try:
            self._files_read(sql)
        except (PySparkException, Py4JJavaError):
            return True
        return False

    def _files_read(self, sql):
        """Run the query, and return how many files its operators have read, by their metrics."""
        if self.format == "parquet":  # all of its files, which is what Spark alone would open
            backend = load(self.format)(self.spark)
            rows = backend.scan(backend.snapshot(self.table))
        else:
            rows = self._load()
        execution = rows.where(sql)._jdf.queryExecution()  # noqa: SLF001 - metrics of plans
        execution.toRdd().count()
        leaves = execution.executedPlan().collectLeaves()
        read = 0
        for number in range(leaves.size()):
            metrics = leaves.apply(number).metrics()
            found = [metrics.get(name) for name in _METRICS]
            read += sum(int(each.get().value()) for each in found if each.isDefined())
        return read


def main(
    *,
    formats: Annotated[str, typer.Option(help="By comma.")] = ",".join(WRITERS),
    conditions: Annotated[int, typer.Option(min=1, help="Of each table.")] = 100,
    first: Annotated[int, typer.Option(help="The seed.")] = 0,
    writer: Annotated[int, typer.Option(min=0, max=1, help="0: Spark; 1: others.")] = 0,
) -> None:
    """Explain and run conditions on one table of each format, before and after an optimize."""
    from integration.fuzz.pruning.__main__ import _lakes

    start, wrong = time.perf_counter(), []
    with TemporaryDirectory(prefix="zadapter-engines-") as folder:
        lakes = _lakes(Path(folder))
        for format_ in formats.split(","):
            maker = WRITERS[format_][writer]
            trial = EngineTrial(lakes, format_, maker, first, conditions=conditions)
            with settings(lakes.spark, SESSION):
                found = trial.run()
            wrong += found.wrong
            shares = {k: f"{sum(v) / len(v):.0%}" for k, v in found.pruned.items()}
            print(f"{time.perf_counter() - start:.0f} s: {format_} by {maker}, asked "
                  f"{dict(found.asked)}, files left out {shares}, not asked "
                  f"{dict(found.left_out)}, wrong {len(found.wrong)}", flush=True)  # fmt: skip
            print(*found.wrong, sep="\n", end="\n" if found.wrong else "")
        lakes.spark.stop()
    if wrong:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
