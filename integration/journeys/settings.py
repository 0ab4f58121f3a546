"""Settings that documents tell a user to copy."""

from tests.kit.documents import blocks

DELTA = "backends/zadapter_delta/README.md"
ICEBERG = "backends/zadapter_iceberg/README.md"


def documented(document, folder=None):
    """Return the settings of the first such block; *folder* takes the place of ``/data``."""
    first = next(block for block in blocks(document) if block.language == "properties")
    pairs = dict(line.split(maxsplit=1) for line in first.text.splitlines())
    return {key: value.replace("/data", str(folder)) for key, value in pairs.items()}


def on_cluster(folder, master):
    """Return the documented settings for all formats, and those of a small cluster."""
    delta, iceberg = documented(DELTA), documented(ICEBERG, folder)
    joined = ("spark.jars.packages", "spark.sql.extensions")
    return {
        **delta, **iceberg, **{key: f"{delta[key]},{iceberg[key]}" for key in joined},
        "spark.master": master, "spark.driver.host": "127.0.0.1", "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": "4",
    }  # fmt: skip
