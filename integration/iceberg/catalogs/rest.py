"""A REST catalog of our own, and what may become of its commits behind a failing network."""

from contextlib import contextmanager
from functools import partial
from pathlib import Path

from integration.kit.network import Network
from integration.kit.servers import answers, free_port, java_server

PROJECT = Path(__file__).with_name("rest-catalog.xml")
_KINDS = {
    "refused": (403, "ForbiddenException"),
    "outrun": (409, "CommitFailedException"),
    "lost": (504, "ServiceFailureException"),
    "late": (504, "ServiceFailureException"),
}
_ANSWERS = {
    fate: (code, f'{{"error": {{"message": "{fate}", "type": "{kind}", "code": {code}}}}}')
    for fate, (code, kind) in _KINDS.items()
}


def _is_commit(method, path, headers):
    """A table's own address takes its commits."""
    return method == "POST" and "/tables/" in path and not path.endswith("/metrics")


@contextmanager
def registered(spark, name, uri):
    """Let a session find the catalog under a name that no other test uses: Spark keeps catalogs.

    Names are looked for in all catalogs, so one that no longer answers must not stay.
    """
    said = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "rest", ".uri": uri}
    for key, value in said.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    try:
        yield
    finally:
        for key in said:
            spark.conf.unset(f"spark.sql.catalog.{name}{key}")


@contextmanager
def failing_catalog(spark, name, folder):
    """Run a catalog on *folder*, and yield the network by which a session finds it."""
    with (
        catalog_server(folder) as port,
        Network(port, _is_commit, _ANSWERS) as network,
        registered(spark, name, network.uri),
    ):
        yield network
        network.shutdown()


@contextmanager
def catalog_server(folder):
    """Run Iceberg's own REST catalog server on *folder*, and yield its port."""
    port = free_port()
    said = {
        "CATALOG_REST_PORT": str(port),
        "CATALOG_CATALOG__IMPL": "org.apache.iceberg.jdbc.JdbcCatalog",
        "CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
        "CATALOG_WAREHOUSE": f"file://{folder}/warehouse",
    }
    main = ["org.apache.iceberg.rest.RESTCatalogServer"]
    with java_server(PROJECT, folder, main, partial(answers, port), said):
        yield port
