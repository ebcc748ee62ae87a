"""Where people find a gateway: on its machine, and from others."""

import socket

import pytest

from gateway.addresses import addresses, own_address

HERE = {socket.AF_INET: "192.0.2.7", socket.AF_INET6: "2001:db8::7"}


def own(family: int, _outside: str) -> str:
    """A machine with an address of each kind."""
    return HERE[socket.AddressFamily(family)]


@pytest.mark.parametrize(
    ("host", "here", "elsewhere", "all_of"),
    [
        ("127.0.0.1", "http://127.0.0.1:8080", "", ""),
        ("::1", "http://[::1]:8080", "", ""),
        ("chat.example", "http://chat.example:8080", "", ""),
        ("0.0.0.0", "http://127.0.0.1:8080", "http://192.0.2.7:8080", "IPv4"),
        ("::", "http://[::1]:8080", "http://[2001:db8::7]:8080", "IPv6"),
    ],
)
def test_all_addresses_of_a_machine_are_one_here_and_one_elsewhere(
    host: str, here: str, elsewhere: str, all_of: str
) -> None:
    found = addresses(host, 8080, own)
    assert (found.here, found.elsewhere, found.all) == (here, elsewhere, all_of)


def test_people_are_told_how_to_get_there_from_another_machine() -> None:
    assert addresses("127.0.0.1", 1, own).told(None) == ""
    begins = "It listens on all IPv4 addresses of this machine. From another machine, "
    found = addresses("0.0.0.0", 1, own)
    assert found.told(None) == f"{begins}use one of these, such as http://192.0.2.7:1"
    assert found.told("https://x.example") == f"{begins}open https://x.example"
    alone = addresses("0.0.0.0", 1, lambda *_: "")
    assert alone.told(None) == f"{begins}use one of these in place of the one above"


def test_a_machine_without_the_protocol_has_no_address_of_it() -> None:
    def without(_family: int, _outside: str) -> str:
        raise OSError

    assert addresses("::", 1, without).elsewhere == ""
    assert own_address(socket.AF_INET, "127.0.0.1") == "127.0.0.1"
    assert addresses("0.0.0.0", 1, lambda *_: "127.0.0.1").elsewhere == ""
