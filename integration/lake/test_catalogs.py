"""Nights of a lake whose tables are in two catalogs, in folders and on S3, by the command line."""

import json
import os
import subprocess

import deltalake
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.catalog.sql import SqlCatalog

from integration.iceberg.catalogs.rest import catalog_server
from integration.kit.network import HOST
from integration.kit.postgres import USER, postgres_server
from integration.kit.s3 import KEY, REGION, SECRET

PARTS = 4
"""Commits of each table before the first night."""
DRIVER = "org.postgresql:postgresql:42.7.4"
TABLES = {"rest.sales.orders", "pg.sales.orders", "visits", "events"}
VERDICTS = {"dry run": "due", "first": "rewritten", "second": "nothing to do"}


@pytest.fixture
def rest(tmp_path_factory):
    """A REST catalog, and the settings by which Spark finds it."""
    with catalog_server(tmp_path_factory.mktemp("rest")) as port:
        uri = f"http://{HOST}:{port}"
        yield RestCatalog("rest", uri=uri), {".type": "rest", ".uri": uri}


@pytest.fixture
def jdbc(tmp_path_factory):
    """A JDBC catalog on PostgreSQL, and the settings by which Spark finds it."""
    folder = tmp_path_factory.mktemp("jdbc")
    with postgres_server() as port:
        place = f"{HOST}:{port}/postgres"
        uri, warehouse = f"postgresql+psycopg2://{USER}@{place}", f"file://{folder}"
        settings = {
            ".type": "jdbc", ".uri": f"jdbc:postgresql://{place}", ".jdbc.user": USER,
            ".jdbc.schema-version": "V1", ".warehouse": warehouse,
        }  # fmt: skip
        yield SqlCatalog("pg", uri=uri, warehouse=warehouse), settings


def s3_options(s3):
    return {
        "AWS_ENDPOINT_URL": s3.uri, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true", "AWS_S3_ALLOW_UNSAFE_RENAME": "true",
    }  # fmt: skip


@pytest.fixture
def lake(tables, rest, jdbc, s3, tmp_path):
    """The file of a lake, and readers of its tables by which zadapter has no part."""
    for catalog, _ in (rest, jdbc):
        tables.make_iceberg(catalog, "sales.orders")
    for number, part in enumerate(tables.parts()):
        name = f"part-{number}-{{i}}.parquet"
        days = pa.array([f"2026-11-{10 + at % 2}" for at in range(part.num_rows)])
        pq.write_to_dataset(
            part.append_column("day", days),
            tmp_path / "hive/visits",
            ["day"],
            basename_template=name,
        )
        deltalake.write_deltalake(
            "s3://lake/nights/events", part, mode="append", storage_options=s3_options(s3)
        )
    (tmp_path / "lake.toml").write_text(f"""
        [journal]
        table = "{tmp_path}/journal"
        format = "delta"
        [defaults]
        by = ["a"]
        target_file_size = "2KB"
        keep = {{ versions = "8d", orphans = "9d" }}
        [[tables]]
        match = "rest.sales.*"
        [[tables]]
        match = "pg.*.orders"
        [[tables]]
        match = "hive/*"
        format = "parquet"
        [[tables]]
        match = "s3a://lake/nights/*"
    """)
    return tmp_path / "lake.toml"


def maintain(lake, rest, jdbc, s3, *options):
    """Run the command as a scheduler does, in the folder of the lake's file."""
    settings = {
        "spark.jars.packages": DRIVER,
        "spark.driver.memory": "1g",
        **{f"spark.sql.catalog.{name}": "org.apache.iceberg.spark.SparkCatalog"
           for name in ("rest", "pg")},
        **{f"spark.sql.catalog.rest{key}": value for key, value in rest[1].items()},
        **{f"spark.sql.catalog.pg{key}": value for key, value in jdbc[1].items()},
        **s3.settings(),
    }  # fmt: skip
    confs = [word for each in settings.items() for word in ("--conf", "=".join(each))]
    ended = subprocess.run(
        [
            "zadapter",
            "maintain",
            lake.name,
            "--json",
            *options,
            *confs,
        ],
        cwd=lake.parent,
        env=os.environ | s3_options(s3),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3_000:] + ended.stdout[-3_000:]
    return json.loads(ended.stdout)


def check_reports(nights):
    """Each table is due, rewritten, and settled; the clean-up deletes nothing that young."""
    for name, night in nights.items():
        lines = {line["table"].rpartition("/")[2]: line for line in night["lines"]}
        verdicts = {table: line["verdict"] for table, line in lines.items()}
        assert verdicts == dict.fromkeys(TABLES, VERDICTS[name])
        assert night["failed"] == []
    steps = [step for done in nights["first"]["cleaned"].values() for step in done]
    assert all(step["error"] is None for step in steps)
    # Iceberg may rewrite manifests, which deletes no file
    others = [step["counts"] for step in steps if step["step"] != "rewrite_manifests"]
    assert not any(sum(counts.values()) for counts in others)


@pytest.mark.slow
def test_a_lake_of_two_catalogs_folders_and_s3_is_maintained_night_by_night(
    tables, lake, rest, jdbc, s3, tmp_path
):
    """Each table is rewritten once, keeps its rows, and its older version is kept as asked."""
    nights = {
        "dry run": maintain(lake, rest, jdbc, s3, "--dry-run"),
        "first": maintain(lake, rest, jdbc, s3),
        "second": maintain(lake, rest, jdbc, s3),
    }

    check_reports(nights)
    stored = deltalake.DeltaTable(str(tmp_path / "journal")).to_pyarrow_table()
    assert stored.num_rows == 2 * len(TABLES)

    for catalog in (rest[0], jdbc[0]):
        table = catalog.load_table("sales.orders")
        first, last = table.snapshots()[PARTS - 1], table.current_snapshot()
        before, after = (table.scan(snapshot_id=each.snapshot_id) for each in (first, last))
        assert tables.is_whole(before.to_arrow())
        assert tables.is_whole(after.to_arrow())
        assert len(list(after.plan_files())) > PARTS
        few = table.scan(row_filter="a < 50").plan_files()
        assert len(list(few)) < len(list(after.plan_files())) / 2
    table = deltalake.DeltaTable("s3://lake/nights/events", storage_options=s3_options(s3))
    assert tables.is_whole(table.to_pyarrow_table())
    table.load_as_version(PARTS - 1)
    assert tables.is_whole(table.to_pyarrow_table())
    visits = subprocess.run(
        ["zadapter", "files", "hive/visits", "--json"],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    paths = [each["path"] for each in json.loads(visits.stdout)]
    assert tables.is_whole(ds.dataset(paths, format="parquet").to_table())
