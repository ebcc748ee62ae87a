"""Which addresses a page may be fetched from: those of the public internet, and no others.

Pure. The tables are IANA's special-purpose address registries for IPv4 and IPv6 (RFC 6890) as they
stand, not as some Python knew them. Of IPv6 only global unicast is public at all, so that what is
assigned one day is refused until it is looked at. Anycast services that the registries call global
(PCP, TURN, 6to4 relays) serve no pages, and lead to one's own network: they are refused.
"""

import ipaddress
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NOT_PUBLIC_4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private use
            "100.64.0.0/10",  # shared by the customers of a carrier
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, and metadata services
            "172.16.0.0/12",  # private use
            "192.0.0.0/24",  # protocol assignments, DS-Lite, PCP and TURN anycast
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays, deprecated
            "192.168.0.0/16",  # private use
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and limited broadcast
        ),
    )
)
_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID, anycast
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4, deprecated: it hides an IPv4 address
            "3fff::/20",  # documentation
        ),
    )
)
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
"""RFC 6052: a public host behind DNS64 resolves to this prefix, so it cannot be refused whole."""


def is_public(text: str) -> bool:
    """Whether the address literal `text` may be connected to; False for what is no address.

    What has a zone (`fe80::1%eth0`) is meant for one link.
    """
    if "%" in text:
        return False
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return _is_public(address)


def _is_public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC_4)
    hidden = _hidden(address)
    if hidden is not None:
        return _is_public(hidden)
    special = any(address in network for network in _NOT_PUBLIC_6)
    return address in _GLOBAL_UNICAST and not special


def _hidden(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that is really connected to."""
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped
