"""This checkout, for the processes that tests start."""

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]


def python_path(checkout=ROOT):
    """Return a ``PYTHONPATH`` with the modules of a checkout before those of the variable."""
    paths = [str(checkout), str(checkout / "backends"), os.environ.get("PYTHONPATH", "")]
    return os.pathsep.join(filter(None, paths))
