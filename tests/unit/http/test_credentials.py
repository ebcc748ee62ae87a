"""Tokens are compared in constant time: what a guess has right must not show (API-1)."""

import hmac

import pytest

from gateway.http import credentials
from gateway.http.credentials import Credentials
from gateway.http.problems import HttpProblem
from gateway.http.services import HttpServices, HttpSettings
from tests.fakes.clock import FakeClock


class Request:
    """The one thing that is asked of a request here."""

    remote = "192.0.2.1"


class Services:
    """What the check of a token needs to know of a gateway."""

    logins = None

    def __init__(self, *admin: str) -> None:
        self.settings = HttpSettings(admin_tokens=lambda: admin, read_tokens=lambda: ("reads",))
        self.clock = FakeClock()


@pytest.mark.requirement("API-1")
@pytest.mark.parametrize("given", ["first-token", "second-token", "first-tokeX", "x", ""])
async def test_every_known_token_is_compared_whole_whatever_was_given(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[int, int]] = []

    def watched(one: bytes, other: bytes) -> bool:
        compared.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr(credentials.hmac, "compare_digest", watched)
    services: HttpServices = Services("first-token", "second-token")
    try:
        role: object = (await Credentials(services).of_token(Request(), given)).role
    except HttpProblem as problem:
        role = problem.status
    assert role == ("admin" if given in ("first-token", "second-token") else 401)
    assert compared == [(32, 32)] * 3, "digests of one length, and all of them each time"


def test_the_comparison_is_the_library_s() -> None:
    assert credentials.hmac is hmac
