"""A table like the hits of ClickBench, and the filters of its queries.

The rows are not ClickBench's. Names, types and meaning of the columns are; shares and skews are
assumptions. A few sites, pages, users and regions have most of the hits. Most hits come from no
search, advertisement or telephone. Hits are in the order of time.

Source: https://github.com/ClickHouse/ClickBench, ``queries.sql``.
"""

import random
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

FIRST = date(2013, 7, 1)
DAYS, PARTS = 31, 12
SITES, USERS, PAGES, PHRASES, REGIONS = 6_000, 1_000_000, 5_000, 20_000, 3_000
WORDS = ("news", "google", "shop", "auto", "video", "forum", "mail", "maps", "weather", "games")
PHONES = ("iPhone 2", "iPad", "GT-I9300", "GT-I9500", "Lumia 920", "Nexus 4", "C6603", "HTC One")
SOURCES = {-1: 0.45, 0: 0.23, 1: 0.12, 2: 0.13, 3: 0.01, 4: 0.01, 5: 0.01, 6: 0.02, 7: 0.02}
SEARCHED, ADVERTISED = 2, 3
"""Sources of hits: a search engine, an advertisement."""
WIDTHS = np.array([320, 480, 768, 1024, 1280, 1366, 1440, 1600, 1680, 1920])
TEMPLATES = (0, 0, 1, 1, 2, 2, 2, 3, 4, 5, 6, 4, 2, 2, 2, 7, 8, 2, 2, 9, 10, 11, 12, 13, 14, 15)
"""Template of each filter: several queries have the same filter."""


def hits(random_: np.random.Generator, rows: int, before: int) -> pa.Table:
    """Return a twelfth of a month of hits."""
    site, page = _heavy(random_, SITES, rows), _heavy(random_, PAGES, rows)
    source = random_.choice(list(SOURCES), rows, p=list(SOURCES.values()))
    referer = np.where(source == 0, 0, _heavy(random_, PAGES, rows) + 1)
    first = before // max(rows, 1) * DAYS * 86_400 // PARTS
    second = np.sort(random_.integers(0, DAYS * 86_400 // PARTS, rows)) + first
    searched = np.where(source == SEARCHED, _heavy(random_, PHRASES, rows) + 1, 0)
    phone = np.where(random_.random(rows) < 0.05, random_.integers(1, len(PHONES) + 1, rows), 0)
    engine = random_.integers(1, 60, rows)
    url = _urls(site, page)
    return pa.table(
        {
            "CounterID": _counter(site).astype(np.int32),
            "EventDate": pa.array(np.datetime64(FIRST) + second // 86_400),
            "EventTime": pa.array(
                np.datetime64(FIRST, "us") + second * np.timedelta64(10**6, "us")
            ),
            "UserID": _hash(_heavy(random_, USERS, rows), 0),
            "RegionID": _heavy(random_, REGIONS, rows).astype(np.int32),
            "URL": url,
            "URLHash": _hash(site, page),
            "Title": pa.array(np.char.add(np.array(WORDS)[page % len(WORDS)], " - page")),
            "Referer": np.where(referer == 0, "", _urls(site, referer)),
            "RefererHash": np.where(referer == 0, 0, _hash(site, referer)),
            "TraficSourceID": source.astype(np.int16),
            "SearchPhrase": _texts(searched, "how to find "),
            "AdvEngineID": np.where(source == ADVERTISED, engine, 0).astype(np.int16),
            "MobilePhoneModel": pa.array(np.array(["", *PHONES])[phone]),
            "IsRefresh": (random_.random(rows) < 0.1).astype(np.int16),
            "DontCountHits": (random_.random(rows) < 0.05).astype(np.int16),
            "IsLink": (random_.random(rows) < 0.05).astype(np.int16),
            "IsDownload": (random_.random(rows) < 0.01).astype(np.int16),
            "WindowClientWidth": random_.choice(WIDTHS, rows).astype(np.int16),
            "WindowClientHeight": random_.integers(200, 1_200, rows).astype(np.int16),
        }
    )


def _heavy(random_: np.random.Generator, number: int, rows: int) -> np.ndarray:
    """Draw numbers, the r-th of which is as frequent as 1/r."""
    return (number ** random_.random(rows)).astype(np.int64) - 1


def _counter(site: np.ndarray | int) -> np.ndarray | int:
    return site * 7_919 % 300_007


def _hash(one: np.ndarray, two: np.ndarray | int) -> np.ndarray:
    mixed = np.asarray(one, np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ np.asarray(two, np.uint64)) * np.uint64(0xBF58476D1CE4E5B9)
    return (mixed ^ mixed >> np.uint64(31)).view(np.int64)


def _urls(site: np.ndarray, page: np.ndarray) -> np.ndarray:
    address = np.char.add("http://site", _counter(site).astype(str))
    word = np.char.add(np.char.add("/", np.array(WORDS)[page % len(WORDS)]), "/")
    return np.char.add(np.char.add(address, word), page.astype(str))


def _texts(number: np.ndarray, prefix: str) -> np.ndarray:
    return np.where(number == 0, "", np.char.add(prefix, number.astype(str)))


def hits_filters(seed: int = 10, each: int = 3) -> list[str]:
    """Return the filters of the 26 queries that have one, each with drawn parameters."""
    draw = random.Random(seed)
    return [text for _ in range(each) for text in [*_of_all_sites(draw), *_of_sites(draw)]]


def _of_all_sites(draw: random.Random) -> list[str]:
    user = int(_hash(np.array([int(USERS ** draw.random()) - 1]), 0)[0])
    words = [draw.choice(WORDS) for _ in range(3)]
    advertised, searched = "AdvEngineID <> 0", "SearchPhrase <> ''"
    phone, url = "MobilePhoneModel <> ''", f"URL LIKE '%{words[0]}%'"
    other = f"Title LIKE '%{words[1]}%' AND URL NOT LIKE '%.{words[1]}.%'"
    return [
        *[advertised] * 2,
        *[phone] * 2,
        *[searched] * 3,
        f"UserID = {user}",
        url,
        f"URL LIKE '%{words[2]}%' AND {searched}",
        f"{other} AND {searched}",
        url,
        *[searched] * 3,
        "URL <> ''",
        "Referer <> ''",
        *[searched] * 2,
    ]


def _of_sites(draw: random.Random) -> list[str]:
    """Return the filters of one site's dashboards: a site that has some of the hits, and dates."""
    found = []
    for rest in (
        "DontCountHits = 0 AND IsRefresh = 0 AND URL <> ''",
        "DontCountHits = 0 AND IsRefresh = 0 AND Title <> ''",
        "IsRefresh = 0 AND IsLink <> 0 AND IsDownload = 0",
        "IsRefresh = 0",
        "IsRefresh = 0 AND TraficSourceID IN (-1, 6) AND RefererHash = {referer}",
        "IsRefresh = 0 AND DontCountHits = 0 AND URLHash = {page}",
    ):
        site, days = _site(draw), draw.choice((7, 14, 31))
        page, referer = (int(_hash(np.array([site]), draw.randint(1, 50))[0]) for _ in range(2))
        found.append(f"{_within(draw, site, days)} AND {rest.format(page=page, referer=referer)}")
    two_days = _within(draw, _site(draw), 2)
    return [*found, f"{two_days} AND IsRefresh = 0 AND DontCountHits = 0"]


def _site(draw: random.Random) -> int:
    return draw.randint(5, 100)


def _within(draw: random.Random, site: int, days: int) -> str:
    first = FIRST + timedelta(draw.randint(0, DAYS - days))
    last = first + timedelta(days - 1)
    return (
        f"CounterID = {_counter(site)} AND EventDate >= DATE '{first}'"
        f" AND EventDate <= DATE '{last}'"
    )
