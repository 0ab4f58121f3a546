"""What Spark's tasks have taken, where Spark runs stages again."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.slow
def test_the_cost_of_repeated_stages_is_measured():
    """Spark runs the stages again that wrote lost shuffle files, and those that failed to read."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.spark.rewrite.repeated_stages"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    core_seconds, shuffled, tasks = json.loads(ended.stdout)
    assert {attempt for attempt, *_ in tasks} == {0, 1}
    assert core_seconds == sum(milliseconds for _, milliseconds, _ in tasks) / 1_000
    assert shuffled == sum(written for *_, written in tasks) > 0
