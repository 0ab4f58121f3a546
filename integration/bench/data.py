"""TPC-H lineitem, made here."""

import shutil
import subprocess
import sys
from pathlib import Path

KEYS = ["l_shipdate", "l_partkey", "l_suppkey"]


def lineitem(folder, scale, parts=12):
    """Make lineitem as Parquet files, once, and return their folder."""
    made = Path(folder) / f"tpch-{scale}"
    if not (made / "lineitem").exists():
        program = shutil.which("tpchgen-cli") or str(Path(sys.executable).parent / "tpchgen-cli")
        options = ["--tables=lineitem", f"--parts={parts}", f"--output-dir={made}"]
        subprocess.run([program, "parquet", "-s", str(scale), *options], check=True)
    return made / "lineitem"
