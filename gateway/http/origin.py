"""Whom a request thinks it talks to, and which page it comes from. Pure.

A page of another site may make a browser send requests here, and may point a name of its own at
this machine. Host, Origin and Sec-Fetch-Site tell. None of them lets anybody in.
"""

import ipaddress
import re
from collections.abc import Mapping
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from gateway.http.services import HttpSettings

_HOST: Final = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]"
    r"|(?P<name>[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?"
    r"(?:\.[A-Za-z0-9_](?:[A-Za-z0-9_-]*[A-Za-z0-9_])?)*)\.?)"
    r"(?::[0-9]{0,5})?"
)
"""A host and its port (RFC 9110, section 7.2), as clients that mean no harm write them: a name of
DNS or an address, in ASCII."""
MAX_HOST: Final = 255


class Origin(Enum):
    """Which page a request comes from, as far as the browser says."""

    OURS = "ours"
    OTHER = "other"
    UNSAID = "unsaid"
    """A program, or a browser that cannot be understood: over plain HTTP it says little, and a
    proxy may have changed the Host header. Then the CSRF token decides."""


def host_name(host: str) -> str:
    """The name or address of a Host header, without its port and brackets; empty for nonsense."""
    found = _HOST.fullmatch(host) if len(host) <= MAX_HOST else None
    if found is None:
        return ""
    if found["six"] is None:
        return found["name"].lower()
    address = _address(found["six"])
    return found["six"].lower() if address is not None and address.version == 6 else ""


def host_allowed(host: str, settings: HttpSettings) -> bool:
    """Whether a Host header names this server.

    Nobody else can point an address here, as they could a name of theirs.
    """
    name = host_name(host)
    if not name:
        return False
    known = {settings.host, *settings.public_hosts, host_name(_netloc(settings.public_url))}
    return name == "localhost" or _address(name) is not None or name in map(str.lower, known)


def origin_of(headers: Mapping[str, str], settings: HttpSettings) -> Origin:
    """Which page a request comes from.

    Browsers send Sec-Fetch-Site only where nobody can listen in (HTTPS, loopback), and no page can
    change it (Fetch metadata). Origin comes with every write (Fetch, section 3.2). It is "null"
    from a page that hides where it is.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return Origin.OURS if site in ("same-origin", "none") else Origin.OTHER
    origin = headers.get("Origin", "null").lower()
    if origin == "null":
        return Origin.UNSAID
    if settings.public_url and origin == settings.public_url:
        return Origin.OURS
    netloc = _netloc(origin)
    if netloc and netloc == headers.get("Host", "").lower():
        return Origin.OURS
    return Origin.OTHER if settings.public_url else Origin.UNSAID


def _netloc(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
