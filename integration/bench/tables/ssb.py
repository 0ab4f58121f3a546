"""The Star Schema Benchmark: its fact table joined with its dimensions, and its queries' filters.

Values are drawn as the specification says: uniformly over seven years of dates, cities, brands,
quantities and discounts. Queries filter the joined table as benchmarks of other databases do.

Source: P. O'Neil, E. O'Neil, X. Chen, Star Schema Benchmark, revision 3, June 5, 2009.
"""

import random

import numpy as np
import pyarrow as pa

ROWS = 500_000
"""Rows of a part at scale 1."""
CUSTOMERS, SUPPLIERS, PARTS = 30_000, 2_000, 200_000
"""Rows of the dimensions at scale 1."""
FIRST = np.datetime64("1992-01-01")
DAYS = 2_557
MOST_LINES = 7
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
NATIONS = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
PLACES = [(region, nation) for region, nations in NATIONS.items() for nation in nations]
CITIES = [f"{nation:9.9}{digit}" for _, nation in PLACES for digit in range(10)]
BRANDS = 40
"""Brands of each category."""


def lineorder(random_: np.random.Generator, rows: int, before: int) -> pa.Table:
    """Return the lines of orders with their customers, suppliers, parts and dates."""
    scale = rows / ROWS
    lines = random_.integers(1, MOST_LINES + 1, rows)
    order = np.repeat(np.arange(rows), lines)[:rows]
    day = random_.integers(0, DAYS, rows)[order]
    customer = random_.integers(0, max(1, int(CUSTOMERS * scale)), rows)[order]
    supplier = random_.integers(0, max(1, int(SUPPLIERS * scale)), rows)
    part = random_.integers(0, max(1, int(PARTS * scale)), rows)
    quantity, discount = random_.integers(1, 51, rows), random_.integers(0, 11, rows)
    price = 90_000 + part // 10 % 20_001 + 100 * (part % 1_000)
    return pa.table(
        {
            "lo_orderkey": before + order,
            "lo_custkey": customer,
            "lo_partkey": part,
            "lo_suppkey": supplier,
            "lo_quantity": quantity.astype(np.int32),
            "lo_extendedprice": quantity * price,
            "lo_discount": discount.astype(np.int32),
            "lo_revenue": quantity * price * (100 - discount) // 100,
            "lo_supplycost": 6 * price // 10,
            **_dates(day),
            **_places("c", customer, seed=1),
            **_places("s", supplier, seed=2),
            **_brands(part),
        }
    )


def _dates(day: np.ndarray) -> dict[str, pa.Array]:
    dates = FIRST + day
    month = dates.astype("datetime64[M]")
    year = dates.astype("datetime64[Y]").astype(np.int64) + 1970
    number = month.astype(np.int64) % 12
    in_year = (dates - dates.astype("datetime64[Y]")).astype(np.int64)
    return {
        "lo_orderdate": pa.array(dates),
        "d_year": pa.array(year.astype(np.int32)),
        "d_yearmonthnum": pa.array((year * 100 + number + 1).astype(np.int32)),
        "d_yearmonth": pa.array(np.char.add(np.array(MONTHS)[number], year.astype(str))),
        "d_weeknuminyear": pa.array((in_year // 7 + 1).astype(np.int32)),
    }


def _places(letter: str, key: np.ndarray, seed: int) -> dict[str, pa.Array]:
    of_key = np.random.default_rng(seed).integers(0, len(CITIES), key.max(initial=0) + 1)
    city = of_key[key]
    regions, nations = np.array(PLACES).T
    return {
        f"{letter}_city": pa.array(np.array(CITIES)[city]),
        f"{letter}_nation": pa.array(nations[city // 10]),
        f"{letter}_region": pa.array(regions[city // 10]),
    }


def _brands(part: np.ndarray) -> dict[str, pa.Array]:
    of_part = np.random.default_rng(3).integers(0, 25 * BRANDS, part.max(initial=0) + 1)
    category, brand = np.divmod(of_part[part], BRANDS)
    mfgr = np.char.add("MFGR#", (category // 5 + 1).astype(str))
    categories = np.char.add(mfgr, (category % 5 + 1).astype(str))
    return {
        "p_mfgr": pa.array(mfgr),
        "p_category": pa.array(categories),
        "p_brand": pa.array(np.char.add(categories, (brand + 1).astype(str))),
    }


def lineorder_filters(seed: int = 9, each: int = 5) -> list[str]:
    """Return the filters of the thirteen queries, Q1.1 to Q4.3, each with drawn parameters."""
    draw = random.Random(seed)
    return [text for _ in range(each) for text in [*_of_dates(draw), *_of_dimensions(draw)]]


def _of_dates(draw: random.Random) -> list[str]:
    years, month = [draw.randint(1992, 1998) for _ in range(3)], draw.randint(1, 12)
    week = draw.randint(1, 52)
    discounts = [draw.randint(0, 8) for _ in range(3)]
    between = [f"lo_discount BETWEEN {low} AND {low + 2}" for low in discounts]
    quantities = [draw.randint(1, 41) for _ in range(2)]
    ten = [f"lo_quantity BETWEEN {low} AND {low + 9}" for low in quantities]
    return [
        f"d_year = {years[2]} AND {between[0]} AND lo_quantity < 25",
        f"d_yearmonthnum = {years[0] * 100 + month} AND {between[1]} AND {ten[0]}",
        f"d_weeknuminyear = {week} AND d_year = {years[1]} AND {between[2]} AND {ten[1]}",
    ]


def _of_dimensions(draw: random.Random) -> list[str]:
    def category() -> str:
        return f"MFGR#{draw.randint(1, 5)}{draw.randint(1, 5)}"

    def two(names: list[str]) -> str:
        return "', '".join(draw.sample(names, 2))

    regions = [draw.choice(list(NATIONS)) for _ in range(6)]
    nation, first = draw.choice(PLACES)[1], draw.randint(1992, 1993)
    cities = [two(CITIES[at : at + 10]) for at in (10 * draw.randrange(25) for _ in range(2))]
    eight, tens = category(), 10 * draw.randint(1, 3)
    of, by = draw.choice(PLACES)
    makers = [two([f"MFGR#{n}" for n in range(1, 6)]) for _ in range(2)]
    pairs = [draw.randint(1992, 1997) for _ in range(2)]
    month = f"{draw.choice(MONTHS)}{draw.randint(1992, 1998)}"
    years = f"d_year BETWEEN {first} AND {first + 5}"
    two_years = [f"d_year IN ({year}, {year + 1})" for year in pairs]
    eight_brands = f"p_brand BETWEEN '{eight}{tens + 1}' AND '{eight}{tens + 8}'"
    both = "c_region = '{0}' AND s_region = '{0}'"
    in_cities = "c_city IN ('{0}') AND s_city IN ('{0}')"
    at = f"c_region = '{of}' AND s_nation = '{by}'"
    return [
        f"p_category = '{category()}' AND s_region = '{regions[0]}'",
        f"{eight_brands} AND s_region = '{regions[1]}'",
        f"p_brand = '{category()}{draw.randint(1, BRANDS)}' AND s_region = '{regions[2]}'",
        f"{both.format(regions[3])} AND {years}",
        f"c_nation = '{nation}' AND s_nation = '{nation}' AND {years}",
        f"{in_cities.format(cities[0])} AND {years}",
        f"{in_cities.format(cities[1])} AND d_yearmonth = '{month}'",
        f"{both.format(regions[4])} AND p_mfgr IN ('{makers[0]}')",
        f"{both.format(regions[5])} AND {two_years[0]} AND p_mfgr IN ('{makers[1]}')",
        f"{at} AND {two_years[1]} AND p_category = '{category()}'",
    ]
