"""Times of a log: the order of its entries, and how many days it covers."""

import pytest

_EVERY_OTHER_DAY = "timestamp_seconds(86400 * 2 * id) AS started"


@pytest.mark.parametrize(
    ("columns", "days"),
    [
        ([_EVERY_OTHER_DAY], 16),
        ([_EVERY_OTHER_DAY, "3 AS count"], 16),
        (["date_add(DATE '2024-01-01', int(id / 2)) AS day"], 4),
        ([_EVERY_OTHER_DAY, "3 AS seconds"], None),
        (["86400 * 2 * id AS time"], None),
        (["DATE '2024-01-01' AS day"], None),
    ],
)
def test_a_log_with_times_tells_how_many_queries_there_are_a_day(spark, read, columns, days):
    """Unless the times are in an unknown unit, or weights are no numbers of queries."""
    found = read(spark.range(8).selectExpr("concat('id = ', id % 2) AS sql", *columns))

    weight = sum(each.weight for each in found.filters)
    assert found.days == (None if days is None else pytest.approx(days))
    assert found.a_day == (None if days is None else pytest.approx(weight / days))


def test_entries_without_a_time_are_in_their_order(spark, read):
    """As they are in the list or the file."""
    rows = spark.createDataFrame([(f"id = {number}",) for number in range(32)], "sql string")

    found = {each.sql: each.weights.index(1) for each in read(rows.coalesce(1)).filters}

    assert found == {f"id = {number}": number // 2 for number in range(32)}


@pytest.mark.parametrize(
    ("times", "days"),
    [
        (("2024-01-03", "2024-01-01"), 4),
        (("1704240000", "1704067200"), None),
        (("1000", "999"), None),
    ],
)
def test_times_of_a_csv_are_texts(read, tmp_path, times, days):
    """Of a date, or of a number, whose unit is unknown."""
    lines = [f"id = {number},{time}" for number, time in enumerate(times)]
    (tmp_path / "log.csv").write_text("\n".join(["sql,ts", *lines]))

    found = read(str(tmp_path / "log.csv"))
    older, newer = found.split(0.5)

    assert [[each.sql for each in log.filters] for log in (older, newer)] == [
        ["id = 1"],
        ["id = 0"],
    ]
    assert found.days == days
