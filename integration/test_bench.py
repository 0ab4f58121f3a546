"""The benchmark and the demo run, with all contenders, on tables that are tiny."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTENDERS = {"delta": 7, "iceberg": 7, "parquet": 3}


def run(module, *options):
    """What a command prints; it must succeed."""
    command = [sys.executable, "-m", module, *map(str, options)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_benchmark_says_what_it_found(request, tmp_path):
    """Every contender's table answers like the input; figures and goals are saved."""
    name = request.config.getoption("--format")
    tiny = ["--scale", 0.001, "--files", 3, "--repeat", 1]

    printed = run(
        "integration.bench", "--formats", name, "--workloads", "taxi", *tiny,
        "--folder", tmp_path / "tables", "--save", tmp_path,
    )  # fmt: skip

    saved = json.loads((tmp_path / "results.json").read_text())
    found = {result["contender"]: result for result in saved["results"]}
    assert len(found) == 1 + CONTENDERS[name]
    assert found["zadapter"]["rows"] == found["input"]["rows"] == 6_000
    assert all(len(result["efforts"]) == (who != "input") for who, result in found.items())
    assert {goal["what"] for goal in saved["goals"]} >= {"bytes written, x input"}
    assert (tmp_path / "results.md").read_text().count(f"| taxi | {name} | ") == len(found)
    assert {path.name for path in tmp_path.glob("*.png")} == {"seconds.png", "shares.png"}
    assert "bytes written, x input" in printed


def test_the_demo_shows_what_it_brings(request, tmp_path):
    """On Delta, with delta-rs and DuckDB as witnesses."""
    if request.config.getoption("--format") != "delta":
        pytest.skip("the demo is of Delta")

    printed = run("integration.demo", "--scale", 0.005, "--folder", tmp_path)

    assert "delta-rs and DuckDB find the same" in printed
