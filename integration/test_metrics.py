"""Metrics of a lake, and the alerts of the recipe, as Prometheus' own tool reads them."""

import json
import subprocess
from datetime import datetime, timedelta, timezone

import pytest

from tests.kit.documents import code
from zadapter.lake.journal import Line
from zadapter.lake.report import LakeReport

NIGHT = datetime(1970, 1, 1, 3, tzinfo=timezone.utc)  # promtool's clock begins at 1970
KNOWN = {
    "files": 7,
    "share_before": 0.5,
    "share_predicted": 0.25,
    "share_after": 0.25,
    "seconds": 2.5,
    "core_seconds": 4.75,
    "money": 0.000012,
}


def line(table, verdict, format="delta", **facts):  # noqa: A002
    return Line(run="r", time=NIGHT, table=table, format=format, verdict=verdict, **facts)


@pytest.fixture
def metrics():
    """The metrics of a run that all alerts of the recipe concern."""
    lines = (
        line("s3://lake/sales/well", "rewritten", bytes_rewritten=1 << 40, **KNOWN),
        line('ice.db.`a "b" \\ é`', "rewritten", bytes_rewritten=1, **KNOWN),
        line("off", "rewritten in part", bytes_rewritten=1, **KNOWN | {"share_after": 0.4}),
        line("waits", "waits", waited=8, **KNOWN | {"share_after": 0.5}),
        line("failed", "failed"),
        line("view", "left out", None),
    )
    report = LakeReport(lake="lake.toml", run="r", dry_run=False, lines=lines, seconds=60.0)
    return report.to_prometheus()


@pytest.fixture
def rules(tmp_path):
    """The rules of the recipe as a file."""
    file = tmp_path / "rules.yml"
    file.write_text(code("zadapter/docs/how-to/metrics.md", "Prometheus", "yaml"))
    return file


def promtool(*arguments, given=""):
    """Return what the tool says about what is wrong, or not as it should be."""
    ended = subprocess.run(
        ["promtool", *map(str, arguments)], input=given, capture_output=True, text=True, check=False
    )
    return ended.returncode, ended.stderr


def test_prometheus_has_nothing_to_say_about_metrics(metrics):
    """Neither about the format, nor about names, units, types and texts of help."""
    assert promtool("check", "metrics", given=metrics) == (0, "")


def test_the_alerts_of_the_recipe_are_rules(rules):
    assert promtool("check", "rules", "--lint=all", "--lint-fatal", rules) == (0, "")


@pytest.mark.parametrize(
    ("after", "alert", "tables"),
    [
        ("12h", "LakeTableFailed", ["failed"]),
        ("12h", "LakeTableWaits", ["waits"]),
        ("12h", "LakePredictionOff", ["off"]),
        ("12h", "LakeNotMaintained", []),
        ("40h", "LakeNotMaintained", [None]),
    ],
)
def test_alerts_fire_for_what_they_name(metrics, rules, tmp_path, after, alert, tables):
    """For the tables that they concern, and for no others."""
    fires = timedelta(hours=int(after.removesuffix("h")))
    series = [text.rpartition(" ") for text in metrics.splitlines() if not text.startswith("#")]
    test = {
        "interval": "1h",
        "input_series": [{"series": name, "values": f"{value}x48"} for name, _, value in series],
        "promql_expr_test": [
            {
                "expr": f'count by (table) (ALERTS{{alertname="{alert}"}})',
                "eval_time": f"{fires.total_seconds():.0f}s",
                "exp_samples": [
                    {"labels": "{}" if table is None else f'{{table="{table}"}}', "value": 1}
                    for table in tables
                ],
            }
        ],
    }
    file = tmp_path / "test.yml"
    file.write_text(json.dumps({"rule_files": [str(rules)], "tests": [test]}))  # JSON is YAML

    assert promtool("test", "rules", file) == (0, "")
