"""The small parts: offsets, backoff, the group window and what an answer means."""

import json

import pytest

from adapters.platforms.backoff import Backoff
from adapters.telegram import failures
from adapters.telegram.failures import RateLimited, Refused, Unanswered, failure_in
from adapters.telegram.group_limit import GroupWindow
from adapters.telegram.polling import FRESH_MS, Offset
from runtime.domain.errors import DeliveryRejected, DeliveryRetry, Forbidden, Unavailable
from tests.fakes.clock import FakeClock


def refusal(code: int, description: str, **parameters: object) -> Refused:
    body = {"ok": False, "error_code": code, "description": description, "parameters": parameters}
    failure = failure_in(code, json.dumps(body).encode())
    assert isinstance(failure, Refused)
    return failure


def test_after_a_quiet_time_the_numbers_may_begin_anew() -> None:
    offset = Offset()
    offset.answered(5)
    offset.taken(900)
    assert offset.at(5) == 901
    offset.forget()
    assert offset.at(5) is None


@pytest.mark.parametrize("now_ms", [5 + FRESH_MS, 4], ids=["long ago", "the clock was set back"])
def test_an_offset_is_not_trusted_where_its_age_is_too_high_or_unknown(now_ms: int) -> None:
    """As in a process that was suspended between an answer and the next question."""
    offset = Offset()
    offset.answered(5)
    offset.taken(900)
    assert offset.at(4 + FRESH_MS) == 901
    assert offset.at(now_ms) is None
    assert offset.at(5) is None, "once forgotten it stays so"


def test_the_backoff_doubles_up_to_a_minute_and_forgets() -> None:
    backoff = Backoff()
    assert [backoff.next() for _ in range(8)] == [1, 2, 4, 8, 16, 32, 60, 60]
    backoff.reset()
    assert backoff.next() == 1


async def test_each_group_has_a_window_of_its_own_that_slides() -> None:
    clock = FakeClock()
    window = GroupWindow(clock)
    for _ in range(20):
        assert window.take("-1") == 0
        await clock.advance(2)
    assert window.take("-1") == 20
    assert window.take("-2") == 0
    await clock.advance(20)
    assert window.take("-1") == 0
    assert window.take("-1") == 2


async def test_groups_that_fell_silent_are_forgotten() -> None:
    clock = FakeClock()
    window = GroupWindow(clock)
    for number in range(1_001):
        window.take(str(number))
    await clock.advance(60)
    window.take("-1")
    assert len(window._posts) == 1


def test_the_parameters_of_an_answer_are_read() -> None:
    body = {"ok": False, "error_code": 429, "parameters": {"retry_after": 7}}
    flood = failure_in(429, json.dumps(body).encode())
    assert isinstance(flood, RateLimited)
    assert flood.after_s == 7
    assert refusal(400, "upgraded", migrate_to_chat_id=-1005).migrate_to == "-1005"
    assert failure_in(200, b'{"ok": true, "result": []}') is None
    assert isinstance(failure_in(200, b'{"ok": true}'), Unanswered)


@pytest.mark.parametrize("case", [str, str.upper, str.capitalize])
def test_descriptions_match_in_any_case(case: object) -> None:
    assert callable(case)
    assert failures.about_form(refusal(400, case("Bad Request: can't parse entities")))
    assert failures.about_form(refusal(400, case("Bad Request: ENTITY_BOUNDS_INVALID")))
    assert failures.edit_in_vain(refusal(400, case("message is not modified: same")))
    assert failures.delete_in_vain(refusal(400, case("message to delete not found")))
    assert not failures.about_form(refusal(400, case("chat not found")))


@pytest.mark.parametrize(
    ("failure", "verdict", "account_wide"),
    [
        (refusal(403, "Forbidden: user is deactivated"), "account was deleted", False),
        (refusal(400, "Bad Request: TOPIC_CLOSED"), "the topic is closed", False),
        (refusal(400, "Bad Request: message thread not found"), "the topic was deleted", False),
        (refusal(400, "Bad Request: CHAT_WRITE_FORBIDDEN"), "may not write", False),
        (refusal(400, "Bad Request: something new"), "something new", False),
        (refusal(404, "Not Found"), "Not Found", True),
    ],
)
def test_what_will_never_work_says_why(failure: Refused, verdict: str, account_wide: bool) -> None:
    error = failures.delivery_error(failure)
    assert isinstance(error, DeliveryRejected)
    assert verdict in str(error)
    assert error.account_wide is account_wide


def test_a_server_in_trouble_is_tried_again() -> None:
    assert isinstance(failures.delivery_error(refusal(502, "Bad Gateway")), DeliveryRetry)
    assert isinstance(failures.connection_error(refusal(502, "Bad Gateway")), Unavailable)
    assert isinstance(failures.connection_error(refusal(401, "Unauthorized")), Forbidden)
