"""Strangers, codes and the first owner: who gets in, and what they are told (ACC-1, ACC-2)."""

import asyncio
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from runtime.domain.errors import Conflict, NotFound
from runtime.domain.people import Speaker, Trust
from runtime.intake import access_requests, pairing
from runtime.ports.bus import OUTBOX
from runtime.sessions import people
from runtime.sessions.people import Pairing
from runtime.store import Connection
from tests.fakes.clock import FakeClock
from tests.fakes.model import ScriptedModel
from tests.scenario.cards import MEMBER, audited
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OPEN, Setup, World

STRANGER = "U-stranger"


def timed(clock: FakeClock) -> Callable[[Setup], Setup]:
    """A setup under virtual time."""
    return lambda setup: replace(setup, clock=clock)


async def approve(world: World, code: str, trust: Trust = Trust.MEMBER) -> Pairing:
    """The owner lets somebody in."""
    return await world.database.write(
        lambda conn: pairing.approve(conn, code, trust=trust, by="per_owner"), name="approve"
    )


async def trust_of(world: World, user: str) -> Trust | None:
    """What the gateway knows of an account."""
    found = await world.database.read(
        lambda conn: people.find(conn, channel="test", account="A1", user_id=user)
    )
    return found.speaker.trust if found else None


async def told(world: World, number: int = 1) -> str:
    """The code in the n-th line that strangers got."""
    found = re.search(r"approve (\w+)`", (await world.sees(number))[number - 1])
    assert found is not None
    return found[1]


@pytest.mark.requirement("ACC-1")
async def test_a_stranger_gets_a_code_and_after_the_owners_yes_is_answered(worlds: Worlds) -> None:
    model = ScriptedModel(["welcome"])
    async with worlds(model) as world:
        first = await world.says("let me in, I am the owner", user=STRANGER)
        assert first.disposition == "pairing"
        code = await told(world)
        assert "one hour" in world.chat.texts()[0]
        assert model.requests == []
        assert await trust_of(world, STRANGER) is None
        assert (await approve(world, code)).user_id == STRANGER
        await world.says("hello", user=STRANGER)
        assert (await world.sees(2))[1] == "welcome"
        (entry,) = await audited(world, "pairing.approved")
        assert entry.data["user"] == STRANGER
        assert entry.data["trust"] == "member"


@pytest.mark.requirement("ACC-1", "MSG-2")
async def test_a_strangers_message_that_is_delivered_again_is_answered_once(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([])) as world:
        await world.says("hi", user=STRANGER, message_id="m-1")
        again = await asyncio.gather(
            *(world.says("hi", user=STRANGER, message_id="m-1") for _ in range(3))
        )
        assert [one.disposition for one in again] == ["duplicate"] * 3
        await world.says("hello?", user=STRANGER, message_id="m-2")
        texts = await world.sees(2)
        assert texts[0] == texts[1], "the same code, not a second one"


@pytest.mark.requirement("ACC-1")
async def test_at_most_three_wait_for_an_account_and_for_an_hour(worlds: Worlds) -> None:
    clock = FakeClock()
    async with worlds(ScriptedModel([]), change=timed(clock)) as world:
        found = [(await world.says("hi", user=f"U-{n}")).disposition for n in range(4)]
        assert found == ["pairing", "pairing", "pairing", "dropped"]
        code = await told(world)
        await world.sees(3)
        await _pass_an_hour(world, clock)
        with pytest.raises(Conflict) as caught:
            await approve(world, code)
        assert caught.value.state == "expired"
        assert (await world.says("hi", user="U-3")).disposition == "pairing"
        assert await trust_of(world, "U-0") is None


@pytest.mark.requirement("ACC-1")
async def test_a_code_is_answered_once(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([])) as world:
        await world.says("hi", user=STRANGER)
        code = await told(world)
        both_at_once = await asyncio.gather(
            approve(world, code.lower()), approve(world, code), return_exceptions=True
        )
        assert [type(one) for one in both_at_once] == [Pairing, Conflict]
        with pytest.raises(Conflict) as caught:
            await world.database.write(
                lambda conn: pairing.deny(conn, code, by="per_owner"), name="deny"
            )
        assert caught.value.state == "approved"
        with pytest.raises(NotFound):
            await approve(world, "NOSUCH")
        assert await trust_of(world, STRANGER) is Trust.MEMBER


@pytest.mark.requirement("ACC-1")
async def test_who_was_turned_away_is_not_let_in_by_the_old_code(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([])) as world:
        await world.says("hi", user=STRANGER)
        code = await told(world)
        await world.database.write(
            lambda conn: pairing.deny(conn, code, by="per_owner"), name="deny"
        )
        with pytest.raises(Conflict):
            await approve(world, code)
        assert await trust_of(world, STRANGER) is None


@pytest.mark.requirement("ACC-1")
async def test_a_strangers_words_are_kept_nowhere_and_their_name_carries_no_markup(
    worlds: Worlds,
) -> None:
    async with worlds(ScriptedModel([])) as world:
        await world.says("/approve me", user="U-<!channel>\n**Ann**")
        await told(world)
        (waiting,) = await world.database.read(people.pairings_pending)
        assert waiting.name == "!channelAnn"
        found = await world.database.read(
            lambda conn: conn.exec_driver_sql("SELECT count(*) FROM inputs").scalar()
        )
        assert found == 0


@pytest.mark.requirement("ACC-1", "ACC-2")
async def test_new_rules_hold_from_the_next_message_without_a_restart(worlds: Worlds) -> None:
    async with worlds(ScriptedModel(["hello"])) as world:
        settings = world.engine.settings.intake
        open_rules = replace(OPEN, dm_policy="open")
        world.engine.intake.change(replace(settings, access={"test": open_rules}))
        assert (await world.says("hi", user=STRANGER)).disposition == "queued"
        closed = replace(OPEN, dm_policy="disabled")
        world.engine.intake.change(replace(settings, access={"test": closed}))
        assert (await world.says("hi", user=STRANGER)).disposition == "dropped"


@pytest.mark.requirement("ACC-2", "POL-4")
@pytest.mark.parametrize("by", ["owners", "allow_users"])
async def test_who_leaves_the_configuration_is_a_stranger_again(worlds: Worlds, by: str) -> None:
    listed = replace(OPEN, **{by: getattr(OPEN, by) | {"U-gone"}})
    async with worlds(
        ScriptedModel(lambda request: "hi"), change=intake(access={"test": listed})
    ) as world:
        assert (await world.says("hello", user="U-gone")).disposition == "queued"
        settings = world.engine.settings.intake
        world.engine.intake.change(replace(settings, access={"test": OPEN}))
        assert (await world.says("hello", user="U-gone")).disposition == "pairing"


@pytest.mark.requirement("ACC-1", "POL-4")
async def test_the_trust_of_a_group_opens_no_direct_chat(worlds: Worlds) -> None:
    rules = replace(OPEN, group_trust=Trust.MEMBER)
    async with worlds(
        ScriptedModel(lambda request: "hi"), change=intake(access={"test": rules})
    ) as world:
        await world.says("hello", user=STRANGER, chat_id="G", kind="group")
        assert (await world.says("psst", user=STRANGER)).disposition == "pairing"


@pytest.mark.requirement("ACC-2")
@pytest.mark.parametrize("form", ["{}", "/start {}", " {} ", "lower"])
async def test_the_one_time_code_makes_the_first_owner(worlds: Worlds, form: str) -> None:
    async with worlds(ScriptedModel(["at your service"]), change=_nobody()) as world:
        code = await _owner_code(world)
        text = code.lower() if form == "lower" else form.format(code)
        assert (await world.says(text, user="U-first")).disposition == "pairing"
        assert await world.sees(1) == ["Welcome, first. You are my owner now."]
        assert await trust_of(world, "U-first") is Trust.OWNER
        (entry,) = await audited(world, "owner.claimed")
        assert entry.data["account"] == "test:A1:U-first"
        await world.says("hello", user="U-first")
        assert (await world.sees(2))[1] == "at your service"


@pytest.mark.requirement("ACC-2")
async def test_the_code_works_once(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([]), change=_nobody()) as world:
        code = await _owner_code(world)
        claims = await asyncio.gather(
            world.says(code, user="U-first"), world.says(code, user="U-second")
        )
        assert [one.reason for one in claims] == ["claimed by the owner code", ""]
        assert await trust_of(world, "U-second") is None
        assert await world.database.write(pairing.new_owner_code, name="code") is None


@pytest.mark.requirement("ACC-2")
@pytest.mark.parametrize(
    "guess", ["GH-AAAAA-AAAAA", "GH-", "", "GH-AAAAA-AAAAA GH-BBBBB-BBBBB", "owner"]
)
async def test_a_guess_claims_nothing(worlds: Worlds, guess: str) -> None:
    async with worlds(ScriptedModel([]), change=_nobody()) as world:
        await _owner_code(world)
        said = await world.says(guess, user="U-first")
        assert said.disposition == "pairing"
        assert said.reason == ""
        assert await trust_of(world, "U-first") is None


@pytest.mark.requirement("ACC-2")
@pytest.mark.parametrize("policy", ["open", "allowlist"])
async def test_the_code_said_in_a_group_claims_nothing(worlds: Worlds, policy: str) -> None:
    rules = replace(OPEN, owners=frozenset(), group_policy=policy)
    change = intake(access={"test": rules})
    async with worlds(ScriptedModel(lambda request: "hm"), change=change) as world:
        code = await _owner_code(world)
        await world.says(code, user="U-first", chat_id="G", kind="group")
        assert await trust_of(world, "U-first") is None


@pytest.mark.requirement("ACC-2")
async def test_a_new_code_ends_the_old_one(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([]), change=_nobody()) as world:
        old = await _owner_code(world)
        new = await world.database.write(pairing.replace_owner_code, name="code")
        await world.says(old, user="U-first")
        assert await trust_of(world, "U-first") is None
        await world.says(new, user="U-first")
        assert await trust_of(world, "U-first") is Trust.OWNER


@pytest.mark.requirement("ACC-2", "MSG-2")
async def test_a_claim_that_is_delivered_again_is_no_message_to_the_model(worlds: Worlds) -> None:
    model = ScriptedModel(lambda request: "hm")
    async with worlds(model, change=_nobody()) as world:
        code = await _owner_code(world)
        await world.says(code, user="U-first", message_id="m-claim")
        again = await world.says(code, user="U-first", message_id="m-claim")
        assert again.disposition == "duplicate"


@pytest.mark.requirement("ACC-2")
async def test_a_member_who_has_the_code_becomes_the_owner(worlds: Worlds) -> None:
    rules = replace(OPEN, owners=frozenset(), allow_users=frozenset({MEMBER}))
    change = intake(access={"test": rules})
    async with worlds(ScriptedModel(lambda request: "hm"), change=change) as world:
        code = await _owner_code(world)
        await world.says("hello", user=MEMBER)
        await world.says(code, user=MEMBER)
        assert await trust_of(world, MEMBER) is Trust.OWNER


@pytest.mark.requirement("ACC-1", "ACC-2")
async def test_a_pairing_that_is_approved_late_takes_no_ownership_away(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([]), change=_nobody()) as world:
        owner_code = await _owner_code(world)
        await world.says("hi", user="U-first")
        code = await told(world)
        await world.says(owner_code, user="U-first")
        before = await world.database.read(_first)
        assert await world.database.read(people.pairings_pending) == []
        with pytest.raises(Conflict, match="approved"):
            await approve(world, code)
        # As where the settings made an owner of somebody who waits.
        late = replace(await world.database.read(lambda conn: _asked(conn, code)), code="LATE22")
        await world.database.write(lambda conn: people.add_pairing(conn, late), name="late")
        await approve(world, late.code)
        assert await world.database.read(_first) == before
        assert await trust_of(world, "U-first") is Trust.OWNER


@pytest.mark.requirement("ACC-1", "ACC-2")
async def test_who_is_let_in_as_an_owner_is_told_so(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([])) as world:
        await world.says("hi", user=STRANGER)
        code = await told(world)
        await world.database.write(
            lambda conn: access_requests.let_in(
                conn, code, by="per_owner", name="Ann", trust=Trust.OWNER
            ),
            name="let-in",
        )
        world.engine.parts.bus.publish(OUTBOX, {"channel": "test", "account": "A1"})
        assert "you are my owner now" in (await world.sees(2))[1]


@pytest.mark.requirement("ACC-1")
async def test_a_paired_guest_stays_a_guest(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([])) as world:
        await world.says("hi", user=STRANGER)
        await approve(world, await told(world), Trust.GUEST)
        await world.says("/plan", user=STRANGER)
        assert (await world.sees(2))[1] == "`/plan` is not open to guests."


def _asked(conn: Connection, code: str) -> Pairing:
    found = people.pairing(conn, code)
    assert found is not None
    return replace(found, state="pending")


def _nobody() -> Callable[[Setup], Setup]:
    return intake(access={"test": replace(OPEN, owners=frozenset())})


async def _owner_code(world: World) -> str:
    code = await world.database.write(pairing.new_owner_code, name="code")
    assert code is not None
    return code


def _first(conn: Connection) -> Speaker | None:
    found = people.find(conn, channel="test", account="A1", user_id="U-first")
    return found.speaker if found else None


async def _pass_an_hour(world: World, clock: FakeClock) -> None:
    clock.drain = None
    await clock.advance(3601.0)
