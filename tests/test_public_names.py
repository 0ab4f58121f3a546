"""What users see of the package before they use it."""

import subprocess
import sys

CODE = """
import sys
import zadapter
assert "optimize" in dir(zadapter), dir(zadapter)
assert {"import_module", "annotations", "_HOME"}.isdisjoint(dir(zadapter))
assert not any(name.startswith("pyspark") for name in sys.modules)
assert set(zadapter.__all__) <= set(dir(zadapter))
from zadapter import *
assert optimize is zadapter.optimize and Report is zadapter.Report
from pyspark import SparkContext
assert SparkContext._gateway is None
"""


def test_dir_lists_the_public_names():
    """Without an import of PySpark; ``import *`` imports it, and starts no JVM."""
    ended = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=False
    )

    assert ended.returncode == 0, ended.stderr
