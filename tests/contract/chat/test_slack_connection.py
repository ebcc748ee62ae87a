"""The connection to Slack on bad days, and what the operator is told."""

import pytest

from adapters.slack import socket_mode
from adapters.slack.socket_mode import PING_INTERVAL_S, SILENT_INTERVALS
from runtime.domain.errors import DeliveryRejected, Forbidden, Unavailable
from runtime.ports.chat import AdapterStatus
from tests.conftest import FailAfter
from tests.contract.chat.slack_support import Desk, desk, desk_at, reply, slack
from tests.wire.slack import ANNA, BEN, SlackServer
from tests.wire.slack.sockets import DisconnectReason, Link

__all__ = ["desk", "slack"]

UP = AdapterStatus(connected=True)


async def connected(desk: Desk) -> None:
    """A message came through, so the greeting did too."""
    said = await desk.slack.user_says(desk.direct(ANNA), ANNA, "ping")
    await desk.slack.wait_for_ack(said.deliveries[0])


async def pinged(slack: SlackServer, link: Link) -> None:
    """Slack pinged this socket, and the answer came: the adapter has heard of it."""
    answers = link.pongs + 1
    await link.socket.ping(b"Ping from applink-test")
    await slack.until(lambda: link.pongs == answers)


async def test_it_learns_its_workspace_and_says_when_it_is_connected(desk: Desk) -> None:
    assert desk.adapter.channel == "slack"
    assert not desk.adapter.status().connected
    await desk.adapter.connect()
    assert desk.adapter.account == "T0TEAM"
    assert desk.adapter.status() == AdapterStatus(
        connected=False, detail="Not listening to Slack yet."
    )
    async with desk.listening_again():
        await connected(desk)
        assert desk.adapter.status() == UP
        assert len(desk.slack.calls_to("apps.connections.open")) == 1
    assert not desk.adapter.status().connected


@pytest.mark.requirement("MSG-2", "SLK-1")
async def test_a_connection_that_is_cut_comes_back_and_misses_nothing(desk: Desk) -> None:
    async with desk.listening():
        await connected(desk)
        desk.gatehouse.gate.clear()
        caught = await desk.slack.user_says(desk.direct(ANNA), ANNA, "while it broke")
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 2)
        await desk.slack.drop_sockets()
        desk.gatehouse.gate.set()
        missed = await desk.slack.user_says(desk.direct(ANNA), ANNA, "while it was away")
        await desk.slack.wait_for_quiet()
        assert desk.adapter.status() == UP
    assert caught.deliveries[0].retries == 1
    assert missed.deliveries[0].acked
    assert desk.gatehouse.texts == ["ping", "while it broke", "while it was away"]


@pytest.mark.requirement("SLK-1")
@pytest.mark.requirement("SLK-1")
@pytest.mark.requirement("SLK-8")
@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_when_slack_asks_for_a_new_socket_the_old_one_is_left_in_good_order(
    desk: Desk, reason: DisconnectReason
) -> None:
    async with desk.listening():
        await connected(desk)
        desk.gatehouse.gate.clear()
        said = await desk.slack.user_says(desk.direct(ANNA), ANNA, "just before")
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 2)
        await desk.slack.disconnect(reason)
        await desk.slack.wait_for_sockets(1)
        # The new socket works, and the old one could have been closed by now.
        await desk.slack.wait_for_ack(await desk.slack.dispatch("events_api", {}))
        desk.gatehouse.gate.set()
        await desk.slack.wait_for_quiet()
        await desk.slack.until(lambda: len(desk.slack.hub.links) == 1)
        await desk.slack.user_says(desk.direct(ANNA), ANNA, "just after")
        await desk.slack.wait_for_quiet()
    # After a mere warning the old socket still carries the acknowledgement of its envelope.
    assert said.deliveries[0].late is (reason == "warning")
    assert desk.gatehouse.texts == ["ping", "just before", "just after"]


@pytest.mark.requirement("SLK-1")
async def test_a_socket_that_fell_silent_is_given_up_within_half_a_minute(desk: Desk) -> None:
    async with desk.listening():
        await connected(desk)
        desk.slack.go_silent()
        said = await desk.slack.user_says(desk.direct(ANNA), ANNA, "is anybody there?")
        began = desk.clock.monotonic()
        for _ in range(SILENT_INTERVALS + 1):
            await desk.clock.until_someone_waits(PING_INTERVAL_S)
            desk.clock.advance(PING_INTERVAL_S)
        await desk.slack.wait_for_ack(said.deliveries[0])
        assert desk.clock.monotonic() - began <= 30.0
    assert desk.gatehouse.texts == ["ping", "is anybody there?"]


async def test_a_quiet_but_living_socket_is_kept(desk: Desk) -> None:
    async with desk.listening():
        await connected(desk)
        for _ in range(3 * SILENT_INTERVALS):
            await desk.clock.until_someone_waits(PING_INTERVAL_S)
            (link,) = desk.slack.sockets
            await pinged(desk.slack, link)
            desk.clock.advance(PING_INTERVAL_S)
        assert len(desk.slack.calls_to("apps.connections.open")) == 1
        assert desk.adapter.status() == UP


@pytest.mark.requirement("SLK-1")
async def test_while_slack_is_away_it_tries_less_and_less_often_and_then_hears_all(
    desk: Desk,
) -> None:
    async with desk.listening():
        await connected(desk)
        await desk.outage()
        said = await desk.slack.user_says(desk.direct(ANNA), ANNA, "are you there?")
        for delay in (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0):
            await desk.clock.until_someone_waits(delay)
            detail = desk.adapter.status().detail
            assert detail.startswith("Slack cannot be reached.")
            if delay < 60.0:
                desk.clock.advance(delay)
        await desk.slack.up()
        desk.clock.advance(60.0)
        await desk.slack.wait_for_ack(said.deliveries[0])
        assert desk.adapter.status() == UP
    assert desk.gatehouse.texts == ["ping", "are you there?"]


async def test_an_unreachable_slack_at_the_start_is_no_reason_to_give_up(
    desk: Desk, fail_after: FailAfter
) -> None:
    await desk.slack.down()
    async with fail_after(10):
        with pytest.raises(Unavailable, match="Slack cannot be reached"):
            await desk.adapter.connect()
    assert "Trying again" in desk.adapter.status().detail
    with pytest.raises(Unavailable):
        await desk.adapter.listen(desk.gatehouse)
    await desk.slack.up()
    async with desk.listening():
        await connected(desk)


@pytest.mark.parametrize(
    ("field", "token", "sentence"),
    [
        ("bot_token", "xoxb-wrong", r"bot token: invalid_auth.*Bot User OAuth Token \(xoxb-"),
        ("bot_token", "xapp-test-token", "bot token: it does not begin with xoxb-"),
        ("app_token", "xapp-wrong", r"app token: invalid_auth.*scope connections:write"),
        ("app_token", "xoxb-test-token", "app token: it does not begin with xapp-"),
    ],
)
async def test_a_wrong_token_is_named_with_the_place_to_get_it(
    slack: SlackServer, field: str, token: str, sentence: str
) -> None:
    async with desk_at(slack, **{field: token}) as desk:
        with pytest.raises(Forbidden, match=sentence) as caught:
            await desk.adapter.connect()
        assert desk.adapter.status().detail == str(caught.value)
        assert token not in str(caught.value)


async def test_a_token_that_is_revoked_later_is_shown_and_tried_slowly(desk: Desk) -> None:
    async with desk.listening():
        await connected(desk)
        desk.slack.fail("apps.connections.open", "token_revoked", times=2)
        await desk.slack.drop_sockets()
        await desk.clock.until_someone_waits(1.0)
        assert "app token: token_revoked" in desk.adapter.status().detail
        desk.clock.advance(1.0)
        await desk.clock.until_someone_waits(2.0)
        desk.clock.advance(2.0)
        await connected(desk)


@pytest.mark.requirement("SLK-8")
@pytest.mark.parametrize("error", ["invalid_auth", "token_revoked", "account_inactive"])
async def test_a_bot_token_that_dies_later_is_shown_until_slack_takes_it_again(
    desk: Desk, error: str
) -> None:
    async with desk.listening():
        await connected(desk)
        desk.slack.fail("chat.postMessage", error)
        with pytest.raises(DeliveryRejected, match=error):
            await desk.send(reply("hello"))
        status = desk.adapter.status()
        assert not status.connected
        assert f"bot token: {error}" in status.detail
        assert "OAuth & Permissions" in status.detail
        await desk.send(reply("hello"))
        assert desk.adapter.status() == UP


async def test_a_network_that_breaks_again_and_again_is_met_every_second(desk: Desk) -> None:
    """However often a connection that had worked is cut, nobody waits longer for the next one."""
    async with desk.listening():
        await connected(desk)
        await desk.slack.drop_sockets()
        for _ in range(6):
            await connected(desk)
            await desk.slack.drop_sockets()
            await desk.clock.until_someone_waits(1.0)
            desk.clock.advance(1.0)
        await connected(desk)


@pytest.mark.requirement("SLK-1", "SLK-8")
async def test_a_limit_on_new_sockets_is_waited_for(desk: Desk) -> None:
    async with desk.listening():
        await connected(desk)
        desk.slack.rate_limit("apps.connections.open", retry_after=17)
        await desk.slack.drop_sockets()
        await desk.clock.until_someone_waits(17.0)
        desk.clock.advance(17.0)
        await connected(desk)
    assert desk.gatehouse.texts == ["ping", "ping"]


@pytest.mark.parametrize(
    ("reason", "told"),
    [("link_disabled", "Socket Mode is switched off"), ("too_many_websockets", "ten sockets")],
)
async def test_when_slack_refuses_sockets_the_operator_learns_why(
    desk: Desk, reason: DisconnectReason, told: str
) -> None:
    async with desk.listening():
        await connected(desk)
        await desk.slack.disconnect(reason)
        await desk.clock.until_someone_waits(60.0)
        assert told in desk.adapter.status().detail
        desk.clock.advance(60.0)
        await connected(desk)


@pytest.mark.requirement("SLK-1")
async def test_several_connections_share_the_work_and_one_may_fail(slack: SlackServer) -> None:
    async with desk_at(slack, connections=3) as desk, desk.listening():
        assert len(slack.sockets) == 3
        slack.go_silent(1)
        for number in range(6):
            await slack.user_says(desk.direct(ANNA), ANNA, f"message {number}")
        await desk.gatehouse.wait_for(4)
        for _ in range(SILENT_INTERVALS + 1):
            await desk.clock.until_someone_waits(PING_INTERVAL_S, count=3)
            speaking = [link for link in slack.sockets if not link.silent]
            for link in speaking:
                await pinged(slack, link)
            desk.clock.advance(PING_INTERVAL_S)
        await slack.wait_for_quiet()
        assert desk.adapter.status() == UP
    assert sorted(desk.gatehouse.texts) == [f"message {number}" for number in range(6)]


@pytest.mark.requirement("SLK-1")
async def test_a_frame_of_ten_megabytes_closes_its_socket_and_no_more(desk: Desk) -> None:
    async with desk.listening():
        await connected(desk)
        huge = await desk.slack.dispatch("events_api", {"event": {"text": "x" * 10_000_000}})
        # Slack delivers it three times more, each time over the next socket.
        for _ in range(3):
            await desk.clock.until_someone_waits(1.0)
            desk.clock.advance(1.0)
        await desk.slack.until(lambda: huge.abandoned)
        await connected(desk)
    assert not huge.acked
    assert desk.gatehouse.texts == ["ping", "ping"]


@pytest.mark.requirement("SLK-1")
async def test_another_program_with_the_same_token_is_told_to_the_operator(
    slack: SlackServer,
) -> None:
    async with desk_at(slack) as one, one.listening():
        await connected(one)
        assert one.adapter.status() == UP
        async with desk_at(slack) as other:
            await other.adapter.connect()
            async with other.listening_again():
                await slack.wait_for_sockets(2)
                for number in range(2):
                    await slack.user_says(one.direct(ANNA), ANNA, f"message {number}")
                await slack.wait_for_quiet()
                status = other.adapter.status()
                assert status.connected
                assert "another program uses the same app token" in status.detail
    # Slack gives each event to one of them, and between them nothing was lost or doubled.
    texts = [*one.gatehouse.texts, *other.gatehouse.texts]
    assert sorted(texts) == ["message 0", "message 1", "ping"]


@pytest.mark.requirement("SCALE-5", "MSG-1")
async def test_what_comes_while_too_much_is_at_work_stays_unacknowledged_and_comes_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket_mode, "MOST_AT_WORK", 1)
    async with desk.listening():
        await connected(desk)
        desk.gatehouse.gate.clear()
        first = await desk.slack.user_says(desk.direct(ANNA), ANNA, "slow to keep")
        await desk.gatehouse.until(lambda: len(desk.gatehouse.offered) == 2)
        second = await desk.slack.user_says(desk.direct(BEN), BEN, "one too many")
        # The answer to a ping comes behind what was sent before it: the second was read by then.
        await pinged(desk.slack, desk.slack.hub.links[-1])
        assert len(desk.gatehouse.offered) == 2
        desk.gatehouse.gate.set()
        await desk.slack.wait_for_ack(first.deliveries[0])
        assert not second.deliveries[0].acked
        await desk.slack.drop_sockets()
        await desk.slack.wait_for_quiet()
    assert second.deliveries[0].retries == 1
    assert desk.gatehouse.texts == ["ping", "slow to keep", "one too many"]
