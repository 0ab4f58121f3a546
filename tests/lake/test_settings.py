"""The file of a lake: what it means, and what is wrong with it."""

import json
import sys
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zadapter.errors import UsageError
from zadapter.lake.settings import Budget, Entry, Keep, Lake, load, parse
from zadapter.planning.cost import Prices
from zadapter.planning.options import KEYWORDS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DAY = timedelta(days=1)
ONE = '[[tables]]\nmatch = "sales.*"\n'
"""The least file."""
AGE = "pass a number with a unit of s, m, h, d or w, such as 7d"


@pytest.fixture
def written(tmp_path):
    """Write a file, and return its path."""

    def write(text):
        path = tmp_path / "lake.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def mistakes(content):
    """Return the lines of the refusal of a text or mapping, without its name."""
    with pytest.raises(UsageError) as refused:
        parse(tomllib.loads(content) if isinstance(content, str) else content, "lake.toml")
    lines = str(refused.value).splitlines()
    assert all(line.startswith("lake.toml: ") for line in lines)
    return [line.removeprefix("lake.toml: ") for line in lines]


def test_a_file_with_a_budget_and_two_patterns(written):
    """Sizes, ages and prices are numbers afterwards; keywords of optimize stay as they are."""
    path = written(
        """
        [budget]
        bytes = "5TB"
        time = "4h"
        money = 40.0
        prices = { get = 0.0004, put = 0.005, core_hour = 0.05 }

        [[tables]]
        match = "sales.*"
        exclude = ["sales.tmp_*"]
        by = "auto"
        queries = "logs/"
        keep = { versions = "7d", orphans = "3d" }

        [[tables]]
        match = "s3://lake/raw/*"
        format = "delta"
        """
    )

    assert load(path) == Lake(
        budget=Budget(
            bytes=5 << 40,
            seconds=4 * 3600,
            money=40,
            prices=Prices(get=0.0004, put=0.005, core_hour=0.05),
        ),
        tables=(
            Entry(
                match="sales.*",
                exclude=("sales.tmp_*",),
                options={"by": "auto", "queries": "logs/"},
                keep=Keep(versions=7 * DAY, orphans=3 * DAY),
            ),
            Entry(match="s3://lake/raw/*", format="delta"),
        ),
    )


def test_what_is_omitted_has_no_limit():
    """There is no journal either, and nothing is cleaned up."""
    lake = parse(tomllib.loads(ONE), "lake.toml")

    assert lake == Lake(tables=(Entry(match="sales.*"),))
    assert lake.budget == Budget()
    assert lake.journal is None


@pytest.mark.parametrize(
    ("lines", "expected"), [("", "parquet"), ('format = "iceberg"', "iceberg")]
)
def test_a_journal(lines, expected):
    """It is a table of Parquet unless the file says otherwise."""
    lake = parse(tomllib.loads(f'{ONE}[journal]\ntable = "lake/journal"\n{lines}'), "lake.toml")

    assert (lake.journal, lake.journal_format) == ("lake/journal", expected)


WITH_DEFAULTS = """
[defaults]
by = "auto"
queries = "logs/"
max_bytes = "1TB"
format = "delta"
keep = { versions = "30d", orphans = "3d" }
max_wait = 7

[[tables]]
match = "a.*"

[[tables]]
match = "b.*"
by = ["day", "user"]
max_bytes = "1GB"
where = "day > '2025-01-01'"
format = "iceberg"
keep = { versions = "7d" }
max_wait = 1

[[tables]]
match = "c.*"
queries = "others/"
keep = {}
"""


def test_entries_have_the_defaults_for_what_they_do_not_state():
    """What they state replaces a default as a whole, so that nobody's orphans go by accident."""
    lake = parse(tomllib.loads(WITH_DEFAULTS), "lake.toml")

    assert lake.tables == (
        Entry(
            match="a.*",
            format="delta",
            options={"by": "auto", "queries": "logs/", "max_bytes": "1TB"},
            keep=Keep(versions=30 * DAY, orphans=3 * DAY),
            max_wait=7,
        ),
        Entry(
            match="b.*",
            format="iceberg",
            options={
                "by": ["day", "user"],
                "max_bytes": "1GB",
                "where": "day > '2025-01-01'",
            },
            keep=Keep(versions=7 * DAY),
            max_wait=1,
        ),
        Entry(
            match="c.*",
            format="delta",
            options={"by": "auto", "queries": "others/", "max_bytes": "1TB"},
            keep=Keep(),
            max_wait=7,
        ),
    )


def test_a_mapping_may_hold_pythons_values():
    """Callers from Python need no texts for durations, and no lists."""
    lake = parse(
        {
            "budget": {"bytes": 1 << 40, "time": 4 * timedelta(hours=1), "prices": "core_hour=1"},
            "tables": ({"match": "a.*", "exclude": ("a.b",), "keep": {"versions": 7 * DAY}},),
        },
        "settings",
    )

    assert lake == Lake(
        budget=Budget(bytes=1 << 40, seconds=4 * 3600, prices=Prices(core_hour=1)),
        tables=(Entry(match="a.*", exclude=("a.b",), keep=Keep(versions=7 * DAY)),),
    )


WRONG = """
bugdet = "5TB"

[budget]
bytes = "-5TB"
time = 3600
money = 40
tine = "4h"

[journal]
format = "excel"

[defaults]
verify = "twice"
keep = { version = "7d", orphans = "soon" }
where = "day > '2025-01-01'"

[[tables]]
match = "sales.*"
exclude = "a.*"
by = []
max-wait = 3

[[tables]]
match = " "
backend = "delta"

[[tables]]
max_wait = 0
force = true

[[tables]]
match = "sales.*"
settle = "1h"
"""


def test_all_mistakes_are_found_at_once(written):
    """Each with its place and its key; those of the defaults once, not for each entry."""
    path = written(WRONG)

    with pytest.raises(UsageError) as refused:
        load(path)

    prices = "prices = { get = 0.0004, put = 0.005, core_hour = 0.05 }"
    where = "the key 'where' names columns, which not all tables have; write it in [[tables]]"
    force = (
        "the key 'force' would rewrite every file in every run; omit it, and pass it to optimize "
        "for a table"
    )
    assert str(refused.value).replace(f"{path}: ", "").splitlines() == [
        "the file: unknown key 'bugdet'; did you mean 'budget'?",
        "[budget]: unknown key 'tine'; did you mean 'time'?",
        "[budget]: bytes: a budget must be above 0, not '-5TB'",
        "[budget]: time: must be a duration such as '10 minutes', not 3600",
        f"[budget]: money: a sum needs prices; add {prices}",
        "[journal]: format: unknown backend 'excel'; installed: delta, iceberg, parquet",
        "[journal]: the key 'table' is missing",
        f"[defaults]: {where}",
        "[defaults]: verify: unknown verify='twice'; expected one of: counts, checksum",
        "[defaults]: keep: unknown key 'version'; did you mean 'versions'?",
        f"[defaults]: keep: orphans: 'soon' is not a duration; {AGE}",
        "sales.*: unknown key 'max-wait'; did you mean 'max_wait'?",
        "sales.*: exclude: 'a.*' is not a list of patterns; write one such as ['sales.tmp_*']",
        "sales.*: by: no key columns; pass one to four columns that filters use",
        "table 2: the key 'backend' belongs to files for --config; write 'format'",
        "table 2: match: ' ' is not a pattern; write one such as 'sales.*' or 's3://lake/raw/*'",
        f"table 3: {force}",
        "table 3: max_wait: 0 is not a number of nights; write a whole number from 1",
        "table 3: the key 'match' is missing",
        "sales.*: the key 'settle' was renamed; write 'min_age'",
        "sales.*: the pattern is listed twice",
    ]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("bytes", value) for value in (0, "0", "0TB", " 0.0 GB", "-0")),
        *(("time", value) for value in ("0h", "00 s", timedelta(0))),
        *(("money", value) for value in (0, 0.0, -0.0)),
    ],
)
def test_a_budget_of_zero_is_refused(key, value):
    """Nobody maintains a lake to do nothing: they mean no limit, or forgot a digit."""
    budget = {key: value, "prices": {"put": 1}}

    (mistake,) = mistakes({"budget": budget, "tables": [{"match": "a.*"}]})

    assert mistake == (
        f"[budget]: {key}: no rewrite would run with a budget of {value!r}; write more, or omit "
        "it for no limit"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("bytes = -1", "bytes: a budget must be above 0, not -1"),
        ("bytes = true", "bytes: True is not a size; "),
        ("bytes = 5e12", "bytes: 5000000000000.0 is not a size; "),
        ("bytes = '5PT'", "bytes: '5PT' is not a size; "),
        ("bytes = '0.1KB'", "bytes: '0.1KB' is too small; "),
        ("bytes = []", "bytes: [] is not a size; "),
        ("time = '-4h'", "time: a budget must be above 0, not '-4h'"),
        ("time = '4h30m'", "time: '4h30m' is not a duration; "),
        ("time = 04:00:00", "time: must be a duration such as '10 minutes', not "),
        ("time = '99999999999999w'", "time: '99999999999999w' is too long; "),
        ("money = -40", "money: a budget must be above 0, not -40"),
        ("money = '40'", "money: the sum must be a finite number, not '40'"),
        ("money = true", "money: the sum must be a finite number, not True"),
        ("money = inf", "money: the sum must be a finite number, not inf"),
        ("money = nan", "money: the sum must be a finite number, not nan"),
        (f"money = 1{'0' * 400}", "money: the sum must be a finite number, not 1000"),
    ],
)
def test_budgets_that_are_refused(line, expected):
    """Each with its key and what it should be."""
    (mistake,) = mistakes(f"[budget]\nprices = {{ put = 1 }}\n{line}\n{ONE}")

    assert mistake.startswith(f"[budget]: {expected}")


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("prices = { egress = 1 }", "prices: price=: unknown price 'egress'; "),
        ("prices = { put = -1 }", "prices: price=: the price of put must be a number of at least"),
        ("prices = {}", "prices: price= must have prices by name, not {}"),
        ("money = 1\nprices = { pot = 1 }", "prices: price=: unknown price 'pot'; "),
        ("money = 1\nprices = { put = 0 }", "money: all prices are 0; write some such as prices"),
    ],
)
def test_prices_that_are_refused(lines, expected):
    """A sum without a price would be no limit."""
    (mistake,) = mistakes(f"[budget]\n{lines}\n{ONE}")

    assert mistake.startswith(f"[budget]: {expected}")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("match = ''", "table 1: match: '' is not a pattern; "),
        ('match = "a\\nb"\nexclude = 5', "table 1: exclude: 5 is not a list of patterns; "),
        ("match = 5", "table 1: match: 5 is not a pattern; "),
        ("match = ['a.*']", "table 1: match: ['a.*'] is not a pattern; "),
        ("table = 'a.b'\nmatch = 'a.*'", "a.*: the key 'table' belongs to files for --config; "),
        ("match = 'a.*'\nexclude = ['']", "a.*: exclude: '' is not a pattern; "),
        ("match = 'a.*'\nexclude = [5]", "a.*: exclude: 5 is not a pattern; "),
        ("match = 'a.*'\nexclude = ['a.b', 'a.b']", "a.*: exclude: a pattern is listed twice: "),
        ("match = 'a.*'\nformat = 'detla'", "a.*: format: unknown backend 'detla'; installed: "),
        ("match = 'a.*'\nformat = 5", "a.*: format: 5 is not the name of a format"),
        ("match = 'a.*'\nkeep = '7d'", "a.*: keep: '7d' does not say what is kept; write one"),
        ("match = 'a.*'\nkeep = { versions = 7 }", "a.*: keep: versions: must be a dur"),
        ("match = 'a.*'\nkeep = { versions = '0d' }", "a.*: keep: versions: must be a"),
        ("match = 'a.*'\nkeep = { orphans = '-3d' }", "a.*: keep: orphans: '-3d' is not"),
        ("match = 'a.*'\nmax_wait = true", "a.*: max_wait: True is not a number of nights; "),
        ("match = 'a.*'\nmax_wait = 7.0", "a.*: max_wait: 7.0 is not a number of nights; "),
        ("match = 'a.*'\nmax_wait = '7d'", "a.*: max_wait: '7d' is not a number of nights; "),
        ("match = 'a.*'\nmax_bytes = 'x'", "a.*: max_bytes: 'x' is not a size; "),
        ("match = 'a.*'\nprice = { put = 1 }", "a.*: the key 'price' belongs to [budget]; write"),
        ("match = 'a.*'\nprices = { put = 1 }", "a.*: the key 'prices' belongs to [budget]; "),
        ("match = 'a.*'\nbackoff = 1", "a.*: unknown key 'backoff'; "),
        ("match = 'a.*'\nby = 'auto'", "a.*: by: 'auto' needs a query log; add queries = "),
        ("match = 'a.*'\nqueries = 5", "a.*: queries: must be a list of texts, a path"),
        ("match = 'a.*'\nqueries = ' '", "a.*: queries: must be a list of texts, a"),
        ("match = 'a.*'\nqueries = 'logs/'", "a.*: queries= has an effect with by='auto' only"),
        ("match = 'a.*'\ncurve = 'zorder'", "a.*: curve= and row_groups= without by= have no"),
    ],
)
def test_entries_that_are_refused(line, expected):
    """Before the night, not within it."""
    (mistake,) = mistakes(f"[[tables]]\n{line}")

    assert mistake.startswith(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "the file lists no tables; write [[tables]] with match = "),
        ("tables = []", "the file lists no tables; "),
        ("tables = ['sales.*']", "the file lists no tables; "),
        ("[tables]\nmatch = 'a.*'", "the file lists no tables; "),
        (f"budget = '5TB'\n{ONE}", "budget must be a table of options: [budget], not '5TB'"),
        (f"journal = 'a.b'\n{ONE}", "journal must be a table of options: [journal], not 'a.b'"),
        (f"defaults = 1\n{ONE}", "defaults must be a table of options: [defaults], not 1"),
        (f"{ONE}[journal]", "[journal]: the key 'table' is missing"),
        (f"{ONE}[journal]\ntable = 5", "[journal]: table: 5 is not a table; "),
        (f"{ONE}[journal]\ntable = ' '", "[journal]: table: ' ' is not a table; "),
        (f"{ONE}[defaults]\nmatch = 'a'", "[defaults]: the key 'match' belongs to [[tables]]; "),
        (f"{ONE}weight = 0", "sales.*: weight: 0 is not a weight; write a number above 0 and "),
        (f"{ONE}weight = nan", "sales.*: weight: nan is not a weight"),
        (f"{ONE}weight = 1e307", "sales.*: weight: 1e+307 is not a weight"),
        (f"{ONE}weight = inf", "sales.*: weight: inf is not a weight"),
        (f"{ONE}enabled = 1", "sales.*: enabled: 1 is neither true nor false"),
        (f"{ONE}[reads]", "[reads]: the key 'queries' is missing"),
        (f"{ONE}[reads]\nqueries = 3", "[reads]: queries: must be a list of texts"),
        (f"{ONE}[defaults]\nexclude = ['a']", "[defaults]: the key 'exclude' belongs to "),
        (f"{ONE}[defaults]\nforce = true", "[defaults]: the key 'force' would rewrite every "),
    ],
)
def test_other_files_are_refused(text, expected):
    """The message shows what is expected."""
    (mistake,) = mistakes(text)

    assert mistake.startswith(expected)


def test_a_file_that_is_no_toml_is_refused(written, tmp_path):
    """As is one that is not there."""
    with pytest.raises(UsageError, match=r"lake\.toml: the file is not TOML: "):
        load(written("[[tables]\n"))
    with pytest.raises(UsageError, match="nowhere: the file cannot be read: No such file"):
        load(tmp_path / "nowhere")


NAMES = st.text("ab_.*/: '\"\\é𐀀", min_size=1, max_size=5)
PATTERNS = NAMES.filter(str.strip)
AGES = st.integers(1, 10**9).map(lambda seconds: timedelta(seconds=seconds))
AMOUNTS = st.floats(1e-9, 1e12)
FORMATS = st.sampled_from(["delta", "iceberg", "parquet"])
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "by": st.lists(NAMES, min_size=1, max_size=4, unique=True)
        | st.dictionaries(NAMES, AMOUNTS, min_size=1, max_size=4),
        "target_file_size": st.sampled_from(["auto", "64MB", 1 << 20]),
        "max_bytes": st.integers(1024, 1 << 62),
        "max_seconds": AMOUNTS,
        "max_files": st.integers(1, 1 << 62),
        "tiers": st.just({"day": {"hot": "2d", "warm": "30d"}}),
        "collect_stats": st.booleans(),
    },
)
LAKES = st.builds(
    Lake,
    tables=st.lists(
        st.builds(
            Entry,
            match=PATTERNS,
            exclude=st.lists(PATTERNS, max_size=2, unique=True).map(tuple),
            format=st.none() | FORMATS,
            options=OPTIONS,
            keep=st.none() | st.builds(Keep, versions=st.none() | AGES, orphans=st.none() | AGES),
            max_wait=st.none() | st.integers(1, 1000),
            weight=AMOUNTS,
            enabled=st.booleans(),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda entry: entry.match,
    ).map(tuple),
    budget=st.builds(
        Budget,
        bytes=st.none() | st.integers(1024, 1 << 62),
        seconds=st.none() | st.integers(1, 10**9).map(float),
        money=st.none() | AMOUNTS,
        prices=st.builds(Prices, put=AMOUNTS, core_hour=AMOUNTS),
    ),
    journal=PATTERNS,
    journal_format=FORMATS,
    queries=PATTERNS,
)


def as_file(lake):
    """Return a lake in the form of the file."""
    return {
        "budget": stated(
            bytes=lake.budget.bytes,
            time=lake.budget.seconds and f"{lake.budget.seconds:.0f}s",
            money=lake.budget.money,
            prices=asdict(lake.budget.prices),
        ),
        "journal": {"table": lake.journal, "format": lake.journal_format},
        "reads": {"queries": lake.queries},
        "tables": [
            stated(
                match=entry.match,
                exclude=list(entry.exclude),
                format=entry.format,
                keep=entry.keep
                and stated(
                    versions=written_age(entry.keep.versions),
                    orphans=written_age(entry.keep.orphans),
                ),
                max_wait=entry.max_wait,
                weight=entry.weight,
                enabled=entry.enabled,
                **entry.options,
            )
            for entry in lake.tables
        ],
    }


def stated(**values):
    return {key: value for key, value in values.items() if value is not None}


def written_age(age):
    return age and f"{age // timedelta(seconds=1)} seconds"


def as_toml(value):
    """Return a value as TOML, with tables within one line."""
    if isinstance(value, dict):
        pairs = [f"{as_toml(key)} = {as_toml(each)}" for key, each in value.items()]
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(as_toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


@settings(max_examples=30)
@given(LAKES)
def test_a_lake_is_read_as_it_was_written(lake):
    """From a mapping, and from the text of a file."""
    content = as_file(lake)
    text = "\n".join(f"{key} = {as_toml(value)}" for key, value in content.items())

    assert parse(content, "lake") == lake
    assert parse(tomllib.loads(text), "lake") == lake


@settings(max_examples=20)
@given(LAKES, OPTIONS, AGES)
def test_defaults_are_as_if_each_entry_stated_them(lake, options, age):
    """Unless it states another value."""
    content = as_file(lake)
    defaults = {**options, "max_wait": 3, "keep": {"versions": written_age(age)}}
    stating = [{**defaults, **entry} for entry in content["tables"]]

    assert parse({**content, "defaults": defaults}, "") == parse({**content, "tables": stating}, "")


KEYS = st.sampled_from(
    [
        *("match", "exclude", "format", "keep", "max_wait", "versions", "orphans", "table"),
        *("bytes", "time", "money", "prices", "put", "get", "hot", "a", "weight", *KEYWORDS),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "1", "1d", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=2),
    max_leaves=4,
)
"""Values that any key may have by mistake."""


@given(VALUES, VALUES, st.dictionaries(KEYS, VALUES), st.dictionaries(KEYS, VALUES))
def test_any_content_is_a_lake_or_has_mistakes(budget, journal, defaults, entry):
    """Another error would show none of the mistakes."""
    content = {"budget": budget, "journal": journal, "defaults": defaults}
    content["tables"] = [{"match": "a.*", **entry}]

    with suppress(UsageError):
        assert isinstance(parse(content, "lake.toml"), Lake)
