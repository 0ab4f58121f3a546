"""Tables of every format that move to every other one, on S3."""

from itertools import permutations
from uuid import uuid4

import pytest

import zadapter
from integration.kit.s3 import make
from tests.kit.variants import slow
from zadapter.report.migration_report import Mode

FORMATS = ("delta", "iceberg", "parquet")


def migrate(table, format_, to, spark, target=None, **arguments):
    target = target or f"s3a://lake/{uuid4().hex}"
    said = {"to": to, "target": target, "backend": format_, "spark": spark, **arguments}
    return zadapter.migrate(table, **said)


SOME = [("delta", "iceberg"), ("iceberg", "parquet")]
"""Pairs beside those of the other tests, so that every format is read and written on S3."""
OTHERS = [pair for pair in permutations(FORMATS, 2) if pair not in SOME]


@pytest.mark.every_format
@pytest.mark.parametrize("pair", [*SOME, *slow(*OTHERS)], ids="-".join)
def test_every_pair(spark, s3, pair):
    """Copied within a bucket, proved, and read by others."""
    format_, to = pair
    report = migrate(make(spark, s3, format_), format_, to, spark)

    assert report.proof.rows == s3.rows(to, report.target) == 2_000


@pytest.mark.slow
def test_to_and_from_a_local_disk(spark, s3, tmp_path):
    """From S3 by ``s3://``, and back along the same cuts."""
    table = make(spark, s3, "delta").replace("s3a:", "s3:")
    zadapter.optimize(table, by="a", target_file_size="2KB", spark=spark)

    down = migrate(table, "delta", "parquet", spark, target=str(tmp_path / "t"))
    up = migrate(down.target, "parquet", "delta", spark, target=f"s3://lake/{uuid4().hex}")

    assert s3.rows("delta", up.target) == 2_000
    assert zadapter.optimize(up.target, by="a", target_file_size="2KB", spark=spark).nothing_to_do


def test_in_place_and_followed(spark, s3):
    """Both tables use the same objects; later rows are carried."""
    table = make(spark, s3, "iceberg")
    report = migrate(table, "iceberg", "delta", spark, mode="in_place")
    assert report.mode is Mode.IN_PLACE
    spark.read.format("iceberg").load(table).limit(10).writeTo(
        f"hadoop_lake.`{table.split('/')[-2]}`.t"
    ).append()

    migrate(table, "iceberg", "delta", spark, target=report.target, follow=True)

    assert spark.read.format("delta").load(report.target).count() == 2_010
