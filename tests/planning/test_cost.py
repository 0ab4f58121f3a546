"""What a rewrite costs, in bytes, requests and money."""

from dataclasses import replace
from decimal import Decimal

import pytest

from zadapter.errors import UsageError
from zadapter.planning.cost import Cost, ObjectStore, Prices, object_store

COST = Cost(
    bytes_read=3 << 30,
    bytes_written=2 << 30,
    bytes_shuffled=6 << 30,
    get_requests=20_000,
    put_requests=4_000,
    core_seconds=1_800.0,
)
NAMES = "expected some of: put, get, gb_read, core_hour, such as 'put=0.005,get=0.0004,core_hour"


def test_each_price_has_its_unit():
    """Thousands of requests, gigabytes, core hours; the sum has the unit of the prices."""
    prices = Prices.of("put=0.005, get=0.0004,gb_read=0.09,core_hour=0.05")

    assert prices == Prices.of({"put": 0.005, "get": 0.0004, "gb_read": 0.09, "core_hour": 0.05})
    assert prices.sum(COST) == pytest.approx(4 * 0.005 + 20 * 0.0004 + 3 * 0.09 + 0.05 / 2)
    assert Prices.of("put=1").sum(COST) == 4
    assert Prices.of({"core_hour": 2}).sum(COST) == 1


def test_a_sum_of_unknown_amounts_is_unknown():
    """Unless the amount has no price."""
    unknown = replace(COST, core_seconds=None, bytes_written=None, bytes_shuffled=None)

    assert Prices(put=1, core_hour=1).sum(unknown) is None
    assert Prices(put=1).sum(unknown) == 4
    assert str(unknown) == (
        "3 GB read, unknown bytes written, unknown bytes shuffled, about 20,000 GET and 4,000 PUT "
        "requests, unknown core seconds"
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("egress=1", "price=: unknown price 'egress'; "),
        ({"PUT": 1}, "price=: unknown price 'PUT'; "),
        ({5: 1}, "price=: unknown price 5; "),
        ("put=-1", "the price of put must be a number of at least 0, not '-1'; "),
        ("put=", "the price of put must be a number of at least 0, not ''; "),
        ("put=cheap", "the price of put must be a number of at least 0, not 'cheap'; "),
        ("core_hour=inf", "the price of core_hour must be a number of at least 0, not 'inf'; "),
        ({"get": float("nan")}, "the price of get must be a number of at least 0, not nan; "),
        ({"get": 10**400}, "the price of get must be a number of at least 0, not 1000000"),
        ({"get": None}, "the price of get must be a number of at least 0, not None; "),
        ({"get": True}, "the price of get must be a number of at least 0, not True; "),
        ("put", "price=: 'put' is not name=number; "),
        ("", "price=: '' is not name=number; "),
        ({}, "price= must have prices by name, not {}; "),
        (0.05, "price= must have prices by name, not 0.05; "),
    ],
)
def test_a_wrong_price_is_refused(given, expected):
    """The message says what is wrong, and which prices there are."""
    with pytest.raises(UsageError) as refused:
        Prices.of(given)

    assert expected in str(refused.value)
    assert NAMES in str(refused.value)


def test_a_price_is_any_number():
    assert Prices.of({"put": Decimal("0.005"), "get": "0.0004"}) == Prices(put=0.005, get=0.0004)


def test_a_price_is_given_once():
    with pytest.raises(UsageError, match="'put' is given twice"):
        Prices.of("put=1,put=2")


def requests(store, written=1, size=1 << 20, read=0, commits=0):
    return store.requests(read=read, written=written, size=size, commits=commits)


def test_requests_grow_with_files_parts_and_commits():
    """A file of several parts begins and ends an upload; one that is renamed is copied."""
    store, renaming = ObjectStore(renames=False), ObjectStore(renames=True)
    (gets, puts) = requests(store)

    assert requests(store, written=0, size=0) == (0, 0)
    assert requests(store, written=10, size=10 << 20) == (10 * gets, 10 * puts)
    assert requests(store, size=64 << 20) == (gets, puts)
    assert requests(store, size=(64 << 20) + 1) == (gets, puts + 3)
    assert requests(store, written=3, size=3 * (192 << 20)) == (3 * gets, 3 * (puts + 4))
    assert requests(renaming) > (gets, puts)
    assert requests(store, read=1)[0] > gets
    assert requests(store, commits=1)[1] > puts


@pytest.mark.parametrize(
    ("location", "billed"),
    [
        ("s3://bucket/t", True),
        ("s3a://bucket/t", True),
        ("gs://bucket/t", True),
        ("abfss://c@account.dfs.core.windows.net/t", True),
        ("file:///lake/t", False),
        ("/lake/t", False),
        ("hdfs://namenode:9000/t", False),
        ("webhdfs://namenode:9870/t", False),
        ("s3://[t", True),
    ],
)
def test_disks_bill_no_requests(location, billed):
    assert (object_store(location, renames=True) is not None) == billed
