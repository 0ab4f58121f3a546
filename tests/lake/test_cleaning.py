"""Which statements a clean-up runs, in which order; the real ones run in integration/."""

from datetime import datetime, timedelta, timezone

import pytest

from zadapter.lake.cleaning import clean, delta_step, iceberg_steps
from zadapter.lake.settings import Keep

NOW = datetime(2024, 3, 9, 12, tzinfo=timezone(timedelta(hours=2)))
DAY = timedelta(days=1)
TABLE = "`ice`.`d.b`.`t`"
ORDER = (
    "rewrite_position_delete_files", "expire_snapshots", "rewrite_manifests", "remove_orphan_files"
)  # fmt: skip
KEPT = (None, timedelta(0), DAY, 7 * DAY)


def iceberg(keep, *, dry_run=False, table=TABLE):
    return iceberg_steps(table, keep, NOW, dry_run=dry_run)


def names(steps):
    return tuple(step.name for step in steps)


def test_without_keep_nothing_is_opened_or_run():
    assert clean(None, "t", "iceberg", Keep(), dry_run=False) == ()


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("versions", KEPT)
@pytest.mark.parametrize("orphans", KEPT)
def test_iceberg_does_what_keep_says_and_orphans_last(versions, orphans, dry_run):
    steps = iceberg(Keep(versions=versions, orphans=orphans), dry_run=dry_run)

    wanted = ORDER[:3] if versions is not None else ()
    assert names(steps) == wanted + (ORDER[3:] if orphans is not None else ())


def test_iceberg_is_called_in_the_catalog_of_the_table_with_times_of_any_zone():
    _, expire, manifests, orphans = iceberg(Keep(versions=7 * DAY, orphans=3 * DAY))
    only, _, rest = orphans.then.rpartition("false)")

    table = "table => '`ice`.`d.b`.`t`'"
    assert expire.query == (
        f"CALL `ice`.system.expire_snapshots({table}, "
        "older_than => TIMESTAMP '2024-03-02 10:00:00.000+00:00')"
    )
    assert manifests.query == f"CALL `ice`.system.rewrite_manifests({table})"
    assert orphans.then == (
        f"CALL `ice`.system.remove_orphan_files({table}, "
        "older_than => TIMESTAMP '2024-03-06 10:00:00.000+00:00', dry_run => false)"
    )
    assert (orphans.query, rest) == (f"{only}true)", "")


def test_a_quote_in_a_name_does_not_end_the_literal():
    (call,) = iceberg(Keep(orphans=DAY), table="`i``c`.`d'b`.`${t}`")

    assert call.query.startswith("CALL `i``c`.system.remove_orphan_files(table => CAST(X'")
    assert "d'b" not in call.query


def test_a_dry_run_of_iceberg_calls_nothing_that_commits():
    steps = iceberg(Keep(versions=DAY, orphans=DAY), dry_run=True)

    calls = [step.query for step in steps if step.query and step.query.startswith("CALL")]
    assert len(calls) == 1
    assert calls[0].endswith("dry_run => true)")
    assert [step.name for step in steps if step.query is None] == [ORDER[0], ORDER[2]]
    assert all(step.note for step in steps[:3])


@pytest.mark.parametrize(
    ("keep", "command"),
    [
        (Keep(versions=7 * DAY, orphans=3 * DAY), "VACUUM t RETAIN 168 HOURS"),
        (Keep(versions=DAY, orphans=3 * DAY), "VACUUM t RETAIN 72 HOURS"),
        (Keep(versions=timedelta(0), orphans=timedelta(0)), "VACUUM t RETAIN 0 HOURS"),
        (Keep(versions=timedelta(hours=1, seconds=1)), "VACUUM t LITE RETAIN 2 HOURS"),
        (Keep(versions=timedelta(minutes=20)), "VACUUM t LITE RETAIN 1 HOURS"),
    ],
)
def test_delta_vacuums_after_the_longer_time_in_hours_rounded_up(keep, command):
    real, dry = (delta_step("t", keep, dry_run=dry_run) for dry_run in (False, True))

    assert (real.query, real.then) == (f"{command} DRY RUN", command)
    assert (dry.query, dry.then) == (f"{command} DRY RUN", None)


@pytest.mark.parametrize(
    ("kept", "sooner"),
    [(7 * DAY, "VACUUM t LITE RETAIN 167 HOURS DRY RUN"), (timedelta(0), None)],
)
def test_delta_looks_for_other_tables_an_hour_ahead(kept, sooner):
    """Between its listing and its deletion, files become old enough."""
    assert delta_step("t", Keep(versions=kept), dry_run=False).sooner == sooner


def test_a_time_before_the_calendar_expires_nothing():
    (call,) = iceberg(Keep(orphans=timedelta.max))

    assert "older_than => TIMESTAMP '19" in call.query
