"""A self-test of untested releases, before the first write of an application.

In a temporary folder, a table of a few hundred rows is created, rewritten and compared.
"""

import json
import logging
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from pyspark.sql import DataFrame, SparkSession

from zadapter.backend.contract import Factory, MigrationBackend, is_migratable
from zadapter.backend.format import Format
from zadapter.backend.plugins import load
from zadapter.base.outcome import stating
from zadapter.errors import SessionError
from zadapter.planning.options import Options
from zadapter.rewrite.job import RewriteContext, rewrite
from zadapter.rewrite.planner import prepare
from zadapter.rewrite.tally import Tally
from zadapter.rewrite.verify import stage_and_check
from zadapter.spark.clone import scratch
from zadapter.spark.library_builds import describe_untested
from zadapter.table.encoding import Encoding
from zadapter.table.snapshot import Change, Exchange, Operation, Source
from zadapter.table.spec import Definition, plain
from zadapter.table.staged_files import new_id

ROWS = 400
_SOURCE = Source(format="self-test", id="0", version=0, columns="0")
_logger = logging.getLogger(__name__)
_begun = set[tuple[str, str]]()
"""Applications, and formats, whose self-test has begun."""


def before_writing(form: Format, spark: SparkSession) -> None:
    """Warn of untested releases and test them, once an application.

    Args:
        form: The format of the table that will be written.
        spark: The user's session.

    Raises:
        SessionError: The self-test has failed; nothing was written.
    """
    key = str(spark.sparkContext.applicationId), form.name
    if key in _begun or (reason := describe_untested(spark, form)) is None:
        return
    if not str(spark.sparkContext.master).startswith("local"):
        _begun.add(key)
        _logger.warning("%s; there is no self-test, since executors share no local folder", reason)
        return
    _logger.warning("%s; testing them on a table in a temporary folder", reason)
    try:
        with stating():  # its commits are none of the call's
            passed = passes(load(form.name), spark)
    except Exception as error:
        text = f"{reason}; the self-test failed: {error}; nothing was written"
        raise SessionError(text) from error
    if not passed:
        raise SessionError(f"{reason}; the self-test lost or changed rows; nothing was written")
    _begun.add(key)


def passes(factory: Factory, spark: SparkSession) -> bool:
    """Return whether a table can be created and rewritten, and has the same rows after it."""
    with (
        TemporaryDirectory(prefix="zadapter-self-test-") as folder,
        scratch(spark) as clone,
        closing(factory(clone)) as backend,
    ):
        if not is_migratable(backend):
            return True
        rows = clone.range(ROWS).selectExpr("id", "id % 2 AS half", "concat('v', id % 7) AS text")
        path = str(Path(folder) / "table")
        _create(backend, path, rows, clone)
        options = Options(table=path, by="id", target_file_size="2KB", force=True)
        plan, tally = prepare(options, backend, {}, write=True), Tally()
        call = RewriteContext.begin(plan, options, clone, new_id())
        errors = [rewrite(call, job, tally) for job in call.jobs]
        snapshot = backend.snapshot(path)
        found = backend.read(snapshot, backend.files(snapshot)).select(*rows.columns)
        same = Counter(map(tuple, found.collect())) == Counter(map(tuple, rows.collect()))
        return same and bool(tally.versions) and not any(errors)


def _create(backend: MigrationBackend, path: str, rows: DataFrame, spark: SparkSession) -> None:
    fields = json.loads(rows.schema.json())["fields"]
    definition = backend.accept(Definition(columns=plain(fields)))
    pending = backend.pending(path, definition, _SOURCE)
    written = backend.write(pending, rows.repartition(4), None, Encoding())
    new = stage_and_check(backend, pending, written, spark)
    exchange = Exchange(removed=new.files.slice(0, 0), added=new.files)
    backend.commit(
        Change(
            base=pending,
            operation=Operation.MIGRATE,
            exchanges=(exchange,),
            staged=(new,),
            layouts=(),
            source=_SOURCE,
        )
    )
