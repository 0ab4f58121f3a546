"""Text for terminals that know ASCII alone."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRINTED = r"""
from tests.report.test_migration_report import PLAN as MIGRATED
from tests.report.test_optimize_report import PLAN
from dataclasses import replace
from zadapter.errors import UnknownTableError
print(replace(PLAN, table="t\u00e4ble \u65e5\udc80"))
print(replace(MIGRATED, table="t\u00e4ble"))
print(UnknownTableError("t\u00e4ble: not found"))
"""


def printed(encoding):
    environment = os.environ | {
        "PYTHONIOENCODING": encoding,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", PRINTED]
    ended = subprocess.run(command, env=environment, capture_output=True, cwd=ROOT, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.decode(encoding)


def test_ascii_terminals_print_reports_and_errors():
    """Names of tables are escaped."""
    text = printed("ascii")

    assert r"t\xe4ble \u65e5\udc80 (" in text
    assert r"t\xe4ble: not found" in text


def test_other_terminals_print_names_as_they_are():
    """Except bytes of file names that are no text."""
    text = printed("utf-8")

    assert "t\u00e4ble \u65e5\\udc80 (" in text
    assert "t\u00e4ble: not found" in text
