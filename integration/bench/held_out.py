"""Advice for queries that a log lacks: ``python -m integration.bench.held_out``.

The tables and filters are those of ``integration.bench.logs``. Spark makes them once and keeps them
in a folder; everything else runs without it. Layouts are chosen for the filters of some templates,
and judged by filters of the others, beside a layout by the three most filtered columns of the same
log. ``halves`` are four draws of half of the templates, ``one by one`` leaves each out alone. With
``same``, the log has all templates, and layouts are compared with hand-picked columns.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import zadapter.spark
from integration.bench import logs
from integration.bench.tables.logs import LOGS
from zadapter.base.ranks import rank
from zadapter.inspection.advice import IN_TURN, LEARNED, STEADY
from zadapter.inspection.advise.choice import Judge, weigh_columns
from zadapter.inspection.advise.judging import SampledTable
from zadapter.layout.filters import Filter, Keys, rank_filters

FILES = 64
ROWS = 100_000
"""Rows that layouts are judged by, about."""
CHOSEN = "by=auto"
HAND_PICKED = "hand-picked"
CONTENDERS = (IN_TURN, STEADY, LEARNED, CHOSEN)


@dataclass(frozen=True)
class Split:
    """The templates that a log has, and those that layouts are judged by."""

    kind: str
    known: frozenset[int]
    asked: frozenset[int]


def splits(templates: Sequence[int]) -> Iterator[Split]:
    """Yield the splits of some templates."""
    every = frozenset(templates)
    yield Split("same", every, every)
    for seed in range(logs.SPLITS):
        known = frozenset(random.Random(seed).sample(sorted(every), len(every) // 2))
        yield Split("halves", known, every - known)
    for one in sorted(every):
        yield Split("one by one", every - {one}, frozenset({one}))


def keep(case: logs.Case, path: Path) -> None:
    """Write a case."""
    names = [name for (name,) in case.columns]
    pq.write_table(pa.table(dict(zip(names, case.values, strict=True))), f"{path}.parquet")
    written = {
        "hand_picked": dict(case.hand_picked.weights),
        "older": [[template, each.to_dict()] for template, each in case.older],
        "newer": [
            [int(template), each.to_dict()]
            for template, each in zip(case.templates, case.newer, strict=True)
        ],
    }
    Path(f"{path}.json").write_text(json.dumps(written), encoding="utf-8")


def kept(path: Path) -> logs.Case:
    """Read a case."""
    rows = pq.read_table(f"{path}.parquet")
    written = json.loads(Path(f"{path}.json").read_text(encoding="utf-8"))
    values = [column.combine_chunks() for column in rows.columns]
    ranked = [rank(each) for each in values]
    columns = tuple((name,) for name in rows.column_names)
    distinct = [each.distinct for each in ranked]
    newer = [Filter.from_dict(each) for _, each in written["newer"]]
    return logs.Case(
        columns=columns,
        values=values,
        ranks=np.stack([each.ranks for each in ranked], axis=1),
        distinct=distinct,
        hand_picked=Keys(written["hand_picked"]),
        older=[(template, Filter.from_dict(each)) for template, each in written["older"]],
        newer=newer,
        templates=np.array([template for template, _ in written["newer"]]),
        asked=rank_filters(newer, columns, distinct),
        matching=np.zeros(len(newer)),
    )


def compared(case: logs.Case, table: SampledTable, split: Split) -> dict[str, np.ndarray]:
    """Return what the asked filters read of each contender, by file and by row group."""
    older = [each for template, each in case.older if template in split.known]
    if not weigh_columns(older, case.columns):
        return {}
    judge = Judge(table, older, older, case.columns)
    found, _ = judge.rank_layouts()
    keys = {each.candidate.name: each.candidate.keys for each in found}
    keys |= {CHOSEN: found[0].candidate.keys, HAND_PICKED: case.hand_picked}
    asked = np.isin(case.templates, sorted(split.asked))
    read = {name: case.shares(of, "adaptive", FILES)[:, asked].mean(1) for name, of in keys.items()}
    return read | {"name": found[0].candidate.name}


def print_splits(cases: dict[str, logs.Case], kinds: Sequence[str]) -> None:
    """Print each split, and the means over the tables."""
    ratios: dict[tuple[str, str], list[list[np.ndarray]]] = {}
    for name, case in cases.items():
        table = logs.unwritten(case, FILES)
        here: dict[tuple[str, str], list[np.ndarray]] = {}
        for split in splits(case.templates.tolist()):
            read = compared(case, table, split) if split.kind in kinds else {}
            base = HAND_PICKED if split.kind == "same" else IN_TURN
            for contender in CONTENDERS if read else ():
                here.setdefault((split.kind, contender), []).append(read[contender] / read[base])
            if read:
                cells = [_cell(here[split.kind, each][-1]) for each in CONTENDERS]
                print("|", name, "|", split.kind, "|", len(split.known), "|", " | ".join(cells),
                      "|", read["name"], "|", flush=True)  # fmt: skip
        for key, found in here.items():
            ratios.setdefault(key, []).append(found)
    for (kind, contender), tables in ratios.items():
        mean = np.exp(np.mean([np.log(each).mean(axis=0) for each in tables], axis=0))
        worst = np.max([np.max(each, axis=0) for each in tables], axis=0)
        print("|", kind, "|", contender, "|", _cell(mean), "|", _cell(worst), "|", flush=True)


def _cell(shares: np.ndarray) -> str:
    return f"{shares[0]:.2f} / {shares[1]:.2f}"


def parser_of(module: str, about: str | None) -> argparse.ArgumentParser:
    """Return a parser of the options that say which cases are taken."""
    parser = argparse.ArgumentParser(
        prog=f"python -m integration.bench.{module}", description=about
    )
    parser.add_argument("--scale", type=float, default=0.1)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "logs")
    parser.add_argument("--tables", nargs="+", default=list(LOGS), choices=list(LOGS))
    return parser


def main() -> None:
    """Print the tables."""
    parser = parser_of("held_out", __doc__)
    parser.add_argument("--splits", nargs="+", default=["same", "halves", "one by one"])
    options = parser.parse_args()
    cases = {}
    for name in options.tables:
        path = options.folder / f"case-{name}-{options.scale}"
        if not Path(f"{path}.json").exists():
            keep(logs.case(zadapter.spark.session(), name, options.folder, options.scale), path)
        cases[name] = thinned(kept(path))
    print_splits(cases, options.splits)


def thinned(case: logs.Case) -> logs.Case:
    """Return a case with fewer rows."""
    step = max(1, len(case.ranks) // ROWS)
    some = pa.array(np.arange(0, len(case.ranks), step))
    values = [each.take(some) for each in case.values]
    return replace(case, values=values, ranks=case.ranks[::step])


if __name__ == "__main__":
    main()
