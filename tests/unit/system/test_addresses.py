"""Only addresses of the public internet are public, however they are written (TOOL-8)."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.system.addresses import is_public

pytestmark = pytest.mark.requirement("TOOL-8")

# IANA's special-purpose registries, with multicast, site-local and IPv4-compatible addresses.
SPECIAL_4 = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32"),
    *("192.0.0.10/32", "192.0.0.170/32", "192.0.0.171/32", "192.0.0.192/32", "192.0.2.0/24"),
    *("192.88.99.0/24", "192.88.99.1/32", "192.88.99.2/32", "192.168.0.0/16", "198.18.0.0/15"),
    *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32"),
)
SPECIAL_6 = (
    *("::/128", "::1/128", "::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64"),
    *("2001::/23", "2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48"),
    *("2001:3::/32", "2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28"),
    *("2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10"),
    *("fec0::/10", "ff00::/8", "4000::/3", "e000::/4"),
)
GLOBAL = (
    *("1.1.1.1", "8.8.8.8", "9.9.9.9", "93.184.216.34", "100.63.255.255", "100.128.0.0"),
    *("172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0"),
    *("198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00:1450::1"),
    *("2001:200::1", "2001:4860:4860::8888", "2400:cb00::1", "3ffe::1"),
)


def inside(network: str) -> st.SearchStrategy[int]:
    found = ipaddress.ip_network(network)
    return st.integers(int(found[0]), int(found[-1]))


@pytest.mark.parametrize("network", SPECIAL_4)
def test_no_special_address_of_ipv4_is_public_nor_hidden_in_ipv6(network: str) -> None:
    @given(inside(network))
    def check(number: int) -> None:
        address = ipaddress.IPv4Address(number)
        assert not is_public(str(address))
        for prefix in ("::ffff:0:0", "64:ff9b::", "::", "64:ff9b:1::"):
            hidden = ipaddress.IPv6Address(int(ipaddress.IPv6Address(prefix)) | number)
            assert not is_public(str(hidden)), hidden
        sixtofour = ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1)
        assert not is_public(str(sixtofour))

    check()


@pytest.mark.parametrize("network", SPECIAL_6)
def test_no_special_address_of_ipv6_is_public(network: str) -> None:
    @given(inside(network))
    def check(number: int) -> None:
        assert not is_public(str(ipaddress.IPv6Address(number)))

    check()


@pytest.mark.parametrize("address", GLOBAL)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1"])
def test_a_public_host_behind_a_translator_stays_public(address: str) -> None:
    number = int(ipaddress.IPv4Address(address))
    assert is_public(f"::ffff:{address}")
    assert is_public(str(ipaddress.IPv6Address(int(ipaddress.IPv6Address("64:ff9b::")) | number)))


@given(st.integers(0, 2**32 - 1) | st.integers(0, 2**128 - 1))
def test_nothing_is_public_that_python_calls_private(number: int) -> None:
    address = ipaddress.ip_address(number)
    if address.is_private or address.is_multicast or address.is_reserved or address.is_loopback:
        hidden = isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None
        assert hidden or not is_public(str(address))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "localhost", "8.8.8", "8.8.8.8.", "8.8.8.8 ", "08.8.8.8", "134744072"),
        *("0x08080808", "8.8.2056", "0x8.8.8.8", "8.8.8.8%1", "2606:4700::1%eth0", "[2606::1]"),
        *("8.8.8.8:80", "8.8.8.8/32", "user@8.8.8.8", "８.８.８.８", "٨.٨.٨.٨", "8。8。8。8"),
    ],
)
def test_what_is_no_plain_address_is_not_public(text: str) -> None:
    assert not is_public(text)
