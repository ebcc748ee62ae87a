"""Hosts and origins, read as a browser's attacker would write them (WEB-2)."""

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.addresses import is_loopback
from gateway.http.origin import Origin, host_allowed, host_name, origin_of
from gateway.http.services import HttpSettings


def settings(host: str = "127.0.0.1", *names: str, public_url: str = "") -> HttpSettings:
    return HttpSettings(
        admin_tokens=lambda: ["t"], host=host, public_hosts=names, public_url=public_url
    )


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:8700", "localhost"),
        ("LOCALHOST", "localhost"),
        ("localhost.", "localhost"),
        ("[::1]:8700", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("", ""),
    ],
)
def test_the_name_of_a_host_header(host: str, name: str) -> None:
    assert host_name(host) == name


@pytest.mark.requirement("WEB-2")
@pytest.mark.parametrize(
    ("name", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost.evil.example", False),
        ("0.0.0.0", False),
        ("192.168.0.1", False),
        ("127.0.0.1.nip.io", False),
        ("", False),
    ],
)
def test_what_is_loopback(name: str, loopback: bool) -> None:
    assert is_loopback(name) is loopback


@pytest.mark.requirement("WEB-2")
def test_which_hosts_are_answered() -> None:
    assert host_allowed("localhost:1", settings())
    assert not host_allowed("evil.example", settings())
    assert host_allowed("192.0.2.1", settings())
    assert host_allowed("[2001:db8::1]:80", settings())
    assert not host_allowed("evil.example", settings("0.0.0.0"))
    assert host_allowed("Chat.Example:443", settings("0.0.0.0", "chat.example"))
    assert host_allowed("box.lan", settings("box.lan"))
    assert host_allowed("chat.example", settings(public_url="https://chat.example:8443"))
    assert not host_allowed("", settings(""))


NONSENSE = (
    "[::1].evil.test",
    "[::1",
    "::1",
    "[::1]x",
    "[fe80::1%25eth0]",
    "[v1.x]",
    "[127.0.0.1]",
    "localhost..",
    ".localhost",
    "localhost:80:80",
    "localhost:http",
    "localhost:-1",
    "user@localhost",
    "localhost/",
    "localhost#",
    "localhost?",
    "localhost\\",
    "local host",
    " localhost",
    "localhost\t",
    "localhost\n",
    "loc\u0430lhost",
    "\uff4cocalhost",
    "%6cocalhost",
    "127.0.0.1,evil.test",
    "-localhost",
    "127.0.0.1\x00",
    "a" * 300,
)


@pytest.mark.requirement("SEC-7", "WEB-2")
@pytest.mark.parametrize("host", NONSENSE)
def test_what_is_no_host_of_http_is_no_name(host: str) -> None:
    assert host_name(host) == ""
    assert not host_allowed(host, settings("localhost"))


@pytest.mark.requirement("SEC-7")
@given(st.text(alphabet="localhst127.:[]@%/\\#?- \t\x00ef\u3002", max_size=40))
def test_a_name_that_is_allowed_leads_here_wherever_it_is_looked_up(host: str) -> None:
    """Whatever is written around it, what is allowed is this one name or one plain address."""
    if host_allowed(host, settings()):
        name = host_name(host)
        rest = host.lower().removeprefix("[").removeprefix(name).removeprefix("]")
        assert re.fullmatch(r"\.?(:[0-9]{0,5})?", rest)
        assert name == "localhost" or ipaddress.ip_address(name)


@pytest.mark.requirement("WEB-2")
@pytest.mark.parametrize(
    ("headers", "origin"),
    [
        ({}, Origin.UNSAID),
        ({"Host": "a:1", "Origin": "http://a:1"}, Origin.OURS),
        ({"Host": "a:1", "Origin": "https://A:1"}, Origin.OURS),
        ({"Host": "a:1", "Origin": "http://a:2"}, Origin.UNSAID),
        ({"Host": "a:1", "Origin": "null"}, Origin.UNSAID),
        ({"Host": "a:1", "Origin": "null", "Sec-Fetch-Site": "same-origin"}, Origin.OURS),
        ({"Host": "", "Origin": ""}, Origin.UNSAID),
        ({"Host": "a:1", "Origin": "http://["}, Origin.UNSAID),
        ({"Sec-Fetch-Site": "none"}, Origin.OURS),
        ({"Sec-Fetch-Site": "cross-site"}, Origin.OTHER),
        ({"Sec-Fetch-Site": "same-site"}, Origin.OTHER),
        ({"Sec-Fetch-Site": "new-word"}, Origin.OTHER),
        ({"Host": "a", "Origin": "http://a", "Sec-Fetch-Site": "cross-site"}, Origin.OTHER),
    ],
)
def test_which_page_a_request_comes_from(headers: dict[str, str], origin: Origin) -> None:
    assert origin_of(headers, settings()) is origin


@pytest.mark.requirement("WEB-2")
@pytest.mark.parametrize(
    ("headers", "origin"),
    [
        ({"Host": "upstream", "Origin": "https://chat.example"}, Origin.OURS),
        ({"Host": "127.0.0.1:8080", "Origin": "http://127.0.0.1:8080"}, Origin.OURS),
        ({"Host": "upstream", "Origin": "https://evil.example"}, Origin.OTHER),
        ({"Host": "upstream", "Origin": "http://chat.example"}, Origin.OTHER),
        ({"Host": "upstream", "Origin": "null"}, Origin.UNSAID),
    ],
)
def test_a_public_address_says_which_origin_is_ours(
    headers: dict[str, str], origin: Origin
) -> None:
    assert origin_of(headers, settings(public_url="https://chat.example")) is origin
