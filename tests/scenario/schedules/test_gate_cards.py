"""The cards of gates: where they are shown, and what an answer does, on each database (SCH-9)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import Connection

from runtime.domain.errors import Conflict
from runtime.domain.messages import ApprovalPart
from runtime.domain.people import Sender
from runtime.features.schedules.conditions import REFUSED
from runtime.features.schedules.gates import CARDS
from runtime.features.schedules.model import CancelRequest, GateDecision, ScheduleChange
from runtime.intake.app_home import MOST, Homing
from runtime.ports.gatehouse import Home
from tests.scenario.cards import MEMBER, card
from tests.scenario.engine import OWNER
from tests.scenario.schedules.scheduling import answering
from tests.scenario.schedules.test_gates import COMMAND, answers, gated, printing
from tests.scenario.schedules.test_reminders import House, house

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-9")


async def test_the_home_page_shows_an_open_card_to_who_may_answer_it(house: House) -> None:
    async with house.begins(answering("42 sold"), change=printing("news").change) as at:
        table = await gated(at, approve=False)
        await table.passes(1)
        shown = await card(at)
        assert isinstance(shown, ApprovalPart)

        async def home(user: str = OWNER, account: str = "A1") -> Home:
            sender = Sender(id=user, name=user)
            return await at.engine.intake.home(channel="test", account=account, sender=sender)

        assert (await home()).cards == (shown,)
        assert (await home(MEMBER)).cards == ()
        assert (await home(account="A2")).cards == ()
        assert await at.database.read(lambda conn: CARDS.waiting(conn, "slack", "A1", 5)) == []
        listed = await table.control.listing(gate_status="waiting_for_approval")
        assert [one.schedule_id for one in listed.items] == table.made
        assert (await at.presses(shown.open_call_id, "deny")).accepted
        assert (await home()).cards == ()
        assert not (await table.control.listing(gate_status="waiting_for_approval")).items
        await table.make(here=True)
        denied = await table.control.listing(gate_status="denied")
        assert (len(denied.items), denied.total_count) == (1, 1)
        assert (await table.control.listing()).total_count == 2


async def test_the_newest_open_cards_are_shown_and_none_of_what_is_over(house: House) -> None:
    async with house.begins(answering(), change=printing("news").change) as at:
        table = await gated(at, approve=False)
        for _ in range(2):
            await table.passes(1)
            await table.make(here=True, gate={"command": COMMAND})
        await table.make(here=True, gate={"command": COMMAND})
        last = table.made[-1]
        waiting = (await table.control.listing(gate_status="waiting_for_approval")).items
        assert {one.schedule_id for one in waiting} == set(table.made), "one is not asked about yet"
        await table.passes(1)
        cards = await at.database.read(lambda conn: CARDS.waiting(conn, "test", "A1", 5))
        ids = [one.open_call_id for one in cards]
        assert ids == sorted(ids, reverse=True)
        assert len(ids) == 4
        assert (
            await at.database.read(lambda conn: CARDS.waiting(conn, "test", "A1", 2)) == cards[:2]
        )
        await table.control.cancel(last, CancelRequest())
        left = await at.database.read(lambda conn: CARDS.waiting(conn, "test", "A1", 5))
        assert len(left) == 3
        waiting = (await table.control.listing(gate_status="waiting_for_approval")).items
        assert last not in {one.schedule_id for one in waiting}


async def test_gates_leave_room_for_other_cards_on_the_home_page(house: House) -> None:
    """A person may have more schedules than the page has room."""

    def many(conn: Connection, channel: str, account: str, most: int) -> Sequence[ApprovalPart]:
        asked.append(most)
        return CARDS.waiting(conn, channel, account, most)

    asked: list[int] = []
    async with house.begins(answering(), change=printing("news").change) as at:
        table = await gated(at, approve=False)
        await table.passes(1)
        homing = Homing(
            at.engine.intake.settings, at.engine.intake.commands, (replace(CARDS, waiting=many),)
        )
        sender = Sender(id=OWNER, name=OWNER)
        read = partial(homing.home, channel="test", account="A1", sender=sender)
        assert len((await at.database.read(read)).cards) == 1
        assert asked == [MOST // 2]


async def test_an_answer_to_an_earlier_card_is_refused_though_the_action_is_the_same(
    house: House,
) -> None:
    async with house.begins(answering(), change=printing("news").change) as at:
        table = await gated(at, approve=False)
        await table.passes(1)
        before = (await table.view()).gate
        assert before is not None
        hourly = ScheduleChange.model_validate(
            {"cadence": {"type": "interval", "every_seconds": 3600}}
        )
        await table.control.revise(table.made[-1], hourly)
        await table.passes(1)
        now = (await table.view()).gate
        assert now is not None
        assert (now.digest, now.request_id != before.request_id) == (before.digest, True)
        given = {"behavior": "allow", "digest": now.digest}
        for request_id, refused in ((before.request_id, True), (now.request_id, False)):
            decision = GateDecision.model_validate({**given, "request_id": request_id})
            if refused:
                with pytest.raises(Conflict, match="earlier card"):
                    await table.control.decide_gate(table.made[-1], decision)
            else:
                await table.control.decide_gate(table.made[-1], decision)
        view = (await table.view()).gate
        assert view is not None
        assert view.status == "approved"


async def test_a_denied_gate_stays_denied_and_the_api_answers_by_digest(house: House) -> None:
    gate = printing("news")
    async with house.begins(answering("42 sold"), change=gate.change) as at:
        table = await gated(at, approve=False)
        with pytest.raises(Conflict, match="nobody was asked"):
            await table.control.decide_gate(
                table.made[-1], GateDecision(behavior="allow", digest="0" * 64)
            )
        await table.passes(1)
        shown = await card(at)
        await at.presses(shown.open_call_id, "deny")
        await table.passes(59)
        assert [one.error for one in await table.fires()] == [REFUSED]
        view = await table.view()
        assert view.gate is not None
        assert view.gate.status == "denied"
        assert view.gate.digest is not None
        with pytest.raises(Conflict, match="another gate"):
            await table.control.decide_gate(
                table.made[-1], GateDecision(behavior="allow", digest="0" * 64)
            )
        given = GateDecision(behavior="allow", digest=view.gate.digest)
        view = await table.control.decide_gate(table.made[-1], given)
        assert view.gate is not None
        assert view.gate.status == "approved"
        await table.passes(60)
        assert answers(at) == ["42 sold"]
        await table.control.decide_gate(
            table.made[-1], GateDecision(behavior="deny", digest=given.digest)
        )
        await table.passes(60)
        assert gate.ran == 1, "an approval may be taken back"
