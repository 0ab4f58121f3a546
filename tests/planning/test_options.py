"""Nonsense is refused before Spark starts."""

import inspect
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_type_hints

import pyarrow as pa
import pytest

import zadapter
from tests.kit.builders import MIB, file_table, snapshot
from zadapter.base.locations import VARIABLES
from zadapter.errors import UsageError
from zadapter.inspection.querylog.sources import Queries
from zadapter.layout.filters import Filter, Keys
from zadapter.layout.layout import Curve, Request
from zadapter.planning.options import OPTIONS, Options, default_of
from zadapter.planning.request import request_of

WRONG = [
    ("table=None", "is not a table"),
    ("table='  '", "is not a table"),
    ("by=None, curve='zorder'", "without by= have no effect"),
    ("by=5", "by= must contain column names, not 5"),
    ("by=[]", "no key columns"),
    ("by=['a', 'a']", "duplicate key columns"),
    ("by={'a': 'x'}", "the weight of a in by= is 'x'"),
    ("by={'a': None}", "the weight of a in by= is None"),
    ("by={'a': float('nan')}", "the weight of a in by= is nan; pass a number above 0"),
    ("by={'a': 0}", "number above 0"),
    (
        "by={'a': 1e307, 'b': 1}",
        "the weight of a in by= is 1e+307; pass a number above 0",
    ),
    ("by={'a': 10**400}", "number above 0 and up to 1e+15"),
    ("by={5: 1}", "column names, not 5"),
    ("by='auto'", "by='auto' needs queries= (--queries); pass a query log, or by=['auto']"),
    ("bloom_filters=5", "bloom_filters= must contain column names, not 5"),
    ("bloom_filters=['a', 'a']", "duplicate columns in bloom_filters=: a, a"),
    ("where=True", "where= must be a SQL string"),
    ("where=' '", "where= is empty"),
    ("where='\\ud800'", "not valid Unicode"),
    ("backend='detla'", "unknown backend 'detla'"),
    ("backend=5", "backend= must be a format name"),
    ("table='lake/nowhere'", "lake/nowhere: path not found"),
    ("curve=['x']", "unknown curve"),
    ("curve='peano'", "unknown curve 'peano'"),
    ("row_groups=0", "at least 1"),
    ("row_groups=True", "an integer"),
    ("row_groups=2.5", "an integer"),
    ("target_file_size='many'", "target_file_size: 'many'"),
    ("max_job_bytes=10", "max_job_bytes: 10 is too small"),
    ("max_group_bytes='1GB'", "max_group_bytes= was renamed; pass max_job_bytes="),
    ("settle='1h'", "settle= was renamed; pass min_age="),
    ("widen_stats=True", "widen_stats= was renamed; pass collect_stats="),
    ("force='no'", "True or False"),
    ("collect_stats=1", "True or False"),
    ("verify='twice'", "unknown verify='twice'; expected one of: counts, checksum"),
    ("max_concurrent_jobs=None", "max_concurrent_jobs= must be a whole number above 0, not None"),
    ("verify=None", "unknown verify=None"),
    ("tiers={}", "tiers= must name one column"),
    ("tiers={'a': {'hot': '2d'}, 'b': {'hot': '2d'}}", "tiers= must name one column"),
    ("tiers={5: {'hot': '2d'}}", "tiers= must name a column, not 5"),
    ("tiers={'a': {'cold': '2d'}}", "must be ages of hot and warm"),
    ("tiers={'a': {}}", "must be ages of hot and warm"),
    ("tiers={'a': {'hot': 'soon'}}", "tiers= hot: 'soon' is not a duration"),
    ("tiers={'a': {'hot': '0d'}}", "tiers= hot must be a duration"),
    ("tiers={'a': {'hot': '5w', 'warm': '30d'}}", r"hot (5w) must be less than warm (30d)"),
    ("tiers={'a': {'hot': '2d'}}, force=True", "force= rewrites every file"),
    ("price=5", "price= must have prices by name, not 5; expected some of: put, get, gb_read"),
    ("price={'put': True}", "the price of put must be a number of at least 0, not True"),
    ("backoff=3", "zadapter.Backoff"),
]
OTHERS = [
    ("migrate('t', to='delta', target='u', mode='x')", "unknown mode 'x'; expected one of: copy"),
    ("migrate('t', to='detla', target='u')", "unknown backend 'detla'"),
    ("migrate('t', to='delta', target='u', curve='peano')", "unknown curve 'peano'"),
    ("migrate('t', to='delta', target='u', follow=1)", "follow= must be True or False"),
    ("migrate('t', to='delta', target='u', by='a', follow=True)", "by= rewrites all rows"),
    ("migrate('lake/nowhere', to='delta', target='u')", "lake/nowhere: path not found"),
    ("read('t', where='')", "where= is empty"),
    ("read('t', version='1')", "version= must be an integer or a datetime, not '1'"),
    ("files('t', row_groups=4)", "row_groups= must be True or False"),
    ("files('/lake/nowhere')", "/lake/nowhere: path not found"),
    ("delete('t', '')", "pass where='true' to delete all rows"),
    ("delete('t', 5)", "where= must be a SQL string"),
    ("restore('t', 'v1')", "version must be an integer, not 'v1'"),
    ("history('lake/nowhere')", "path not found"),
    ("publish('t', dry_run='no')", "dry_run= must be True or False"),
    ("history('lake.toml')", "zadapter history lake.toml in a shell lists its runs"),
    ("vacuum('t', older_than=7)", "older_than= must be a duration such as '7d' or a datetime."),
    ("vacuum('t', older_than='7')", "older_than=: '7' is not a duration"),
    ("vacuum('/lake/nowhere', older_than='7d')", "/lake/nowhere: path not found"),
]
"""Calls of the other functions."""
CODE = """
import zadapter
from zadapter.errors import UsageError
for text, expected in {wrong!r}:
    arguments = dict(table="t", by="a") | eval(f"dict({{text}})")
    try:
        zadapter.optimize(arguments.pop("table"), **arguments)
    except UsageError as error:
        if expected not in str(error):
            print(text, "says", error)
    else:
        print(text, "is accepted")
for text, expected in {others!r}:
    try:
        eval("zadapter." + text)
    except UsageError as error:
        if expected not in str(error):
            print(text, "says", error)
    else:
        print(text, "is accepted")
from pyspark import SparkContext
assert SparkContext._active_spark_context is None
"""


def test_nonsense_is_refused_before_spark_starts():
    """Each with the argument's name, and at once."""
    code = CODE.format(wrong=WRONG, others=OTHERS)
    environment = {name: os.environ[name] for name in os.environ.keys() - set(VARIABLES)}
    answer = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )

    assert (answer.stdout, answer.stderr) == ("", "")


def test_columns_may_come_from_an_iterator_which_is_read_once():
    """A filter that is lost would be taken away from the files, too."""
    options = Options(table="t", by=(name for name in "ab"), bloom_filters=map(str, "c"))

    for each in (options, pickle.loads(pickle.dumps(options)), replace(options, row_groups=4)):
        assert (dict(each.weights), each.filtered_columns) == ({"a": 1.0, "b": 1.0}, ("c",))


@pytest.mark.parametrize("table", ["lake/events", Path("lake/events")])
def test_a_path_is_a_table(table):
    """As text, or as Python writes paths."""
    assert Options(table=table, by="a").name == "lake/events"


@pytest.mark.parametrize("arguments", [{"curves": "linear"}, {}])
def test_a_call_against_the_signature_is_a_type_error(arguments):
    """As of any other function, with its name."""
    with pytest.raises(TypeError, match=r"optimize\(\): (got an unexpected|missing a required)"):
        zadapter.optimize(**({"table": "t"} if arguments else {}), **arguments)


@pytest.mark.parametrize("name", ["optimize", "plan"])
def test_a_signature_is_that_of_the_table(name):
    """Names, types and defaults, in one order; only a rewrite has a policy for its commits."""
    declared = dict(inspect.signature(getattr(zadapter, name)).parameters)
    without_row = {declared.pop(each).name for each in ("table", "backend", "spark")}
    types = get_type_hints(Options) | {"queries": Queries | None}
    rows = [row for row in OPTIONS if row != "backoff" or name == "optimize"]

    assert without_row == {"table", "backend", "spark"}
    assert list(declared) == rows
    assert {each: declared[each].default for each in rows} == {
        each: default_of(each) for each in rows
    }
    assert {each: declared[each].annotation for each in rows} == {
        each: types[each] for each in rows
    }


def test_the_documentation_is_that_of_the_table():
    """What editors and ``help()`` show of an option is what the command line shows."""
    (arguments,) = re.findall(r"Args:\n(.*?)\n\n", inspect.getdoc(zadapter.optimize), re.DOTALL)
    parts = re.split(r"^    (\w+): ", arguments, flags=re.MULTILINE)[1:]
    shown = {
        name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)
    }

    assert {name: shown.pop(name) for name in OPTIONS} == {
        name: row.help for name, row in OPTIONS.items()
    }
    assert set(shown) == {"table", "backend", "spark"}


LOGGED = Options(table="t", by="auto", queries="logs/", row_groups=8)
KEPT = Request(columns=(("a",),), weights=(1.0,), curve=Curve.ZORDER, target_file_size=1 << 20)


def test_what_a_caller_states_holds_for_the_layout_that_a_table_keeps():
    """A query log decides the columns; all else that is not stated is the table's."""
    kept = LOGGED.with_layout(KEPT)

    assert (kept.weights, kept.curve, kept.row_groups) == ({"a": 1.0}, "zorder", 8)
    assert replace(LOGGED, row_groups=16).with_layout(replace(KEPT, row_groups=4)).row_groups == 4
    hilbert = replace(LOGGED, curve="hilbert").with_layout(KEPT)
    assert (hilbert.curve, hilbert.by_log) == ("hilbert", True)


STATED = {
    "bloom_filters": ["b"], "where": "b > 5", "curve": "linear", "target_file_size": "64MB",
    "row_groups": 4, "max_job_bytes": "1GB", "max_bytes": "2GB", "max_files": 9, "max_seconds": 5,
    "max_concurrent_jobs": 3, "min_age": "1h", "tiers": {"d": {"hot": "2d"}}, "force": True,
    "collect_stats": True, "verify": "checksum", "max_rebase": 0.5, "price": "put=1",
    "backoff": zadapter.Backoff(attempts=2),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(OPTIONS.keys() - {"by", "queries"}))
def test_no_option_is_lost_where_a_log_decides_the_keys(name):
    """Whether the table's layout is kept, or another one is learned. A new option is added here."""
    given = Options(table="t", by="auto", queries="logs/", **{name: STATED[name]})

    for found in (given.with_layout(KEPT), given.with_advice(Keys({"a": 1.0}), ("c",))):
        assert getattr(found, name) == STATED[name] != default_of(name)


@pytest.mark.parametrize("weights", [(1e16, 1.0), (1.0, 1e300)], ids=str)
def test_a_layout_with_weights_of_an_older_release_is_followed(weights):
    """Their limit is that of new layouts. The request stays, so no file is rewritten for it."""
    stored = replace(KEPT, columns=(("a",), ("b",)), weights=weights)
    table = snapshot(pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    files = file_table(["1"], sizes=[MIB])
    plain = Options(table="t").with_layout(stored)
    by_log = replace(LOGGED, row_groups=16).with_advice(stored.keys, ())

    for options in (plain, by_log):
        assert request_of(options, table, files).weights == weights
    assert request_of(plain, table, files) == stored
    with pytest.raises(UsageError, match="and up to 1e\\+15"):
        Options(table="t", by=stored.keys.weights)


def test_a_curve_that_a_kept_layout_cannot_have_is_refused():
    """As it is if the layout is passed in by."""
    learned = replace(KEPT, curve=Curve.ADAPTIVE, filters=(Filter(((),), 1.0),))

    with pytest.raises(UsageError, match="curve='hilbert' cannot be fitted to filters"):
        replace(LOGGED, curve="hilbert").with_layout(learned)


def test_what_a_caller_states_is_named_if_no_layout_suits_the_queries():
    """The call goes on, as those of other nights do: it compacts the table."""
    found = LOGGED.with_advice(None, ())

    assert (found.by, found.row_groups) == (None, 16)
    assert found.unchosen.endswith("none is chosen, and row_groups= without one has no effect")
    curved = replace(LOGGED, curve="zorder").with_advice(None, ())
    assert "curve= and row_groups= without one have no effect" in curved.unchosen
    assert replace(LOGGED, row_groups=16).with_advice(None, ()).unchosen.endswith("is chosen")


def test_a_layout_is_meant_for_the_table_unless_files_are_selected():
    """Or a query log decides it: that of the table, though a part is rewritten."""
    for given, is_for_table in (
        (Options(table="t", by="a", max_bytes="1GB"), True),
        (Options(table="t", by="a", where="b > 5"), False),
        (replace(LOGGED, where="b > 5").with_advice(Keys({"a": 1.0}), ()), True),
        (Options(table="t", where="b > 5").with_layout(KEPT), False),
    ):
        assert given.is_for_table == is_for_table
