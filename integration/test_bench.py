"""The benchmark runs, with some contenders, on tables that are tiny."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from integration.bench.appends.ageing import Aged, Look
from integration.bench.appends.goals import goals
from integration.bench.appends.rows import AGEING
from integration.bench.compare import RIVALS
from integration.bench.contenders import OURS, TUNED
from integration.bench.measures import optimum
from integration.bench.tables.logs import LOGS, SELECTIVE

ROOT = Path(__file__).parents[1]
SOME = {
    "delta": ["plain copy", "zadapter", "Delta ZORDER", f"Delta ZORDER{TUNED}", "delta-rs z_order"],
    "iceberg": ["plain copy", "zadapter", "Iceberg zorder", f"Iceberg zorder{TUNED}"],
}
"""Contenders, one that makes a table anew and such as change it."""


def run(module, *options):
    """What a command prints; it must succeed."""
    command = [sys.executable, "-m", module, *map(str, options)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(("grid", "side"), [((8, 8), 0.3), ((4, 4, 4), 0.1), ((4, 4, 2, 2), 0.05)])
def test_the_optimum_is_what_boxes_touch_in_the_best_grid(grid, side):
    """Counted with boxes that are drawn; no other grid of as many cells is better."""
    low = np.random.default_rng(1).uniform(0, 1 - side, (20_000, len(grid)))
    counted = np.prod(np.floor((low + side) * grid) - np.floor(low * grid) + 1, axis=1).mean()

    assert optimum.touched(64, len(grid), [side]) == pytest.approx(counted, rel=0.02)


@pytest.mark.parametrize("log", (LOGS | SELECTIVE).values(), ids=LOGS | SELECTIVE)
def test_queries_of_two_seeds_differ_in_nothing_but_their_values(log):
    """So nothing is learned from the queries that judge, and a template can be held out."""
    older, newer = (log.by_template(seed) for seed in (1, 2))
    shapes = {
        (template, re.sub(r"'[^']*'|-?\b\d+(\.\d+)?\b", "?", text))
        for template, text in [*older, *newer]
    }

    assert len(shapes) == len(set(log.templates)) > 1
    assert [template for template, _ in older] == [template for template, _ in newer]
    assert len({text for _, text in older} & {text for _, text in newer}) < len(set(older)) / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_the_benchmark_says_what_it_found(name, tmp_path):
    """Each contender's table answers like the input; figures and goals are saved."""
    tiny = ["--scale", 0.001, "--files", 3, "--repeat", 1]

    printed = run(
        "integration.bench", "--formats", name, "--workloads", "taxi", *tiny,
        "--only", ",".join(SOME[name]), "--folder", tmp_path / "tables", "--save", tmp_path,
    )  # fmt: skip

    saved = json.loads((tmp_path / "results.json").read_text())
    found = {result["contender"]: result for result in saved["results"]}
    assert found.keys() == {"input", *SOME[name]}
    assert all(each["shares"]["row_groups"] > 40 for who, each in found.items() if TUNED in who)
    assert found["zadapter"]["rows"] == found["input"]["rows"] == 6_000
    assert all(len(result["efforts"]) == (who != "input") for who, result in found.items())
    assert {goal["what"] for goal in saved["goals"]} >= {"bytes written, x input"}
    assert (tmp_path / "results.md").read_text().count(f"| taxi | {name} | ") == len(found)
    assert {path.name for path in tmp_path.glob("*.png")} == {"seconds.png", "shares.png"}
    assert "bytes written, x input" in printed


def test_rows_arrive_in_order_and_once(tmp_path):
    """Rows whose first key is the time come in its order; none is left out or comes twice."""
    pieces = AGEING["appends-time"].pieces(tmp_path, 0.001, 4)

    days, ids = [], []
    for piece in pieces:
        table = pq.read_table(piece, columns=["l_shipdate", "l_orderkey", "l_linenumber"])
        days.append(table["l_shipdate"].to_numpy())
        ids += zip(*(table[name].to_pylist() for name in table.column_names[1:]), strict=True)
    assert [len(each) / len(ids) for each in days] == pytest.approx([0.6, *[0.1] * 4], abs=0.001)
    assert (np.diff(np.concatenate(days)) >= np.timedelta64(0)).all()
    assert len(set(ids)) == len(ids) == 6_005


@pytest.mark.parametrize(
    ("written", "better"), [(1.0, "none"), (4.0, "peer (by file), peer (by row group)")]
)
def test_a_peer_is_better_if_it_writes_and_reads_no_more(written, better):
    """A peer that has less read by writing more is another point of the same curve."""

    def aged(who, by_file, written):
        return Aged("appends", "delta", who, 1, [Look(1, by_file, 1.5, 9, 9, 99, written)], [1.0])

    found = {
        each.what: each for each in goals([aged("zadapter", 1.3, written), aged("peer", 1.2, 3)])
    }

    goal = found["appends, delta, 1: others that write and have read no more"]
    assert (goal.found, goal.reached) == (better, better == "none")


@pytest.mark.slow
def test_tables_that_age_are_measured_beside_fresh_ones(tmp_path):
    """Two appends to Parquet; the rows are compared in the end."""
    printed = run(
        "integration.bench", "--formats", "parquet", "--workloads", "appends",
        "--appends", 2, "--scale", 0.001, "--only", "zadapter,nothing", "--save", tmp_path,
    )  # fmt: skip

    saved = json.loads((tmp_path / "results.json").read_text())
    ours, nothing = saved["aged"]
    assert [look["appends"] for look in ours["looks"]] == [1, 2]
    assert ours["looks"][-1]["written"] >= 1 > nothing["looks"][-1]["written"] == 0
    assert nothing["looks"][-1]["by_row_group"] > 1
    assert "| appends | parquet | nothing | 2 |" in (tmp_path / "results.md").read_text()
    assert (tmp_path / "appends.png").exists()
    assert "rows written a row appended" in printed


@pytest.mark.slow
@pytest.mark.parametrize("rival", RIVALS)
def test_a_comparison_prints_both_tables(rival):
    """Each tool has a line in each, so that the pages that name the command can be checked."""
    printed = run("integration.bench.compare", "--with", rival, "--scale", 0.001, "--repeat", 1)

    lines = re.findall(r"^\| ([^|]+) \| [\d.,]+ \|", printed, re.MULTILINE)
    chosen = RIVALS[rival]
    assert lines == ["input", *chosen.rewrites, OURS, *chosen.keepers, OURS]


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--folder", "--save"])
def test_what_somebody_else_has_written_stays(tmp_path, option):
    """A folder of other things is none for tables, a file none at all."""
    precious = tmp_path / "parquet" / "precious.txt"
    precious.parent.mkdir()
    precious.touch()
    place = tmp_path if option == "--folder" else precious
    command = [sys.executable, "-m", "integration.bench", option, str(place)]

    wide = os.environ | {"COLUMNS": "500"}
    done = subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert option in done.stderr or "neither empty" in done.stderr
    assert precious.exists()
