"""Hosts and origins, read as a browser's attacker would write them (WEB-2)."""

import pytest

from gateway.http.origin import host_allowed, host_name, is_local_owner, is_loopback, same_origin
from gateway.http.services import HttpSettings


def settings(host: str = "127.0.0.1", *names: str) -> HttpSettings:
    return HttpSettings(admin_tokens=lambda: ["t"], host=host, public_hosts=names)


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("localhost:8700", "localhost"),
        ("LOCALHOST", "localhost"),
        ("localhost.", "localhost"),
        ("[::1]:8700", "::1"),
        ("127.0.0.1", "127.0.0.1"),
        ("user@localhost", "localhost"),
        ("[::1", ""),
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
    assert not host_allowed("192.0.2.1", settings())
    assert host_allowed("192.0.2.1", settings("0.0.0.0"))
    assert not host_allowed("evil.example", settings("0.0.0.0"))
    assert host_allowed("Chat.Example:443", settings("0.0.0.0", "chat.example"))
    assert host_allowed("box.lan", settings("box.lan"))


@pytest.mark.requirement("WEB-2")
@pytest.mark.parametrize(
    ("headers", "same"),
    [
        ({}, True),
        ({"Host": "a:1", "Origin": "http://a:1"}, True),
        ({"Host": "a:1", "Origin": "https://A:1"}, True),
        ({"Host": "a:1", "Origin": "http://a:2"}, False),
        ({"Host": "a:1", "Origin": "http://a"}, False),
        ({"Host": "a:1", "Origin": "null"}, False),
        ({"Host": "a:1", "Origin": "null", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Host": "a:1", "Origin": "null", "Sec-Fetch-Site": "none"}, False),
        ({"Host": "", "Origin": ""}, False),
        ({"Host": "a:1", "Origin": "http://["}, False),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Host": "a", "Origin": "http://a", "Sec-Fetch-Site": "cross-site"}, False),
    ],
)
def test_same_origin(headers: dict[str, str], same: bool) -> None:
    assert same_origin(headers) is same


@pytest.mark.requirement("WEB-2")
def test_the_local_owner_is_on_this_machine_on_both_ends() -> None:
    near = {"Host": "localhost:8700"}
    assert is_local_owner(near, "127.0.0.1", settings())
    assert is_local_owner(near, "::ffff:127.0.0.1", settings())
    assert not is_local_owner(near, "192.0.2.9", settings())
    assert not is_local_owner(near, None, settings())
    assert not is_local_owner({}, "127.0.0.1", settings())
    assert not is_local_owner(near, "127.0.0.1", settings("0.0.0.0"))
    assert not is_local_owner({**near, "X-Real-IP": "1.2.3.4"}, "127.0.0.1", settings())
