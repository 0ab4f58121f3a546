"""Why jars cannot be had, in one message."""

import pwd

import pytest

from zadapter.errors import SessionError
from zadapter.spark.launch import ivy

REPORT = """Picked up JAVA_TOOL_OPTIONS: -Dhttp.proxyPassword=s3cret
:: problems summary ::
:::: WARNINGS
\tHost repos.spark-packages.org not found. url=https://repos.spark-packages.org/a.pom
:::: ERRORS
\t{error}
\t{error}
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: a#b;1: not found]
\tat org.apache.spark.util.MavenUtils$.resolveMavenCoordinates(MavenUtils.scala:515)
"""
URL = "Server access error at url https://repo1.maven.org/maven2/a.pom"
UNTRUSTED = "unable to find valid certification path to requested target"


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (f"{URL} (java.net.ConnectException: Connection refused)", "check the network"),
        (f"{URL} (javax.net.ssl.SSLHandshakeException: {UNTRUSTED})", "-Djavax.net.ssl.trustStore"),
        ("No space left on device", "free space, or set spark.jars.ivy"),
    ],
)
def test_the_most_telling_line_of_ivy_is_told_with_what_to_do(monkeypatch, error, advice):
    """What Java prints of its options is left out, since it may have a proxy's password."""
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    found = ivy.reasons(REPORT.format(error=error))

    assert found == ["[unresolved dependency: a#b;1: not found]", error]
    assert advice in ivy.message("a:b:1", found)


@pytest.mark.parametrize(
    "rest", ["at a.B", 'Exception in thread "main" java.io.IOException: Invalid UID']
)
def test_without_a_report_of_ivy_the_exception_is_told(rest):
    """Spark failed before or after it."""
    assert ivy.reasons(f"{REPORT.splitlines()[0]}\n{rest}") == [rest]


def test_a_folder_for_jars_that_cannot_be_written_is_named(tmp_path):
    """At once, and with the setting to change."""
    (tmp_path / "taken").touch()
    kept = tmp_path / "taken" / "ivy"

    with pytest.raises(SessionError, match=rf"{kept}: Not a directory; set spark\.jars\.ivy"):
        ivy.resolve({ivy.FOLDER: str(kept)}, "a:b:1", "")


def test_a_user_without_a_home_is_told_to_name_one(monkeypatch):
    """Containers run as any number, whose home nobody knows."""
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", {}.__getitem__)

    with pytest.raises(SessionError, match=r"no home folder .* HOME, or the setting spark\.jars"):
        ivy.home({})
    assert str(ivy.home({ivy.FOLDER: "/kept"})) == "/kept"
