"""Where people find the gateway: from this machine, and from others. Sends nothing to anybody."""

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class _Family:
    """The addresses of one version of the protocol. `outside` is one of other machines, kept for
    documents (RFC 5737, RFC 3849)."""

    name: str
    number: int
    loopback: str
    outside: str


_ALL: Final = {
    "0.0.0.0": _Family("IPv4", socket.AF_INET, "127.0.0.1", "198.51.100.1"),
    # It listens on no IPv4 address: asyncio binds it to IPv6 alone.
    "::": _Family("IPv6", socket.AF_INET6, "::1", "2001:db8::1"),
}
"""Hosts that stand for all addresses of a machine."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """`here` is the gateway's URL on this machine. `elsewhere` is one for other machines, and `all`
    says on what it listens: both empty where `here` is all that there is."""

    here: str = ""
    elsewhere: str = ""
    all: str = ""

    def told(self, public_url: str | None) -> str:
        """What to say of other machines, in sentences; empty where there is nothing to say."""
        if not self.all:
            return ""
        where = f"use one of these, such as {self.elsewhere}"
        if public_url:
            # What comes by another address is refused as another page's.
            where = f"open {public_url}"
        elif not self.elsewhere:
            where = "use one of these in place of the one above"
        return (
            f"It listens on all {self.all} addresses of this machine. From another machine, {where}"
        )


def own_address(family: int, outside: str) -> str:
    """The address with which this machine reaches `outside`; empty without one."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            # Of datagrams this only asks the routing table.
            probe.connect((outside, 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


def addresses(host: str, port: int, own: Callable[[int, str], str] = own_address) -> Addresses:
    """Where a gateway is found that listens on `host`."""
    family = _ALL.get(host)
    if family is None:
        return Addresses(_url(host, port))
    try:
        found = own(family.number, family.outside)
    except OSError:
        # A machine without this version of the protocol.
        found = ""
    elsewhere = _url(found, port) if found and found != family.loopback else ""
    return Addresses(_url(family.loopback, port), elsewhere, family.name)


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
