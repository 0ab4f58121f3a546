"""Synthetic tables with properties of real ones: skew, hot values, nulls, correlation, prefixes."""

import random
from datetime import datetime, timedelta

import numpy as np
import pyarrow as pa

FIRST = datetime(2024, 1, 1)  # noqa: DTZ001 - without a zone, as the column is
DAYS = 365
SECONDS = DAYS * 86_400
HOSTS = 200_000
PORTS = np.array([443, 53, 80, 22, 3389, 8080])
WIDE = 1_000_000_000
"""Number of values in a uniform column."""
BOXES = 120


def uniform(random_: np.random.Generator, rows: int, _: int) -> pa.Table:
    """Return six integer columns with uniformly distributed values."""
    columns = {f"c{number}": random_.integers(0, WIDE, rows) for number in range(6)}
    return pa.table(columns)


def boxes(columns: int) -> list[str]:
    """Draw boxes in all of the uniform columns that contain 1e-4 to 1e-1 of the rows."""
    draw = random.Random(columns)
    found = []
    for number in range(BOXES):
        length = side(number, columns)
        lows = [int(draw.uniform(0, 1 - length) * WIDE) for _ in range(columns)]
        ends = [(low, low + int(length * WIDE)) for low in lows]
        found.append(
            " AND ".join(f"c{at} BETWEEN {low} AND {high}" for at, (low, high) in enumerate(ends))
        )
    return found


def side(number: int, columns: int) -> float:
    """Return the length of a box's sides, as a share of the column."""
    return (10.0 ** -(1 + number % 4)) ** (1 / columns)


def connections(random_: np.random.Generator, rows: int, before: int) -> pa.Table:
    """Return a log of connections in order of time: few hosts and ports have most of them."""
    source, target = (random_.zipf(1.2, rows) % HOSTS for _ in range(2))
    known = PORTS[np.minimum(random_.geometric(0.5, rows) - 1, len(PORTS) - 1)]
    rare = random_.integers(1, 65_536, rows)
    seconds = np.sort(random_.integers(0, 3_600, rows)) + before // max(rows, 1) * 3_600
    return pa.table(
        {
            "seen_at": _moments(seconds * 1_000_000),
            "src_ip": _addresses(source),
            "src_port": random_.integers(1_024, 65_536, rows).astype(np.int32),
            "dst_ip": _addresses(target),
            "dst_port": np.where(random_.random(rows) < 0.8, known, rare).astype(np.int32),
            "bytes": np.exp(random_.normal(7, 2, rows)).astype(np.int64),
        }
    )


def _addresses(hosts: np.ndarray) -> pa.Array:
    scattered = hosts * 2_654_435_761 % (1 << 24)
    parts = [(scattered >> shift & 255).astype(str) for shift in (16, 8, 0)]
    joined = np.char.add("10.", parts[0])
    for part in parts[1:]:
        joined = np.char.add(np.char.add(joined, "."), part)
    return pa.array(joined)


def connection_filters(seed: int = 5) -> list[str]:
    """Return filters by hosts and port: equality on one to three of the columns."""
    draw = random.Random(seed)
    found = []
    for _ in range(12):
        source, target = (_address(draw.randint(1, 2_000)) for _ in range(2))
        port, rare = int(draw.choice(list(PORTS))), draw.randint(10_000, 60_000)
        found += [
            f"src_ip = '{source}'",
            f"dst_ip = '{target}'",
            f"src_ip = '{source}' AND dst_port = {port}",
            f"src_ip = '{source}' AND dst_ip = '{target}'",
            f"dst_ip = '{target}' AND dst_port = {rare}",
            f"src_port BETWEEN {rare} AND {rare + 500} AND dst_ip = '{target}'",
            f"dst_port BETWEEN {rare} AND {rare + 100}",
        ]
    return found


def _address(host: int) -> str:
    return str(_addresses(np.array([host]))[0])


def skew(random_: np.random.Generator, rows: int, before: int) -> pa.Table:
    """Return a shop's sales: Zipf, a hot value, nulls, log-normal amounts, ids, common prefixes."""
    customer, product = (random_.zipf(1.1, rows) % 10_000_000 for _ in range(2))
    tenant = np.where(random_.random(rows) < 0.3, 4_242, random_.integers(0, 10_000, rows))
    page = random_.integers(0, 1_000_000, rows)
    ids = random_.integers(0, 1 << 32, (2, rows))
    seconds = random_.integers(0, SECONDS, rows)
    return pa.table(
        {
            "customer": customer,
            "product": product,
            "amount": np.exp(random_.normal(3, 1.5, rows)),
            "tenant": tenant,
            "coupon": pa.array(random_.integers(0, 1_000, rows), mask=random_.random(rows) < 0.2),
            "sold_at": _moments(seconds * 1_000_000 + before % 1_000_000),
            "url": pa.array(np.char.add("https://shop.example/en/catalogue/items/", _digits(page))),
            "id": pa.array(np.char.add(_hexadecimal(ids[0]), _hexadecimal(ids[1]))),
        }
    )


def _digits(numbers: np.ndarray) -> np.ndarray:
    return np.char.zfill(numbers.astype(str), 7)


def _hexadecimal(numbers: np.ndarray) -> np.ndarray:
    as_bytes = numbers.astype(">u4").tobytes().hex()
    return np.array([as_bytes]).view("<U8") if numbers.size else np.array([], "<U8")


def hot_filters(seed: int = 6) -> list[str]:
    """Return filters by other tenants, by the hot one within a day, and by coupons."""
    draw = random.Random(seed)
    found = []
    for _ in range(20):
        tenant, coupon = draw.randint(0, 9_999), draw.randint(0, 999)
        first = FIRST + timedelta(days=draw.randint(0, DAYS - 8))
        day, week = _from(first, 1), _from(first, 7)
        found += [
            f"tenant = {tenant}",
            f"tenant = 4242 AND {day}",
            f"tenant = {tenant} AND {week}",
            day,
            f"coupon = {coupon} AND {week}",
        ]
    return found


def selective_filters(seed: int = 8) -> list[str]:
    """Return filters by one sale, one customer, ten seconds, and minutes of one tenant."""
    draw = random.Random(seed)
    found = []
    for _ in range(20):
        second, minute = (FIRST + timedelta(seconds=draw.randrange(SECONDS)) for _ in range(2))
        last = FIRST + timedelta(days=DAYS, seconds=-draw.randint(1, 3_600))
        found += [
            f"id = '{draw.getrandbits(64):016x}'",
            f"customer = {draw.randint(1, 100_000)}",
            f"customer = {draw.randint(1, 1_000)} AND product = {draw.randint(1, 1_000)}",
            _from(second, 10 / 86_400),
            f"tenant = {draw.randint(0, 9_999)} AND {_from(minute, 10 / 1_440)}",
            f"sold_at >= TIMESTAMP_NTZ '{last}'",
        ]
    return found


def _from(first: datetime, days: float) -> str:
    beyond = first + timedelta(days=days)
    return f"sold_at >= TIMESTAMP_NTZ '{first}' AND sold_at < TIMESTAMP_NTZ '{beyond}'"


def drift(random_: np.random.Generator, rows: int, before: int) -> pa.Table:
    """Return sales whose amounts and customers change over time, while the stores stay."""
    past = (before + np.arange(rows)) / max(rows, 1)  # parts of the table, 0 to 12
    return pa.table(
        {
            "amount": random_.normal(100 + 5 * past, 30),
            # new customers keep coming
            "customer": (random_.random(rows) * (1 + past / 6) * 100_000).astype(np.int64),
            "store": random_.integers(0, 1_000, rows),
            "text": pa.array(_hexadecimal(random_.integers(0, 1 << 32, rows))),
        }
    )


def taxi(random_: np.random.Generator, rows: int, _: int) -> pa.Table:
    """Return taxi rides: drop-offs follow pick-ups, fares follow distances, places are crowded."""
    centres = np.random.default_rng(11).normal(0, 0.05, (20, 2))
    picked = random_.choice(20, rows, p=np.arange(20, 0, -1) / 210)
    pickup = centres[picked] + random_.normal(0, 0.01, (rows, 2))
    distance = random_.gamma(2, 1.5, rows)
    angle = random_.uniform(0, 2 * np.pi, rows)
    dropoff = pickup + (distance / 111)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    seconds = random_.integers(0, SECONDS, rows)
    duration = (distance * 180 * random_.uniform(0.7, 1.5, rows) + 60).astype(np.int64)
    return pa.table(
        {
            "pickup_at": _moments(seconds * 1_000_000),
            "dropoff_at": _moments((seconds + duration) * 1_000_000),
            "pickup_lon": np.round(pickup[:, 0] - 73.97, 6),
            "pickup_lat": np.round(pickup[:, 1] + 40.75, 6),
            "dropoff_lon": np.round(dropoff[:, 0] - 73.97, 6),
            "dropoff_lat": np.round(dropoff[:, 1] + 40.75, 6),
            "distance": np.round(distance, 2),
            "fare": np.round(3 + 2.5 * distance * random_.uniform(0.95, 1.1, rows), 2),
        }
    )


def taxi_filters(seed: int = 8) -> list[str]:
    """Return filters by places, by times of pick-up and drop-off, and by both."""
    draw = random.Random(seed)
    found = []
    for _ in range(20):
        first = FIRST + timedelta(days=draw.randint(0, DAYS - 8))
        lon, lat = -73.97 + draw.gauss(0, 0.04), 40.75 + draw.gauss(0, 0.04)
        size = draw.choice([0.005, 0.02])
        week = f"'{first}' AND TIMESTAMP_NTZ '{first + timedelta(days=7)}'"
        place = (
            f"pickup_lon BETWEEN {lon:.6f} AND {lon + size:.6f}"
            f" AND pickup_lat BETWEEN {lat:.6f} AND {lat + size:.6f}"
        )
        found += [
            f"pickup_at BETWEEN TIMESTAMP_NTZ {week}",
            f"dropoff_at BETWEEN TIMESTAMP_NTZ {week}",
            place,
            f"{place} AND pickup_at BETWEEN TIMESTAMP_NTZ {week}",
        ]
    return found


def _moments(microseconds: np.ndarray) -> pa.Array:
    start = np.datetime64(FIRST, "us")
    return pa.array(start + microseconds.astype("timedelta64[us]"))
