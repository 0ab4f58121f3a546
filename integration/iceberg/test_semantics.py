"""What a rewrite keeps of an Iceberg table."""

import pytest

import zadapter
from tests.kit.variants import slow

ROWS = 4_000


def numbers(spark, rows=ROWS):
    return spark.range(rows).selectExpr(
        "id * 7919 % 4001 AS a", "concat('prefix shared by all ', id % 97) AS b", "id AS c"
    )


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_table_of_every_format_version_is_clustered_once(lake, spark, version):
    """Same rows, fewer of them to be read, and a second run that commits nothing."""
    name = lake.make(numbers(spark), format_version=version)
    before = lake.read(name)

    report = lake.optimize(name, by=["a", "c"])
    again = lake.optimize(name, by=["a", "c"])

    assert before == lake.read(name)
    assert lake.rows(name)
    assert report.share_after < 0.7 * report.plan.share_before
    assert again.plan.nothing_to_do
    assert again.versions == ()
    operation, summary = lake.history(name)[-1]
    assert operation == "replace"
    assert summary["zadapter.commit-id"]
    assert len(lake.files(name)) == report.files_added


def test_what_is_appended_becomes_a_run_of_its_own(lake, spark):
    """A run after an append rewrites the new files; a few rows wait for company."""
    name = lake.make(numbers(spark))
    first = lake.optimize(name)
    lake.append(name, spark.range(5, 6).selectExpr("id a", "'new' b", "id c"))
    assert "not worth a rewrite yet: 1 new row" in str(lake.optimize(name))
    lake.append(name, spark.range(500).selectExpr("id * 7919 % 4001 a", "'new' b", "id c"))
    before = lake.read(name)

    second = lake.optimize(name)

    assert before == lake.read(name)
    assert 1 <= second.files_removed < first.files_added / 2
    assert lake.optimize(name).plan.nothing_to_do


@pytest.mark.slow
@pytest.mark.parametrize(
    "transform",
    [
        *("hours(t)", "truncate(22, b)", "bucket(3, b), d, months(t)", "bucket(3, n.x)"),
        *slow("years(t)", "months(t)", "days(t)", "bucket(4, c)", "truncate(1000, c)", "d", "n.x"),
    ],
)
def test_files_never_mix_partitions(lake, spark, transform):
    """Hidden partitions stay as they are, nulls included, and each is clustered by itself."""
    rows = spark.range(ROWS // 2).selectExpr(
        "id * 7919 % 4001 AS a",
        "nullif(concat('prefix shared by all ', id % 3), 'prefix shared by all 2') AS b",
        "nullif(id, 5) AS c",
        "nullif(timestamp_seconds(1e9 + id % 3 * 3e3), timestamp_seconds(1e9)) AS t",
        "cast(id % 2 AS decimal(5,1)) AS d",
        "named_struct('x', cast(id % 2 AS int)) AS n",
    )
    name = lake.make(rows, transform, files=3)
    before = lake.read(name)
    partitions = {str(file.partition) for file in lake.files(name)}

    report = lake.optimize(name)

    assert before == lake.read(name)
    assert partitions == {str(file.partition) for file in lake.files(name)}
    assert report.plan.groups == len(partitions)
    assert {file.spec_id for file in lake.files(name)} == {lake.table(name).spec().spec_id}
    assert lake.optimize(name).plan.nothing_to_do


def test_where_cuts_partitions_and_files(lake, spark):
    """Only files that may hold a matching row are rewritten, and they are rewritten whole."""
    name = lake.make(numbers(spark).withColumnRenamed("c", "day"), "truncate(1000, day)", files=2)
    before, files = lake.read(name), {file.file_path for file in lake.files(name)}

    report = lake.optimize(name, where="day >= 3000")

    assert report.plan.groups == 1
    assert before == lake.read(name)
    assert len(files - {file.file_path for file in lake.files(name)}) == report.files_removed


@pytest.mark.parametrize("version", [2, 3])
def test_deleted_rows_stay_deleted(lake, spark, version):
    """Position deletes and deletion vectors are applied, and have nothing left to say."""
    name = lake.make(
        numbers(spark), format_version=version, **{"write.delete.mode": "merge-on-read"}
    )
    lake.sql(f"DELETE FROM {name} WHERE a % 10 = 3")
    before = lake.rows(name)
    assert lake.sql(f"SELECT * FROM {name}.delete_files").count() > 0

    report = lake.optimize(name)

    assert before == lake.rows(name)
    assert report.rows_added == len(before)
    if version == 3:
        assert lake.sql(f"SELECT * FROM {name}.delete_files").count() == 0


def test_row_lineage_is_kept(lake, spark):
    """Of a version 3 table, every row keeps its id and the version that last changed it."""
    name = lake.make(numbers(spark), format_version=3)
    lake.sql(f"UPDATE {name} SET b = 'changed' WHERE a < 50")
    lineage = f"SELECT c, _row_id, _last_updated_sequence_number FROM {name} ORDER BY c"
    before = lake.sql(lineage).collect()

    lake.optimize(name)

    assert before == lake.sql(lineage).collect()


def test_only_the_branch_moves(lake, spark):
    """A branch is rewritten by itself; main and tags stay where they are."""
    name = lake.make(numbers(spark))
    lake.sql(f"ALTER TABLE {name} CREATE BRANCH audit")
    lake.sql(f"ALTER TABLE {name} CREATE TAG v1")
    lake.append(f"{name}.branch_audit", spark.range(10).selectExpr("-id a", "'x' b", "id c"))
    before, refs = lake.rows(f"{name}.branch_audit"), lake.table(name).metadata.refs

    report = lake.optimize(f"{name}.branch_audit")

    now = lake.table(name).metadata.refs
    assert now["main"] == refs["main"]
    assert now["v1"] == refs["v1"]
    assert now["audit"].snapshot_id == report.versions[0] != refs["audit"].snapshot_id
    assert before == lake.rows(f"{name}.branch_audit")
    assert lake.optimize(f"{name}.branch_audit").plan.nothing_to_do


@pytest.mark.slow
def test_columns_are_found_by_id(lake, spark):
    """Files from before a rename, a drop and an addition are read as the table is now."""
    name = lake.make(numbers(spark))
    lake.sql(f"ALTER TABLE {name} RENAME COLUMN c TO `odd.name %`")
    lake.sql(f"ALTER TABLE {name} DROP COLUMN b")
    lake.sql(f"ALTER TABLE {name} ADD COLUMN b int")
    lake.append(name, spark.range(50).selectExpr("id a", "id `odd.name %`", "cast(id AS int) b"))
    before = lake.rows(name)

    lake.optimize(name, by=["`odd.name %`", "b"])

    assert before == lake.rows(name)


@pytest.mark.slow
def test_neither_expiry_nor_orphan_removal_takes_the_layout(lake, spark):
    """What was asked for outlives Iceberg's own clean-ups, so a later call need not repeat it."""
    name = lake.make(numbers(spark))
    first = lake.optimize(name)
    later = "TIMESTAMP '2999-01-01 00:00:00'"
    call = f"table => '{name}', older_than => {later}"
    lake.sql(f"CALL ice.system.expire_snapshots({call}, retain_last => 1)")
    actions = lake.jvm.org.apache.iceberg.spark.actions.SparkActions.get(lake.session)
    orphans = actions.deleteOrphanFiles(lake.java(name)).olderThan(32503680000000).execute()
    assert list(orphans.orphanFileLocations()) == []
    lake.append(name, spark.range(5, 25).selectExpr("id a", "'new' b", "id c"))
    before = lake.read(name)

    second = lake.optimize(name, by=None)

    assert before == lake.read(name)
    assert second.plan.columns == ("a",)
    assert second.files_removed < first.files_added / 2
    assert lake.table(name).properties["zadapter.columns"] == "a"


def test_row_groups_are_cut_by_rows_and_keys_have_whole_bounds(lake, spark):
    """Without a change of the table's properties, row groups are as asked, bounds are not cut."""
    name = lake.make(numbers(spark))
    said = dict(lake.table(name).properties)

    lake.optimize(name, by=["b"], target_file_size="1KB", row_groups=4)

    assert {footer.num_row_groups for footer in lake.footers(name)} <= {4, 5}
    b = lake.table(name).schema().find_field("b").field_id
    lows = {file.lower_bounds[b] for file in lake.files(name)}
    assert all(low.startswith(b"prefix shared by all ") for low in lows)
    now = lake.table(name).properties
    assert {key: now[key] for key in said} == said


def test_metrics_are_widened_only_when_told(lake, spark):
    """A key without metrics is named, and gets them if that is asked for."""
    name = lake.make(numbers(spark), **{"write.metadata.metrics.default": "none"})

    with pytest.raises(zadapter.errors.MissingStatsError, match="collect_stats"):
        lake.optimize(name)
    report = lake.optimize(name, collect_stats=True)

    assert report.share_after < 0.5
    assert lake.table(name).properties["write.metadata.metrics.column.a"] == "full"


def test_an_empty_table_is_left_alone(lake, spark):
    """Nothing to do is no error."""
    name = lake.make(numbers(spark, 0))

    assert lake.optimize(name).plan.nothing_to_do


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "ADD PARTITION FIELD bucket(3, c)",
        "REPLACE PARTITION FIELD d WITH truncate(500, c)",
        "DROP PARTITION FIELD d",
    ],
)
@pytest.mark.parametrize("version", [1, *slow(2)])
def test_files_of_an_older_partition_spec_move_into_the_new_one(lake, spark, statement, version):
    """Whatever rows they mix, what comes for them mixes none, and is clustered at once."""
    rows = spark.range(ROWS).selectExpr("id * 7919 % 4001 AS a", "id AS c", "id % 2 AS d")
    name = lake.make(rows, "d", files=2, format_version=version)
    lake.sql(f"ALTER TABLE {name} {statement}")
    lake.append(name, spark.range(300).selectExpr("id AS a", "id AS c", "id % 2 AS d"))
    before = lake.read(name)

    report = lake.optimize(name, target_file_size="1KB")

    assert before == lake.read(name)
    assert {file.spec_id for file in lake.files(name)} == {lake.table(name).spec().spec_id}
    assert report.share_after < 0.7
    again = lake.optimize(name, target_file_size="1KB")
    assert before == lake.read(name)
    assert again.nothing_to_do or again.files_removed < report.files_added


@pytest.mark.slow
def test_more_old_partitions_than_a_layout_has_room_for(lake, spark):
    """All rows arrive, each in a file of its own partition."""
    rows = spark.range(3_000).selectExpr("id AS a", "id % 300 AS d")
    name = lake.make(rows, files=2)
    lake.sql(f"ALTER TABLE {name} ADD PARTITION FIELD d")
    before = lake.read(name)

    lake.optimize(name, target_file_size="128MB")

    assert before == lake.read(name)
    assert len({str(file.partition) for file in lake.files(name)}) == 300


def test_the_sort_order_of_a_table_is_named_and_not_claimed(lake, spark):
    """Engines may trust the order that a file states, so rewritten files state none."""
    table = lake.make(spark.range(4_000).selectExpr("id * 7919 % 4001 AS a", "id AS b"))
    lake.sql(f"ALTER TABLE {table} WRITE ORDERED BY a DESC, truncate(10, b)")

    report = lake.optimize(table, by=["a", "b"])

    assert report.plan.sort_order == "a DESC, truncate[10](b) ASC"
    assert "is not that of the new files" in str(report)
    stated = lake.sql(f"SELECT DISTINCT sort_order_id FROM {table}.files").collect()
    assert [row[0] for row in stated] == [0]
