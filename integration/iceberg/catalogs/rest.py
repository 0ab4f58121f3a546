"""A REST catalog of our own."""

from contextlib import contextmanager
from functools import partial
from pathlib import Path

from integration.kit.servers import answers, free_port, java_server

PROJECT = Path(__file__).with_name("rest-catalog.xml")


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
