"""A catalog that dies, answers that are lost, and tables that vanish during a run."""

from contextlib import ExitStack

import pytest
from pyiceberg.catalog.rest import RestCatalog

from integration.iceberg.catalogs.rest import catalog_server, failing_catalog, registered
from integration.kit.network import HOST
from zadapter.lake import journal
from zadapter.lake import maintain as maintaining

KEEP = {"versions": "8d", "orphans": "2d"}


@pytest.fixture(scope="module")
def network(spark, tmp_path_factory):
    """A REST catalog, whose commits may be lost on their way."""
    with failing_catalog(spark, "front", tmp_path_factory.mktemp("rest")) as network:
        yield network


@pytest.fixture
def catalog(network):
    """The catalog without the network, and without the tables of other tests."""
    network.fates.clear()
    network.held.clear()
    found = RestCatalog("rest", uri=network.upstream)
    yield found
    for name in found.list_tables("db"):
        found.drop_table(name)


@pytest.fixture
def meanwhile(monkeypatch):
    """Has something happen before the rewrites, or before the first clean-up."""

    def before(step, work):
        function, waiting = getattr(maintaining, step), [work]

        def stepping(*arguments, **keywords):
            if waiting:
                waiting.pop()()
            return function(*arguments, **keywords)

        monkeypatch.setattr(maintaining, step, stepping)

    return before


@pytest.mark.slow
def test_a_table_of_unknown_outcome_is_not_cleaned_up(tables, catalog, network, maintain, orphan):
    """Its commit lands after all, hours later; only the next night deletes what nobody needs."""
    tables.make_iceberg(catalog, "db.late")
    tables.make_delta("well")
    place = catalog.load_table("db.late").location().removeprefix("file:")
    stranger, first = orphan(place), catalog.load_table("db.late").current_snapshot()
    lake = tables.lake(
        {"match": "front.db.*", "keep": KEEP},
        f"{tables.folder}/w*",
        journal={"table": f"{tables.folder}/journal"},
    )
    network.fates.extend(["late"] * 100)

    report, lines = maintain(lake)
    network.fates.clear()

    assert (lines["late"].verdict, lines["well"].verdict) == (journal.FAILED, journal.REWRITTEN)
    assert "unknown" in lines["late"].error
    assert (report.failed, {*report.cleaned}) == (("front.db.late",), set())
    assert stranger.exists()
    assert 200 in network.deliver()
    assert tables.is_whole(catalog.load_table("db.late").scan().to_arrow())

    report, lines = maintain(lake)

    table = catalog.load_table("db.late")
    assert report.failed == ()
    assert lines["well"].verdict == journal.NOTHING_TO_DO
    assert not stranger.exists()
    assert tables.is_whole(table.scan().to_arrow())
    assert tables.is_whole(table.scan(snapshot_id=first.snapshot_id).to_arrow())


@pytest.mark.slow
def test_tables_that_vanish_concern_no_others(tables, catalog, network, maintain, meanwhile):
    tables.make_iceberg(catalog, "db.early", "db.later", "db.stays")
    lake = tables.lake("front.db.*", defaults={"keep": KEEP})
    meanwhile("choose", lambda: catalog.drop_table("db.early"))
    meanwhile("clean", lambda: catalog.drop_table("db.later"))

    report, lines = maintain(lake)

    assert lines["early"].verdict == journal.FAILED
    assert "not found" in lines["early"].error
    assert lines["later"].verdict == lines["stays"].verdict == journal.REWRITTEN
    assert "clean-up failed: open" in lines["later"].error
    assert report.failed == ("front.db.early", "front.db.later")
    assert all(step.error is None for step in report.cleaned["front.db.stays"])
    assert tables.is_whole(catalog.load_table("db.stays").scan().to_arrow())


@pytest.mark.slow
def test_a_catalog_that_dies_before_the_rewrites_keeps_others_from_nothing(
    spark, tables, tmp_path_factory, maintain, meanwhile
):
    folder = tmp_path_factory.mktemp("dying")
    with ExitStack() as server:
        port = server.enter_context(catalog_server(folder))
        uri = f"http://{HOST}:{port}"
        tables.make_iceberg(RestCatalog("rest", uri=uri), "db.orders", "db.visits")
        tables.make_delta("well")
        meanwhile("choose", server.close)
        lake = tables.lake("dying.db.*", f"{tables.folder}/*", defaults={"keep": KEEP})
        lake["tables"][1]["keep"] = {"versions": "8d"}
        with registered(spark, "dying", uri):
            report, lines = maintain(lake)

    assert {name: line.verdict for name, line in lines.items()} == {
        "orders": journal.FAILED, "visits": journal.FAILED, "well": journal.REWRITTEN,
    }  # fmt: skip
    assert all("refused" in lines[name].error for name in ("orders", "visits"))
    assert {*report.cleaned} == {f"{tables.folder}/well"}
    assert tables.is_whole(tables.of_delta("well"))
    with catalog_server(folder) as port:
        catalog = RestCatalog("rest", uri=f"http://{HOST}:{port}")
        for name in ("orders", "visits"):
            assert tables.is_whole(catalog.load_table(f"db.{name}").scan().to_arrow())
