"""Tables of TPC-H and TPC-DS, and the filters of their queries."""

import random
import shutil
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

PARTS = 12
EACH = 5
"""Filters per query, each with new parameters."""


def lineitem(folder: Path, scale: float) -> None:
    """Make TPC-H's lineitem: 6 million rows at scale 1."""
    _made("tpch", "lineitem", folder, scale)


def store_sales(folder: Path, scale: float) -> None:
    """Make TPC-DS's store_sales: 2.9 million rows at scale 1."""
    _made("tpcds", "store_sales", folder, scale)


def _made(family: str, table: str, folder: Path, scale: float) -> None:
    program = shutil.which("tpcgen-cli") or str(Path(sys.executable).parent / "tpcgen-cli")
    options = [f"--tables={table}", f"--parts={PARTS}", f"--output-dir={folder}"]
    command = [program, family, "parquet", "-s", str(scale), *options]
    subprocess.run(command, check=True, capture_output=True)
    for file in (folder / table).iterdir():
        file.rename(folder / file.name)


def lineitem_filters(seed: int = 3, each: int = EACH) -> list[str]:
    """Return TPC-H's filters on lineitem, with parameters drawn as in its section 2.4.

    Queries 8 and 20 omit the part keys that result from the filter on part, since they are known
    only at run time; query 4 compares two columns.
    """
    draw = random.Random(seed)
    return [text for _ in range(each) for text in _lineitem_filters(draw)]


def _lineitem_filters(draw: random.Random) -> list[str]:
    def month(last: int) -> date:
        """Draw a month from 1993-01 to month *last* of 1997."""
        return _later(date(1993, 1, 1), draw.randint(0, 4 * 12 + last - 1))

    march = date(1995, 3, draw.randint(1, 31))
    first, second, third = (date(draw.randint(1993, 1997), 1, 1) for _ in range(3))
    discount, modes = draw.randint(2, 9), ["REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"]
    two = "', '".join(draw.sample(modes, 2))
    least = [draw.randint(*between) for between in ((1, 10), (10, 20), (20, 30))]
    quantities = " OR ".join(f"l_quantity BETWEEN {low} AND {low + 10}" for low in least)
    return [
        f"l_shipdate <= {_day(date(1998, 12, 1) - timedelta(draw.randint(60, 120)))}",
        f"l_shipdate > {_day(march)}",
        "l_commitdate < l_receiptdate",
        (
            f"{_between('l_shipdate', first, _later(first, 12))}"
            f" AND l_discount BETWEEN 0.0{discount - 1} AND {(discount + 1) / 100:.2f}"
            f" AND l_quantity < {draw.randint(24, 25)}"
        ),
        "l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'",
        "l_returnflag = 'R'",
        (
            f"l_shipmode IN ('{two}') AND l_commitdate < l_receiptdate"
            " AND l_shipdate < l_commitdate"
            f" AND {_between('l_receiptdate', second, _later(second, 12))}"
        ),
        _between("l_shipdate", one := month(12), _later(one, 1)),
        _between("l_shipdate", one := month(10), _later(one, 3)),
        (
            f"l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON'"
            f" AND ({quantities})"
        ),
        _between("l_shipdate", third, _later(third, 12)),
    ]


def _between(column: str, first: date, last: date) -> str:
    return f"{column} >= {_day(first)} AND {column} < {_day(last)}"


def _day(day: date) -> str:
    return f"DATE '{day}'"


def _later(day: date, months: int) -> date:
    number = day.year * 12 + day.month - 1 + months
    return date(number // 12, number % 12 + 1, 1)


def store_sales_filters(seed: int = 4, each: int = EACH) -> list[str]:
    """Return TPC-DS's filters on store_sales: queries 9 and 28, and dates and items of joins."""
    draw = random.Random(seed)
    found = []
    for _ in range(each * 2):
        day, item = 2_450_816 + draw.randint(0, 1_790), draw.randint(1, 17_000)
        price, coupon, cost = draw.randint(0, 190), draw.randint(0, 18_000), draw.randint(0, 80)
        low = draw.choice([0, 6, 11, 16, 21, 26])
        fifth = draw.choice([1, 21, 41, 61, 81])
        found += [
            f"ss_quantity BETWEEN {fifth} AND {fifth + 19}",
            (
                f"ss_quantity BETWEEN {low} AND {low + 5}"
                f" AND (ss_list_price BETWEEN {price} AND {price + 10}"
                f" OR ss_coupon_amt BETWEEN {coupon} AND {coupon + 1000}"
                f" OR ss_wholesale_cost BETWEEN {cost} AND {cost + 20})"
            ),
            f"ss_sold_date_sk BETWEEN {day} AND {day + 30}",
            f"ss_sold_date_sk BETWEEN {day} AND {day + 365} AND ss_item_sk = {item}",
            f"ss_item_sk BETWEEN {item} AND {item + 100}",
            f"ss_sold_date_sk = {day} AND ss_quantity > 80",
        ]
    return found
