"""What unmodified readers skip: ``python -m integration.bench.readers top joins sizes pages``.

DuckDB counts row groups, bytes and requests itself (its profile). DataFusion reads Delta tables, as
the package ``deltalake`` has it.
"""

import argparse
import tempfile
from pathlib import Path

from integration.bench.readers import joins, pages, sizes, top

PARTS = {
    "top": top.main,
    "joins": joins.main,
    "sizes": sizes.main,
    "pages": pages.main,
}


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m integration.bench.readers",
                                     description=__doc__)  # fmt: skip
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--rows", type=int, default=2_000_000)
    options = parser.parse_args()
    for part in options.parts:
        with tempfile.TemporaryDirectory() as folder:
            PARTS[part](Path(folder), options.rows)


if __name__ == "__main__":
    main()
