"""``python -m integration.bench.millions.make``: one table of many files, without data."""

import os
import sys
from pathlib import Path

from integration.bench.millions import delta, iceberg, parquet
from integration.bench.millions.measure import session

MAKERS = {"delta": delta.make, "iceberg": iceberg.make, "parquet": parquet.make}

if __name__ == "__main__":
    format_, folder, files = sys.argv[1:]
    MAKERS[format_](session("1g"), Path(folder), int(files))
    os._exit(0)
