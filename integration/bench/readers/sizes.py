"""Sizes of files and row groups at a fixed layout: bytes, requests and seconds."""

import numpy as np
import pyarrow as pa

from integration.bench.readers.files import connect, nested, read, write

FILES, GROUPS = (4, 16, 64, 256), (1, 4, 16, 64)
MOST = 4_096
"""Maximum number of row groups of a table."""
YEAR = 31_536_000
TENANTS, USERS, TIMES = 1_000, 1_000_000, 8
READ = 'sum(amount), max(url), sum(x), sum("user"), max(ts), max(tenant)'
KINDS = ("1 % of the times", "tenant", "tenant, 30 % of the times", "ten seconds")


def rows_in_order(rows):
    """Return rows in boxes of ``ts`` and ``tenant``, both cut as often."""
    draw = np.random.default_rng(3)
    columns = {
        "ts": draw.integers(0, YEAR, rows),
        "tenant": draw.integers(0, TENANTS, rows),
        "user": draw.integers(0, USERS, rows),
        "amount": draw.integers(0, 100_000, rows),
        "x": draw.random(rows),
    }
    url = np.char.add("/p/", draw.integers(0, 10**9, rows).astype(str))
    order = nested(columns, [("ts", 2), ("tenant", 2)] * 6)
    return pa.table(columns | {"url": url}).take(pa.array(order))


def filters():
    """Return conditions of each kind."""
    draw, hundredth = np.random.default_rng(1), YEAR // 100
    found = {kind: [] for kind in KINDS}
    for _ in range(TIMES):
        at, tenant = int(draw.integers(0, YEAR * 65 // 100)), int(draw.integers(0, TENANTS))
        made = (
            f"ts BETWEEN {at} AND {at + hundredth}",
            f"tenant = {tenant}",
            f"tenant = {tenant} AND ts BETWEEN {at} AND {at + 30 * hundredth}",
            f"ts BETWEEN {at} AND {at + 9}",
        )
        for kind, text in zip(KINDS, made, strict=True):
            found[kind].append(text)
    return found


def main(folder, rows):
    """Print the table: means of a full scan, and of the filters of each kind."""
    connection, table = connect(), rows_in_order(rows)
    heads = ["files", "row groups", "MB in all", "full scan", *KINDS]
    print("\n| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for files in FILES:
        for groups in (each for each in GROUPS if files * each <= MOST):
            made = write(table, folder / f"{files}-{groups}", files, groups)
            size = sum(path.stat().st_size for path in made.iterdir()) / 1e6
            full = [read(connection, f"SELECT {READ} FROM {{}}", made) for _ in range(2)]
            cells = [_cell(full)]
            for texts in filters().values():
                found = [
                    read(connection, f"SELECT {READ} FROM {{}} WHERE {t}", made) for t in texts
                ]
                cells.append(_cell(found))
            print(f"| {files} | {groups} | {size:.1f} |", " | ".join(cells), "|", flush=True)
            for path in made.iterdir():
                path.unlink()


def _cell(reads):
    megabytes = np.mean([each.bytes for each in reads]) / 1e6
    requests = np.mean([each.requests for each in reads])
    milliseconds = 1e3 * np.mean([each.seconds for each in reads])
    return f"{megabytes:.2f} MB, {requests:.0f} r, {milliseconds:.0f} ms"
