"""Proxies of the environment, as options of Java, which does not read them by itself."""

import re
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies

from zadapter.errors import SessionError

_SCHEMES = ("https", "http")
_HOST = re.compile(r"[\w.-]+")
_NEVER = ("localhost", "127.*", "[::1]")
"""Hosts without a proxy by Java's default, which a list of hosts replaces."""
_BASIC = "-Djdk.http.auth.tunneling.disabledSchemes="
"""Schemes that Java does not send to proxies of HTTPS: none, where its default is ``Basic``."""


def java_options() -> list[str]:
    """Return options with which Java uses the proxies that pip uses.

    They are those of ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, in upper or
    lower case, or of macOS and Windows. Proxies of other kinds than HTTP are left out. The options
    may include a password, so they are not for a command line, which every user can see.

    Raises:
        SessionError: A proxy is not a URL.
    """
    given = getproxies()
    options = []
    for scheme in _SCHEMES:
        if proxy := _proxy(given, scheme):
            port = proxy.port or (443 if proxy.scheme == "https" else 80)
            options += [
                f"-D{scheme}.proxyHost={proxy.hostname}",
                f"-D{scheme}.proxyPort={port}",
            ]
    user = next((proxy for scheme in _SCHEMES if (proxy := _proxy(given, scheme))), None)
    if user is not None and user.username:
        options += [
            f"-Dhttp.proxyUser={unquote(user.username)}",
            f"-Dhttp.proxyPassword={unquote(user.password or '')}",
            _BASIC,
        ]
    if options and "no" in given:
        options.append(f"-Dhttp.nonProxyHosts={'|'.join([*_NEVER, *_direct(given['no'])])}")
    return options


def named() -> str:
    """Return the proxy of downloads without its password, or an empty text."""
    proxy = _proxy(getproxies(), "https")
    return "" if proxy is None else proxy.netloc.rpartition("@")[2]


def _proxy(given: dict[str, str], scheme: str) -> SplitResult | None:
    address = given.get(scheme) or given.get("all") or ""
    if not address:
        return None
    try:
        found = urlsplit(address if "://" in address else f"http://{address}")
        usable = found.hostname is not None and (found.port or 0) >= 0
    except ValueError:
        usable = False
    # not the address, which may have a password
    if not usable:
        raise SessionError(
            f"the proxy of {scheme.upper()}_PROXY (or ALL_PROXY) is not a URL; "
            "set it to http://HOST:PORT, or unset it"
        )
    return found if found.scheme in _SCHEMES else None


def _direct(hosts: str) -> list[str]:
    """Return Java's patterns of hosts: a host of ``NO_PROXY`` stands for its subdomains, too."""
    if "*" in hosts.split(","):
        return ["*"]
    names = [re.sub(r":\d+$", "", each).lstrip("*.") for each in re.split(r"[\s,]+", hosts)]
    return [text for name in names if _HOST.fullmatch(name) for text in (name, f"*.{name}")]
