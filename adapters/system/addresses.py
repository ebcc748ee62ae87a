"""Which addresses a page may be fetched from: those of the public internet, and no others.

Pure. The lists are those of IANA's special-purpose registries as `ipaddress` carries them, and
the prefixes that hide an IPv4 address inside an IPv6 one, which are judged by what they hide.
"""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""RFC 6052: a public host behind DNS64 resolves to this prefix, so it cannot be refused whole."""
_NAT64_LOCAL = ipaddress.IPv6Network("64:ff9b:1::/48")
"""RFC 8215: a network's own translation, wherever that leads."""
_COMPATIBLE = ipaddress.IPv6Network("::/96")
"""RFC 4291, 2.5.5.1; deprecated, and still routed by some."""


def is_public(text: str) -> bool:
    """Whether the address literal `text` may be connected to; False for what is no address."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return _public(address)


def _public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv6Address):
        hidden = _hidden(address)
        if hidden is not None:
            return _public(hidden)
        if address.is_site_local or address.teredo is not None or address in _NAT64_LOCAL:
            return False
    return address.is_global and not (
        address.is_multicast
        or address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_reserved
        or address.is_unspecified
    )


def _hidden(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or address in _COMPATIBLE:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return None
