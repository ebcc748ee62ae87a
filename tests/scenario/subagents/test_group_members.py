"""Two members of one group: what either says to a subagent of the other has their own rights, and
no words get another's (SUB-4, POL-4)."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select, update

from runtime.domain.errors import Forbidden, ModelRetry
from runtime.domain.people import Trust
from runtime.features.subagents import agent_rights
from runtime.features.subagents.agent_rights import LESS, NOT_THEIRS
from runtime.features.subagents.settings import ChildSettings
from runtime.ports.model import ModelRequest
from runtime.sessions import open_calls, runs
from runtime.sessions.tables import runs as run_rows
from runtime.store import Connection
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cast import Cast, after, ask, got_to, spawn, tree
from tests.scenario.conftest import intake
from tests.scenario.engine import OPEN, OWNER, World, setup_at, world
from tests.scenario.subagents.children import Script, name_of, settled, told

__all__ = ["dialect", "migrated_url", "schema_templates"]
pytestmark = pytest.mark.requirement("SUB-4", "POL-4")
ANN, BEN = "U-ann", "U-ben"
LISTS = ("list_dir", "{}")
BEGINS = Said(calls=(spawn(task="Look at a.", id="one", mode="background"),))
OFFERED = Said(calls=(("request_parent_clarification", json.dumps({"question": "Which?"})),))
OWN_RUN = "one: It reads this after its present work."


def group(
    path: Path, url: str, script: Script, retry_ms: int = 5_000
) -> AbstractAsyncContextManager[World]:
    """A gateway that knows two members."""
    models = ScriptedModels(ScriptedModel(script))
    setup = setup_at(path, url, models, alone=url.startswith("sqlite"))
    setup = replace(setup, children=ChildSettings(retry_ms=retry_ms))
    access = replace(OPEN, allow_users=frozenset({ANN, BEN}))
    return world(intake(access={"test": access})(setup))


async def says(at: World, user: str, text: str) -> str:
    """A word of a member in the group; the session that hears it."""
    said = await at.says(text, chat_id="G", kind="group", user=user)
    return said.session_id or ""


async def asked_by(at: World, session_id: str) -> Sequence[str]:
    """For whom each run of a session works, in order."""

    def read(conn: Connection) -> Sequence[str]:
        query = select(run_rows.c.id).where(run_rows.c.session_id == session_id)
        found = conn.execute(query.order_by(run_rows.c.seq)).scalars().all()
        return [runs.get(conn, one).speaker.user_id for one in found]

    return await at.database.read(read)


def cast(
    root: Sequence[Said | str], one: Sequence[Said | str], **more: Sequence[Said | str]
) -> Cast:
    agents: Mapping[str, Sequence[Said | str]] = {"one": one, **more}
    return Cast(root, agents)


@pytest.mark.parametrize("action", ["steer", "message"])
async def test_another_members_words_are_a_run_of_their_own(
    tmp_path: Path, migrated_url: str, action: str
) -> None:
    work = Gate()
    script = cast(
        [
            BEGINS,
            "It looks.",
            Said(calls=(ask(action, agent="one", text="From Ben."),)),
            "Told.",
            "All.",
        ],
        [Said(calls=(LISTS,), before=work), "a", "for Ben"],
    )
    async with group(tmp_path, migrated_url, script) as at:
        session = await says(at, ANN, "look")
        await at.sees(1)
        await got_to(work)
        assert await says(at, BEN, "tell it") == session
        await at.sees(2)
        child = (await tree(at, session))["one"].session_id
        work.open.set()
        assert (await at.sees(3))[2] == "All."
        assert await asked_by(at, child) == [ANN, BEN]
    assert script.told(3) == [OWN_RUN]
    assert "From Ben." not in script.words(1, "one")
    assert "From Ben." in script.words(2, "one")


async def test_another_members_words_join_no_run_that_waits(
    tmp_path: Path, migrated_url: str
) -> None:
    work = Gate()
    script = cast(
        [
            BEGINS,
            Said(calls=(ask("message", agent="one", text="Ann's own."),), before=after(work)),
            "It looks.",
            Said(calls=(ask("message", agent="one", text="From Ben."),)),
            "Told.",
            "All.",
        ],
        [Said("a", before=work), "b", "for Ben"],
    )
    async with group(tmp_path, migrated_url, script) as at:
        session = await says(at, ANN, "look")
        await at.sees(1)
        await says(at, BEN, "tell it")
        await at.sees(2)
        child = (await tree(at, session))["one"].session_id
        work.open.set()
        await at.sees(3)
        assert await asked_by(at, child) == [ANN, ANN, BEN]
    assert script.told(2) == [OWN_RUN]
    assert script.told(4) == [OWN_RUN]
    assert "From Ben." not in script.words(1, "one")


async def test_a_later_run_of_the_same_member_steers(tmp_path: Path, migrated_url: str) -> None:
    work = Gate()
    script = cast(
        [
            BEGINS,
            "It looks.",
            Said(calls=(ask("steer", agent="one", text="And b."),)),
            "Told.",
            "All.",
        ],
        [Said(calls=(LISTS,), before=work), "a and b"],
    )
    async with group(tmp_path, migrated_url, script) as at:
        await says(at, ANN, "look")
        await at.sees(1)
        await got_to(work)
        await says(at, ANN, "b too")
        await at.sees(2)
        work.open.set()
        assert (await at.sees(3))[2] == "All."
    assert script.told(3) == ["one: It hears this at its next step."]
    assert "And b." in script.words(1, "one")


@pytest.mark.requirement("AGT-4")
async def test_an_agent_hears_no_answer_of_another_member(
    tmp_path: Path, migrated_url: str
) -> None:
    heard: list[str] = []

    def script(request: ModelRequest) -> Said | str:
        text = told(request)
        if name_of(request):
            return OFFERED if request.step == 1 else f"Heard: {text}"
        if "clarification_needed" in text and "from Ben" not in text:
            return "Hm."
        if "from Ben" in text:
            calls = (ask("message", agent="one", text="the wrong one"), ask("decline", agent="one"))
            if request.step == 1:
                return Said(calls=calls)
            heard.append(text.rsplit("ToolMessage", 1)[-1])
            return "Told."
        return Said(calls=(spawn(task="x", id="one"),))

    async with group(tmp_path, migrated_url, script) as at:
        session = await says(at, ANN, "go")
        assert await at.sees(1) == ["Hm."]
        await says(at, BEN, "from Ben")
        assert (await at.sees(2))[1] == "Told."
        child = (await tree(at, session))["one"].session_id
        waits = await at.database.read(partial(open_calls.open_ones, session_id=child))
        assert [one.kind for one in waits] == ["clarification"]
    assert OWN_RUN in heard[0]
    assert "one waits for no answer of yours" in heard[0]


@pytest.mark.requirement("SUB-8")
async def test_a_result_joins_no_run_of_another_member(tmp_path: Path, migrated_url: str) -> None:
    work, other = Gate(), Gate()
    script = cast(
        [
            BEGINS,
            "It looks.",
            Said(calls=(LISTS,), before=other),
            "Hello, Ben.",
            "Ann's pearl.",
        ],
        [Said("a pearl", before=work)],
    )
    async with group(tmp_path, migrated_url, script) as at:
        session = await says(at, ANN, "look")
        await at.sees(1)
        await got_to(work)
        await says(at, BEN, "hello")
        await got_to(other)
        work.open.set()
        await settled(at)
        other.open.set()
        assert await at.sees(3) == ["It looks.", "Hello, Ben.", "Ann's pearl."]
        assert await asked_by(at, session) == [ANN, BEN, ANN]
    assert "a pearl" not in script.words(3)
    assert "a pearl" in script.words(4)


async def test_words_that_were_never_heard_wait_for_whoever_said_them(
    tmp_path: Path, migrated_url: str
) -> None:
    """The agent is stopped before it reads what Ben said, and Ann lets it go on."""
    work = Gate()
    script = cast(
        [
            BEGINS,
            "It looks.",
            Said(calls=(ask("message", agent="one", text="From Ben."),)),
            "Told.",
            Said(calls=(ask("stop", agent="one"), ask("wait", agent="one"))),
            Said(calls=(ask("message", agent="one", text="Now b."), ask("wait", agent="one"))),
            "Went on.",
            Said(calls=(ask("message", agent="one", text="And now?"), ask("wait", agent="one"))),
            "Went on again.",
            *["Heard of it."] * 3,
        ],
        [Said("never", before=work), "b", "for Ben"],
    )
    async with group(tmp_path, migrated_url, script) as at:
        await says(at, ANN, "look")
        await at.sees(1)
        await got_to(work)
        await says(at, BEN, "tell it")
        await at.sees(2)
        await says(at, ANN, "let it look at b instead")
        await at.chat.until(lambda: "Went on." in at.chat.texts())
        await says(at, BEN, "and?")
        await at.chat.until(lambda: "Went on again." in at.chat.texts())
    assert "Now b." in script.words(1, "one")
    assert "From Ben." not in script.words(1, "one")
    assert "From Ben." in script.words(2, "one")


@pytest.mark.requirement("SUB-24")
async def test_an_agent_that_never_began_keeps_its_task_whoever_lets_it_go_on(
    tmp_path: Path, migrated_url: str
) -> None:
    work = Gate()
    batch = [
        {"task": "Look at a.", "id": "one", "group": "g"},
        {"task": "Look at b.", "id": "two", "group": "g"},
    ]
    script = cast(
        [
            Said(calls=(spawn(mode="background", agents=batch),)),
            Said(calls=(ask("stop", agent="two"), ask("wait", agent="two")), before=after(work)),
            "One is stopped.",
            Said(calls=(ask("message", agent="two", text="Do look."),)),
            "Told.",
            *["Heard of it."] * 3,
        ],
        [Said("a", before=work)],
        two=["b"],
    )
    async with group(tmp_path, migrated_url, script) as at:
        await says(at, ANN, "look")
        await at.chat.until(lambda: "One is stopped." in at.chat.texts())
        await says(at, BEN, "do look")
        await at.chat.until(lambda: "Told." in at.chat.texts())
        work.open.set()
        await settled(at)
    assert "Look at b." in script.words(0, "two")
    assert "Do look." in script.words(0, "two")


@pytest.mark.requirement("SUB-22")
async def test_another_try_has_the_rights_of_who_spoke_last(
    tmp_path: Path, migrated_url: str
) -> None:
    work, away = Gate(), ModelRetry("529 overloaded", after_s=0)

    def script(request: ModelRequest) -> Said | str | ModelRetry:
        text = told(request)
        if name_of(request):
            if "From Ben." not in text:
                return Said("a", before=work)
            return "for Ben" if "An earlier attempt" in text else away
        if "for Ben" in text:
            return "All."
        if "tell it" in text:
            message = ask("message", agent="one", text="From Ben.")
            return "Told." if "reads this after" in text else Said(calls=(message,))
        return "It looks." if "accepted" in text else BEGINS

    async with group(tmp_path, migrated_url, script, retry_ms=0) as at:
        session = await says(at, ANN, "look")
        await at.sees(1)
        await got_to(work)
        await says(at, BEN, "tell it")
        await at.sees(2)
        child = (await tree(at, session))["one"].session_id
        work.open.set()
        await at.chat.until(lambda: "All." in at.chat.texts())
        assert await asked_by(at, child) == [ANN, BEN, BEN]


async def stopped(at: World, session: str, name: str = "one") -> bool:
    """Whether an agent is to end, or ended so."""
    one = (await tree(at, session))[name]
    return one.stop is not None or one.status == "cancelled"


@pytest.mark.requirement("SUB-19")
@pytest.mark.parametrize("user", [BEN, OWNER])
async def test_of_others_only_an_owner_stops_the_agent_of_a_member(
    tmp_path: Path, migrated_url: str, user: str
) -> None:
    work = Gate()
    script = cast(
        [BEGINS, "It looks.", Said(calls=(ask("stop", agent="one"),)), "Told.", "All."],
        [Said("a", before=work)],
    )
    async with group(tmp_path, migrated_url, script) as at:
        session = await says(at, ANN, "look")
        await at.sees(1)
        await got_to(work)
        await says(at, user, "stop it")
        assert (await at.sees(2))[1] == "Told."
        assert await stopped(at, session) is (user == OWNER)
        work.open.set()
        await at.sees(3)
    told_it = {BEN: NOT_THEIRS.format(name="one"), OWNER: "one is being stopped."}
    assert script.told(3) == [told_it[user]]


@pytest.mark.requirement("SUB-19")
async def test_a_later_run_of_the_same_member_stops_its_agent(
    tmp_path: Path, migrated_url: str
) -> None:
    work = Gate()
    script = cast(
        [BEGINS, "It looks.", Said(calls=(ask("stop", agent="one"),)), "Told.", "All."],
        [Said("never", before=work)],
    )
    async with group(tmp_path, migrated_url, script) as at:
        session = await says(at, ANN, "look")
        await at.sees(1)
        await got_to(work)
        await says(at, ANN, "stop it")
        await at.sees(3)
        assert (await tree(at, session))["one"].status == "cancelled"
    assert script.told(3) == ["one is being stopped."]


@pytest.mark.requirement("SUB-19")
@pytest.mark.parametrize("deep", [False, True])
async def test_a_member_ends_nothing_that_an_owner_asked_of_the_agent(
    tmp_path: Path, migrated_url: str, *, deep: bool
) -> None:
    """What the owner asked for is the agent's own work, or that of one below it."""
    first, work, below = Gate(), Gate(), Gate()
    spawns = Said(calls=(spawn(task="Dig.", id="two", mode="background"),))
    look = Said("a", before=first)
    script = cast(
        [
            BEGINS,
            "It looks.",
            "It looked.",
            Said(calls=(ask("message", agent="one", text="For the owner."),)),
            "Told.",
            Said(calls=(ask("stop", agent="one"),)),
            "No.",
            *["All."] * 2,
        ],
        [look, spawns, "sent", "dug"] if deep else [look, Said("b", before=work)],
        two=[Said("gold", before=below)],
    )
    async with group(tmp_path, migrated_url, script) as at:
        session = await says(at, ANN, "look")
        await at.sees(1)
        first.open.set()
        await at.sees(2)
        await says(at, OWNER, "and this")
        await at.sees(3)
        await got_to(below if deep else work)
        await says(at, ANN, "stop it")
        assert (await at.sees(4))[3] == "No."
        assert not await stopped(at, session)
        work.open.set()
        below.open.set()
        await settled(at)
    assert script.told(6) == [LESS.format(name="one")]


@pytest.mark.requirement("SUB-19")
async def test_an_agent_that_a_guests_run_started_is_theirs(
    tmp_path: Path, migrated_url: str
) -> None:
    """Guests start none by a tool; a run of theirs may have some from before they were guests."""
    work = Gate()
    script = cast([BEGINS, "It looks.", "All."], [Said("a", before=work)])
    async with group(tmp_path, migrated_url, script) as at:
        session = await says(at, ANN, "look")
        await at.sees(1)
        await got_to(work)
        one = (await tree(at, session))["one"]
        ann = (await at.database.read(partial(runs.get, run_id=one.run_id))).speaker
        guest = ann.model_copy(update={"trust": Trust.GUEST, "person_id": "per_once"})

        def lowered(conn: Connection) -> None:
            theirs = run_rows.c.session_id.in_([session, one.session_id])
            conn.execute(update(run_rows).where(theirs).values(speaker=guest.model_dump_json()))

        await at.database.write(lowered, name="lowered")
        # A guest is known by the account alone.
        again = guest.model_copy(update={"person_id": "per_again"})
        other = again.model_copy(update={"user_id": "U-other"})

        def look(conn: Connection) -> None:
            agent_rights.check_tell(conn, one, again)
            agent_rights.check_stop(conn, one, again)
            with pytest.raises(Forbidden, match="started for somebody else"):
                agent_rights.check_stop(conn, one, other)

        await at.database.read(look)
        work.open.set()
        await settled(at)


@pytest.mark.requirement("SUB-6")
async def test_a_key_gives_a_member_nothing_of_another(tmp_path: Path, migrated_url: str) -> None:
    keyed = Said(calls=(spawn(task="Look.", id="one", mode="await", spawn_request_id="look"),))
    script = cast([keyed, "Ann's.", keyed, "No."], ["a pearl"])
    async with group(tmp_path, migrated_url, script) as at:
        await says(at, ANN, "look")
        await at.sees(1, "G")
        await says(at, BEN, "look")
        assert (await at.sees(2, "G"))[1] == "No."
    (said,) = script.told(3)
    assert "for somebody else" in said
    assert "a pearl" not in said
