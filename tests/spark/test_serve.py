"""Servers for clients of SQL, before they start; journeys run the rest with clients."""

import pytest

from zadapter.api.serve import serving
from zadapter.errors import SessionError


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("hive.server2.transport.mode", "http"),
        ("hive.server2.thrift.bind.host", "0.0.0.0"),
        ("hive.server2.thrift.port", "0"),
    ],
)
def test_a_setting_of_hive_does_not_open_the_server(spark, setting, value):
    """Whoever reads 127.0.0.1 can rely on it."""
    session = spark.newSession()
    session.conf.set(setting, value)

    def serve():
        with serving(session, "127.0.0.1", 0, None):
            pytest.fail("the server has started")

    with pytest.raises(SessionError, match=setting):
        serve()
