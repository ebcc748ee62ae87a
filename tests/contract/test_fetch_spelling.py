"""An address that is spelled so that programs read it differently leads nowhere (TOOL-8)."""

import pytest

from adapters.system.fetch import AddressInfo, GuardedFetch
from tests.contract.test_fetch import Names, Site, no_socket, refusal, site

__all__ = ["site"]


@pytest.mark.requirement("TOOL-8")
@pytest.mark.parametrize(
    "url",
    [
        "http://good.example\\@127.0.0.1/",
        "http://good.example\\127.0.0.1/",
        "http://good.example /",
        "http://good.example\t.evil.test/",
        "http://good\u202e.example/",
        "http://good.example\n/",
        "http://good\u3000.example/",
        "http://[fe80::1%25eth0]/",
        "http://user:word@127.0.0.1/",
        "http://good.example@127.0.0.1/",
        "http://@127.0.0.1/",
        "file:///etc/passwd",
        "http:/127.0.0.1/",
        "http://",
    ],
)
async def test_an_address_that_programs_read_differently_is_refused(url: str) -> None:
    opened: list[AddressInfo] = []
    fetch = GuardedFetch(resolve=Names({}), sockets=no_socket(opened))
    told = await refusal(fetch, url)
    assert told
    assert "\u202e" not in told
    assert opened == []


@pytest.mark.parametrize(
    "host",
    [
        *("127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::ffff:7f00:1]", "localhost"),
        *("127.0.0.1.", "localhost.", "0x7f.1", "017700000001", "127.0.1", "0", "[::]"),
        *("[::ffff:127.0.0.1]", "[0:0:0:0:0:0:0:1]", "１２７.０.０.１", "127。0。0。1"),
    ],
)
async def test_other_spellings_of_loopback_are_refused(site: Site, host: str) -> None:
    site.text("/", "inside")
    told = await refusal(GuardedFetch(), site.url("/", host))
    assert "not on the public internet" in told or "has no address" in told
    assert site.asked == []
