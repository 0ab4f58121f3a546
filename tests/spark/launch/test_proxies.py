"""Proxies: what pip uses, Java uses."""

import socket

import pytest

from tests.spark.launch import proxy
from zadapter.errors import SessionError
from zadapter.spark.launch import ivy
from zadapter.spark.launch.start import _launch

SMALL = "org.reactivestreams:reactive-streams:1.0.4"


@pytest.fixture(autouse=True)
def direct(monkeypatch):
    """A machine without proxies."""
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_PROXY".upper(), raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, []),
        ({"NO_PROXY": "here"}, []),
        (
            {"HTTPS_PROXY": "http://proxy.corp:3128"},
            ["-Dhttps.proxyHost=proxy.corp", "-Dhttps.proxyPort=3128"],
        ),
        ({"https_proxy": "proxy"}, ["-Dhttps.proxyHost=proxy", "-Dhttps.proxyPort=80"]),
        (
            {"ALL_PROXY": "http://p:1", "http_proxy": "http://[::1]:2/"},
            [
                *("-Dhttps.proxyHost=p", "-Dhttps.proxyPort=1"),
                *("-Dhttp.proxyHost=::1", "-Dhttp.proxyPort=2"),
            ],
        ),
        ({"HTTPS_PROXY": "socks5://p:1"}, []),
        (
            {"HTTPS_PROXY": "http://m%40e:a%2Fb@p:1"},
            [
                *("-Dhttps.proxyHost=p", "-Dhttps.proxyPort=1"),
                *("-Dhttp.proxyUser=m@e", "-Dhttp.proxyPassword=a/b"),
                "-Djdk.http.auth.tunneling.disabledSchemes=",
            ],
        ),
        (
            {"HTTPS_PROXY": "http://p:1", "NO_PROXY": "a.b:8080, .c.d,*.e,10.0.0.0/8"},
            [
                *("-Dhttps.proxyHost=p", "-Dhttps.proxyPort=1"),
                "-Dhttp.nonProxyHosts=localhost|127.*|[::1]|a.b|*.a.b|c.d|*.c.d|e|*.e",
            ],
        ),
        (
            {"HTTPS_PROXY": "http://p:1", "no_proxy": "*"},
            [
                *("-Dhttps.proxyHost=p", "-Dhttps.proxyPort=1"),
                "-Dhttp.nonProxyHosts=localhost|127.*|[::1]|*",
            ],
        ),
    ],
)
def test_variables_are_options_of_java(direct, variables, expected):
    """As Java's documentation of networking properties has them."""
    for name, value in variables.items():
        direct.setenv(name, value)

    assert ivy.java_options() == expected


@pytest.mark.parametrize("address", ["http://me:s3cret@p:port", "http://me:s3cret@:1", "http://[p"])
def test_a_proxy_that_is_no_url_is_refused_without_its_password(direct, address):
    """The variable is named; its value stays unsaid."""
    direct.setenv("HTTPS_PROXY", address)

    with pytest.raises(SessionError, match="the proxy of HTTPS_PROXY") as refused:
        ivy.java_options()

    assert "s3cret" not in str(refused.value)


def test_jars_come_through_a_proxy_that_requires_a_password(direct, tmp_path):
    """The setting with which pip has installed PySpark is enough."""
    with proxy.running("me:a 'b\" c@d") as (port, hosts):
        direct.setenv("HTTPS_PROXY", f"http://me:a%20'b%22%20c%40d@127.0.0.1:{port}")
        with _launch({}):
            (jar,) = ivy.resolve({ivy.FOLDER: str(tmp_path)}, SMALL, "")

    assert jar.endswith("reactive-streams-1.0.4.jar")
    assert {*hosts} == {"repo1.maven.org"}


def test_a_proxy_that_refuses_the_password_is_named_without_it(direct, tmp_path):
    """The message says which variable to check."""
    with proxy.running("me:right") as (port, hosts):
        direct.setenv("HTTPS_PROXY", f"http://me:wr0ng@127.0.0.1:{port}")
        with _launch({}), pytest.raises(ivy.UnresolvedError) as refused:
            ivy.resolve({ivy.FOLDER: str(tmp_path)}, SMALL, "")

    assert hosts == []
    assert f"check the proxy 127.0.0.1:{port} of HTTPS_PROXY" in str(refused.value)
    assert "Your proxy requires authentication" in str(refused.value)
    assert "wr0ng" not in str(refused.value)


@pytest.mark.slow
def test_a_repository_that_never_answers_is_given_up(direct, tmp_path):
    """A firewall that drops packets looks the same; Ivy would wait for hours."""
    direct.setattr(ivy, "_SILENCE", 3.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        direct.setenv("HTTPS_PROXY", f"127.0.0.1:{silent.getsockname()[1]}")
        with _launch({}), pytest.raises(ivy.UnresolvedError, match="nothing has arrived for 3 s"):
            ivy.resolve({ivy.FOLDER: str(tmp_path)}, SMALL, "")
