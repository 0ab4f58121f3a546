"""Statements ``CALL zadapter.system.*`` of Spark's SQL, which run in this process."""

import inspect
import json
import re
import threading
from itertools import pairwise

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import functions as F

import zadapter
from zadapter.api.procedures import NESTED_TYPES, PROCEDURES, PYTHON_ONLY
from zadapter.base.interrupts import interruptible
from zadapter.errors import ConflictError, ReportError, UnknownOutcomeError, UsageError
from zadapter.spark import procedure_calls
from zadapter.spark.jvm.gateway import jvm_of
from zadapter.spark.procedure_calls import Procedure

ROWS = 4_000
WAIT = 60
"""Seconds after which a test gives up."""


@pytest.fixture(scope="module")
def sql(spark):
    """A session with the procedures, and none that other tests use."""
    session = spark.newSession()
    zadapter.register_procedures(session)
    return session


@pytest.fixture
def lake(sql, tmp_path):
    """Makes Delta tables of rows in no order, in a database of their own."""
    sql.sql(f"CREATE DATABASE procedures LOCATION '{tmp_path.as_uri()}'")

    def make(name, columns):
        rows = sql.range(ROWS).select("id", *(F.expr(each) for each in columns)).repartition(8)
        rows.write.format("delta").saveAsTable(f"procedures.{name}")
        return tmp_path / name

    yield make
    sql.sql("DROP DATABASE procedures CASCADE")


def ids(path, version=None):
    """Return the rows of a Delta table, as delta-rs reads them."""
    table = DeltaTable(path, version=version).to_pyarrow_table()
    return sorted(map(tuple, (each.values() for each in table.to_pylist())))


def test_a_statement_clusters_a_table(sql, lake):
    """Its row has the figures of the report, and delta-rs sees the same rows in fewer files."""
    path = lake("events", ["pmod(xxhash64(id), 1000) AS a"])

    (row,) = sql.sql(
        "CALL zadapter.system.optimize(table => 'procedures.events', by => array('a'), "
        "target_file_size => '8KB', max_files => 100, max_rebase => 0.5, verify => 'checksum')"
    ).collect()

    report = json.loads(row.report)
    assert (row.version, row.versions, row.files_removed) == (1, [1], 8)
    assert row.rows_added == report["rows_added"] == ROWS
    assert row.share_after == report["share_after"] < row.share_before
    actions = pa.table(DeltaTable(path).get_add_actions(flatten=True)).to_pylist()
    bounds = sorted((each["min.a"], each["max.a"]) for each in actions)
    assert len(bounds) == row.files_added > 1
    assert all(low[1] <= high[0] for low, high in pairwise(bounds))
    assert ids(path) == ids(path, version=0)


def test_shares_that_nothing_has_measured_are_null(sql, lake):
    """A dashboard would read 0 as the best that a layout can be."""
    lake("events", ["pmod(xxhash64(id), 1000) AS a"])
    call = "CALL zadapter.system.{}('procedures.events')"

    (compaction,) = sql.sql(call.format("plan")).collect()
    sql.sql("CALL zadapter.system.optimize('procedures.events', array('a'))")
    (again,) = sql.sql(call.format("optimize")).collect()
    (planned,) = sql.sql(call.format("plan")).collect()

    assert (compaction.files_rewritten, compaction.columns, compaction.curve) == (8, [], None)
    assert (again.version, again.versions) == (None, [])
    assert planned.columns == ["a"]
    for row in (compaction, again, planned):
        assert (row.share_before, row.share_after) == (None, None)
    assert compaction.gain is planned.gain is None


def test_a_statement_runs_in_its_session(spark, sql, lake):
    """Its current database and its settings count, not those of the session that registered."""
    lake("t", ["id % 7 AS a"])
    client = spark.newSession()
    client.sql("USE procedures")

    (row,) = client.sql("CALL zadapter.system.explain('t', 'a < 3 AND id >= 0')").collect()

    assert (row.files, row.rows, row.version) == (8, ROWS, 0)
    with pytest.raises(IllegalArgumentException, match=r"\bt\b"):
        sql.sql("CALL zadapter.system.explain('t', 'a < 3')")


@pytest.mark.parametrize(
    ("name", "arguments", "keywords"),
    [
        (
            "plan",
            "queries => array('a = 7', 'a < 50'), max_bytes => '1GB', row_groups => 4",
            {"by": "auto", "queries": ["a = 7", "a < 50"], "max_bytes": "1GB", "row_groups": 4},
        ),
        ("analyze", "queries => array('a = 7'), by => array('a')", {"queries": "a = 7", "by": "a"}),
        ("explain", "where => 'a = 7', row_groups => true", {"where": "a = 7", "row_groups": True}),
    ],
)
def test_a_procedure_does_what_the_function_does(sql, lake, name, arguments, keywords):
    """With the same arguments, in SQL's types: the whole report is the same."""
    lake("t", ["pmod(xxhash64(id), 1000) AS a"])

    (row,) = sql.sql(f"CALL zadapter.system.{name}('procedures.t', {arguments})").collect()

    found = getattr(zadapter, name)("procedures.t", **keywords, spark=sql)
    assert json.loads(row.report) == json.loads(json.dumps(found.to_dict(), default=str))


def test_an_error_is_that_of_the_function(sql, lake):
    """Of a map of maps, too."""
    lake("t", [])

    with pytest.raises(UsageError) as raised:
        zadapter.plan("procedures.t", by=["id"], tiers={"id": {"hot": "2d"}}, spark=sql)
    with pytest.raises(IllegalArgumentException) as error:
        sql.sql(
            "CALL zadapter.system.plan('procedures.t', by => array('id'), "
            "tiers => map('id', map('hot', '2d')))"
        )

    assert str(raised.value) in str(error.value)


def test_every_parameter_has_its_type():
    """Those that are texts in SQL take texts in Python, too."""
    declared = {
        (each.name, name): type_
        for each in PROCEDURES
        for name, type_ in re.findall(r"`(\w+)` (\w+)", each.parameters)
    }
    taken = {
        (each.name, parameter.name): str(parameter.annotation)
        for each in PROCEDURES
        for parameter in inspect.signature(getattr(zadapter, each.name)).parameters.values()
        if parameter.name not in PYTHON_ONLY
    }

    assert declared.keys() == taken.keys()
    assert {name for _, name in taken} >= {*NESTED_TYPES}
    texts = [each for each, type_ in declared.items() if type_ == "STRING"]
    assert [each for each in texts if "str" not in taken[each]] == []


def test_other_names_are_refused(sql):
    """The error of a procedure or an argument that there is not names those that there are."""
    with pytest.raises(IllegalArgumentException, match=r"zadapter\.system\.optimise.*, optimize,"):
        sql.sql("CALL zadapter.system.optimise('t')")
    with pytest.raises(AnalysisException, match=r"`keys`.*mean.*`by`"):
        sql.sql("CALL zadapter.system.optimize('t', keys => array('a'))")


def test_another_catalog_stays(spark):
    """A session's own catalog of the same name is not replaced."""
    other = spark.newSession()
    other.conf.set("spark.sql.catalog.zadapter", "com.example.Catalog")
    with pytest.raises(UsageError, match=r"com\.example\.Catalog"):
        zadapter.register_procedures(other)


def toy(name, run, *, writes=True):
    """Return a procedure without arguments that answers with one number."""
    return Procedure(
        name=name,
        description="A test's",
        parameters="`n` BIGINT",
        columns="n BIGINT",
        run=lambda session, given: [{"n": run(session, given)}],
        writes=writes,
    )


def statement(sql, text, answers):
    """Start a statement in a thread; its rows or its error go to a list."""

    def run():
        try:
            answers.append((sql.sql(text).collect()[0].n, None))
        except Exception as error:  # noqa: BLE001 - the test looks at it
            answers.append((None, str(error)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def test_statements_run_side_by_side(spark, sql):
    """Neither of two clients waits for the other: each answers when both have begun."""
    both, answers = threading.Barrier(2, timeout=WAIT), []
    procedure_calls.register(sql, [toy("meet", lambda _, given: both.wait() * 0 + given["n"])])

    clients = [
        statement(spark.newSession(), f"CALL zadapter.system.meet({n})", answers) for n in (1, 2)
    ]
    for client in clients:
        client.join(WAIT)

    assert sorted(answers) == [(1, None), (2, None)]


def until_interrupted(session, _):
    """Run a Spark job that ends only when the run is interrupted."""
    with interruptible(session.sparkContext):
        return session.range(10**15).selectExpr("sum(id % 7)").collect()[0][0]


def test_an_interrupted_statement_ends_its_run(sql):
    """The Spark jobs of the run are cancelled, and the error says what was committed."""
    java, begun, answers = [], threading.Event(), []

    def run(session, given):
        begun.set()
        return until_interrupted(session, given)

    procedure_calls.register(sql, [toy("endless", run)])

    def call():
        java.append(jvm_of(sql).java.lang.Thread.currentThread())
        answers.append(error_of(sql, "CALL zadapter.system.endless(1)"))

    client = threading.Thread(target=call, daemon=True)
    client.start()
    assert begun.wait(WAIT)
    java[0].interrupt()
    client.join(WAIT)

    assert ["interrupted; nothing was committed" in each for each in answers] == [True]


def error_of(sql, text):
    """Return the text of the error of a statement."""
    try:
        return f"no error: {sql.sql(text).collect()}"
    except Exception as error:  # noqa: BLE001 - the test looks at it
        return str(error)


def test_a_statement_that_begins_interrupted_ends_its_run(sql):
    """It neither waits for an answer that nobody gives, nor runs to its end."""
    answers = []
    procedure_calls.register(sql, [toy("endless", until_interrupted)])

    def call():
        jvm_of(sql).java.lang.Thread.currentThread().interrupt()
        answers.append(error_of(sql, "CALL zadapter.system.endless(1)"))

    client = threading.Thread(target=call, daemon=True)
    client.start()
    client.join(WAIT)

    assert ["interrupted" in each for each in answers] == [True]


class Taken:
    """A request that Java hands out, here without a statement."""

    def __init__(self, *, interrupted=False):
        self.starts = iter([True])
        self.failures = []
        self.interrupted = lambda: interrupted
        self.fail = lambda message, _: self.failures.append(message)

    def start(self):
        """Return true once."""
        return next(self.starts, False)


def take(monkeypatch, calls, requests):
    """Let the thread that takes requests take these ones."""
    left = iter(requests)
    monkeypatch.setattr(procedure_calls.procedure_catalog, "take", lambda _: next(left, None))
    procedure_calls.answer_all(None, calls)


def test_a_request_whose_run_has_ended_is_nobody_s(monkeypatch):
    """An interrupt that comes late runs nothing again, and requests after it are answered."""
    late, ran = Taken(interrupted=True), []
    late.start()
    monkeypatch.setattr(procedure_calls, "_answer", lambda request, *_: ran.append(request))

    take(monkeypatch, procedure_calls.Calls(), [late, late, after := Taken()])

    assert ran == [after]


def test_a_thread_that_cannot_start_fails_its_statement(monkeypatch):
    """Those after it are answered, too."""
    starts = iter([RuntimeError("can't start new thread")])
    start = threading.Thread.start

    def fail_once(thread):
        for error in starts:
            raise error
        start(thread)

    ran, failing, after = [], Taken(), Taken()
    monkeypatch.setattr(procedure_calls, "_answer", lambda request, *_: ran.append(request))
    monkeypatch.setattr(threading.Thread, "start", fail_once)
    calls = procedure_calls.Calls()
    take(monkeypatch, calls, [failing, after])

    assert failing.failures == ["RuntimeError: can't start new thread [committed: no]"]
    assert ran == [after]
    assert failing not in calls.running


def test_a_second_registration_repairs_the_first(sql):
    """The thread that takes requests is started again if it has ended."""
    calls = procedure_calls.by_jvm[jvm_of(sql)]
    ended = threading.Thread(target=str)
    ended.start()
    ended.join()
    alive, calls.taker = calls.taker, ended

    procedure_calls.register(sql, [toy("one", lambda *_: 1)])

    assert calls.taker.is_alive()
    repaired = calls.taker
    procedure_calls.register(sql, [])
    assert alive is not repaired is calls.taker


def third_job_failed():
    """Return an error of Python's own after a commit, as a run raises it."""
    error = KeyError("k")
    error.__notes__ = ["Versions committed by this call: [7]"]
    return error


class TextlessError(Exception):
    """An error whose text cannot be had."""

    def __str__(self):
        """Fail."""
        raise ValueError


class Answered(Taken):
    """A request of a procedure."""

    def procedure(self):
        return "failing"


@pytest.mark.parametrize(("writes", "committed"), [(True, "unknown, look at"), (False, "no]")])
def test_a_procedure_that_only_reads_has_committed_nothing(monkeypatch, writes, committed):
    """Whatever its error is, and whoever raised it: nobody has to look at the table's history."""
    request, calls = Answered(), procedure_calls.Calls()
    calls.procedures["failing"] = toy("failing", None, writes=writes)
    monkeypatch.setattr(procedure_calls, "_run", lambda *_: {}["k"])

    take(monkeypatch, calls, [request])
    for _, thread in [*calls.running.values()]:
        thread.join(WAIT)

    assert [f"KeyError: 'k' [committed: {committed}" in each for each in request.failures] == [True]


def test_only_optimize_can_commit():
    assert [each.name for each in PROCEDURES if each.writes] == ["optimize"]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (UsageError("no column \udcff"), r"no column \\udcff"),
        (TextlessError(), "TextlessError: it has no text"),
        (ConflictError("slow"), r"slow \[committed: no; retryable: yes\]$"),
        (ReportError("version 7"), r"version 7 \[committed: yes; retryable: no\]$"),
        (UnknownOutcomeError("t", "c0ffee"), r"c0ffee .* \[committed: unknown, .* history; ret"),
        (third_job_failed(), r"call: \[7\] \[committed: unknown, .* history\]$"),
    ],
)
def test_an_error_with_any_text_answers(sql, error, says):
    """Also with a file's name that is no UTF-8: its statement ends, and says what was committed."""

    def run(*_):
        raise error

    procedure_calls.register(sql, [toy("failing", run)])
    answers = []
    client = statement(sql, "CALL zadapter.system.failing(1)", answers)
    client.join(WAIT)

    assert [re.search(says, text) is not None for _, text in answers] == [True]


def test_no_call_begins_after_the_end(sql):
    """What comes while a server stops is refused, not killed; registering again accepts calls."""
    procedure_calls.register(sql, [toy("one", lambda *_: 1)])

    procedure_calls.end_calls(sql)
    refused = error_of(sql, "CALL zadapter.system.one(1)")
    procedure_calls.register(sql, [])

    assert "register_procedures" in refused
    assert sql.sql("CALL zadapter.system.one(1)").collect()[0].n == 1


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("optimize(table => 'procedures.t', where => CAST(NULL AS STRING))", "where"),
        ("analyze(table => NULL)", "table"),
        ("explain('procedures.t', where => NULL)", "where"),
        ("advise('procedures.t', queries => NULL)", "queries"),
    ],
)
def test_null_is_no_condition(sql, lake, call, names):
    """A condition that comes out as NULL would else stand for all rows."""
    path = lake("t", [])

    with pytest.raises(IllegalArgumentException, match=f"{names} is NULL"):
        sql.sql(f"CALL zadapter.system.{call}")

    assert DeltaTable(path).version() == 0
