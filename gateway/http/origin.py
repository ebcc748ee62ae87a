"""Where a request comes from and whom it thinks it talks to. Pure.

A page of another site may make a browser send requests here, and may point a name of its own at
the loopback address; both are told by what the browser says in Host, Origin and Sec-Fetch-Site.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from gateway.http.services import HttpSettings

FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")
_WILDCARDS = frozenset({"", "0.0.0.0", "::"})


def host_name(host: str) -> str:
    """The name or address of a Host header, without its port and brackets; empty for nonsense."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def is_loopback(name: str) -> bool:
    """Whether a name or an address is this machine's own."""
    if name == "localhost":
        return True
    address = _address(name)
    return address is not None and address.is_loopback


def host_allowed(host: str, settings: HttpSettings) -> bool:
    """Whether a Host header names this server.

    An address is no name that somebody else could point here, so a server that listens on every
    address answers to every address.
    """
    name = host_name(host)
    if not name:
        return False
    if is_loopback(name) or name == settings.host.lower():
        return True
    if name in (one.lower() for one in settings.public_hosts):
        return True
    return settings.host in _WILDCARDS and _address(name) is not None


def same_origin(headers: Mapping[str, str]) -> bool:
    """Whether a request does not come from a page of somewhere else.

    Programs that are no browser send neither header.
    """
    site = headers.get("Sec-Fetch-Site")
    if site not in ("same-origin", "none", None):
        return False
    origin = headers.get("Origin")
    # A form of a page that sends no referrer has the origin "null" (Fetch, section 3.2).
    if origin is None or (origin == "null" and site == "same-origin"):
        return True
    try:
        return urlsplit(origin).netloc.lower() == headers.get("Host", "").lower() != ""
    except ValueError:
        return False


def is_local_owner(headers: Mapping[str, str], peer: str | None, settings: HttpSettings) -> bool:
    """WEB-2: without a token only from this machine, to this machine, through nobody else."""
    return (
        settings.loopback_owner
        and is_loopback(settings.host)
        and peer is not None
        and is_loopback(peer.removeprefix("::ffff:"))
        and is_loopback(host_name(headers.get("Host", "")))
        and not any(name in headers for name in FORWARDED)
        and same_origin(headers)
    )


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
