"""Personas as people meet them: chosen in a chat, held through edits and restarts (CTX-11)."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select

from runtime.ports.model import ModelRequest
from runtime.sessions import sessions
from runtime.sessions.sessions import Bound
from runtime.sessions.tables import personas
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said, ScriptedModel
from tests.scenario.cards import GUEST, MEMBER
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OPEN, OWNER, World
from tests.scenario.subagents.children import engine, name_of, settled, spawn, told
from tests.support import audit_log

__all__ = ["dialect", "migrated_url", "schema_templates"]

ACCESS = intake(
    access={"test": replace(OPEN, dm_policy="open", allow_users=frozenset({MEMBER}))},
)
pytestmark = pytest.mark.requirement("CTX-11")


def write(workspace: Path, name: str, **files: str) -> None:
    """The files of a persona; a key is a file's name without its end."""
    folder = workspace / "personas" / name
    folder.mkdir(parents=True, exist_ok=True)
    for key, text in files.items():
        (folder / f"{key}.md").write_text(text)


async def bound(world: World, session_id: str | None) -> Bound | None:
    found = await world.database.read(lambda conn: sessions.get(conn, session_id or ""))
    return found.persona


async def test_a_session_keeps_the_persona_as_it_was_when_it_was_chosen(worlds: Worlds) -> None:
    model = ScriptedModel(["one", "two", "three", "four", "five"])
    async with worlds(model) as world:
        (world.workspace / "SOUL.md").write_text("The workspace's soul.")
        (world.workspace / "AGENTS.md").write_text("The workspace's rules.")
        write(world.workspace, "pirate", SOUL="Speak like a pirate.")
        await world.says("hi")
        await world.sees(1)
        accepted = await world.says("/persona pirate")
        answer = (await world.sees(2))[1]
        assert answer == (
            "From the next message on I am pirate here. I use these files as they are now: SOUL.md."
        )
        await world.says("and now?")
        await world.sees(3)
        write(world.workspace, "pirate", SOUL="Speak like a parrot.", AGENTS="Repeat.")
        (world.workspace / "SOUL.md").write_text("Another soul of the workspace.")
        await world.says("and after the edit?")
        await world.sees(4)
        shutil.rmtree(world.workspace / "personas")
    async with worlds(model) as world:
        await world.says("and after a restart, without its folder?", message_id="r1")
        await world.sees(1)
        assert (await bound(world, accepted.session_id)).name == "pirate"
        await world.says("/persona off", message_id="r2")
        await world.says("and without?", message_id="r3")
        assert (await world.sees(3))[1:] == [
            "I use the workspace's own identity files again.",
            "five",
        ]
        assert await bound(world, accepted.session_id) is None
    before, *during, after = (request.system for request in model.requests)
    assert "The workspace's soul." in before
    assert "Another soul of the workspace." in after
    assert "The workspace's rules." in after
    assert len(set(during)) == 1
    assert "Speak like a pirate." in during[0]
    assert "Persona: pirate." in during[0]
    assert "The workspace's" not in during[0], "what the persona leaves out is left out"


async def test_another_session_and_its_prompt_are_not_touched(worlds: Worlds) -> None:
    model = ScriptedModel(["one", "two"])
    async with worlds(model) as world:
        write(world.workspace, "pirate", SOUL="Speak like a pirate.")
        await world.says("/persona pirate", chat_id="D-1")
        await world.says("hi", chat_id="D-2")
        await world.sees(1, "D-2")
        await world.says("hi", chat_id="D-1")
        await world.sees(2, "D-1")
    assert ["pirate" in request.system for request in model.requests] == [False, True]


async def test_the_same_files_are_kept_once_and_a_new_text_beside_them(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([])) as world:
        write(world.workspace, "pirate", SOUL="Speak like a pirate.")
        write(world.workspace, "corsair", SOUL="Speak like a pirate.")
        ids = []
        for chat, name in (("D-1", "pirate"), ("D-2", "corsair")):
            ids.append((await world.says(f"/persona {name}", chat_id=chat)).session_id)
        one, two = [await bound(world, session_id) for session_id in ids]
        assert (one.name, two.name) == ("pirate", "corsair")
        assert one.digest == two.digest
        assert await world.database.read(kept) == 1
        write(world.workspace, "pirate", SOUL="Speak like a captain.")
        await world.says("/persona pirate", chat_id="D-1")
        assert (await bound(world, ids[0])).digest != one.digest
        assert (await bound(world, ids[1])).digest == one.digest
        assert await world.database.read(kept) == 2


def kept(conn: Connection) -> int:
    return conn.execute(select(func.count()).select_from(personas)).scalar_one()


async def test_a_busy_session_keeps_its_persona_and_says_what_to_do(worlds: Worlds) -> None:
    gate = Gate()
    model = ScriptedModel([Said("one", before=gate), "two"])
    async with worlds(model) as world:
        write(world.workspace, "pirate", SOUL="Speak like a pirate.")
        said = await world.says("hi")
        await gate.reached.wait()
        for word in ("/persona pirate", "/persona off"):
            await world.says(word)
        refused = (
            "The persona changes only while the session is idle, and it is running: "
            "wait until that is over or stop it, then ask again."
        )
        assert await world.sees(2) == [refused, refused]
        assert await bound(world, said.session_id) is None
        gate.open.set()
        await world.sees(3)
        await world.says("/persona pirate")
        assert (await world.sees(4))[3].startswith("From the next message on I am pirate")


@pytest.mark.parametrize(
    ("word", "answer"),
    [
        ("/persona", "No persona is chosen. I use the workspace's own files. I can be: pirate."),
        ("/persona ..", "'..' cannot be chosen: must be the name of a folder in personas/"),
        ("/persona sailor", "'sailor' cannot be chosen: there is no personas/sailor/"),
        ("/persona pirate captain", "'pirate captain' cannot be chosen: must be the name"),
        ("/persona off", "I use the workspace's own identity files again"),
    ],
)
async def test_the_word_says_what_there_is_and_what_is_wrong(
    worlds: Worlds, word: str, answer: str
) -> None:
    async with worlds(ScriptedModel([])) as world:
        write(world.workspace, "pirate", SOUL="Speak like a pirate.")
        said = await world.says(word)
        assert (await world.sees(1))[0].startswith(answer)
        assert await bound(world, said.session_id) is None
        await world.says("/persona pirate")
        await world.says("/persona")
        assert (await world.sees(3))[2].startswith("The persona is pirate.")


async def test_only_an_owner_chooses_and_it_is_in_the_audit_log(worlds: Worlds) -> None:
    async with worlds(ScriptedModel([]), change=ACCESS) as world:
        write(world.workspace, "pirate", SOUL="Speak like a pirate.")
        for user, whom in ((MEMBER, "members"), (GUEST, "guests")):
            said = await world.says("/persona pirate", user=user)
            answers = await world.sees(1, f"D-{user}")
            assert answers == [f"`/persona` is not open to {whom}."]
            assert await bound(world, said.session_id) is None
        said = await world.says("/persona pirate", user=OWNER)
        rows = await world.database.read(audit_log.entries)
        (row,) = [one for one in rows if one.action == "session.changed"]
        now = await bound(world, said.session_id)
        assert (row.session_id, row.data) == (
            said.session_id,
            {"persona": "pirate", "persona_digest": now.digest},
        )


@pytest.mark.requirement("CTX-6")
@pytest.mark.parametrize(
    ("kind", "user", "seen"),
    [
        ("direct", OWNER, True),
        ("direct", MEMBER, True),
        ("direct", GUEST, False),
        ("group", OWNER, False),
        ("topic", OWNER, False),
    ],
)
async def test_a_personas_private_file_is_told_as_little_as_the_workspaces(
    worlds: Worlds, kind: str, user: str, seen: bool
) -> None:
    model = ScriptedModel(["hello"])
    async with worlds(model, change=ACCESS) as world:
        write(world.workspace, "pirate", SOUL="Speak like a pirate.", USER="Ann hides her gold.")
        (world.workspace / "USER.md").write_text("The workspace's private words.")
        await world.says("/persona pirate", kind=kind, chat_id="P")
        await world.says("hi", user=user, kind=kind, chat_id="P")
        await world.sees(2, "P")
    (request,) = model.requests
    assert "Speak like a pirate." in request.system
    assert ("Ann hides her gold." in request.system) is seen
    assert "The workspace's private words." not in request.system


@pytest.mark.requirement("SUB-18")
async def test_children_have_their_parents_persona_as_it_was_at_their_spawn(
    tmp_path: Path, migrated_url: str
) -> None:
    """A child at work, and one that it starts later, stay with what it was given; the next child
    of the parent has what the parent has then."""
    gate = Gate()
    systems: dict[str, list[str]] = {}

    def script(request: ModelRequest) -> Said | str:
        name, text = name_of(request), told(request)
        systems.setdefault(name, []).append(request.system)
        if name == "first":
            if "a grain" in text:
                return "sand"
            return Said("", calls=spawn(task="dig", id="deep").calls, before=gate)
        if name:
            return "a grain" if name == "deep" else "a stone"
        if "and the hills" in text:
            return "A stone." if "a stone" in text else spawn(task="the hills", id="second")
        if "accepted" in text:
            return "On its way."
        return spawn(task="the sea", id="first", mode="background")

    async with engine(tmp_path, migrated_url, script) as at:
        write(at.workspace, "pirate", SOUL="Speak like a pirate.")
        write(at.workspace, "sailor", SOUL="Speak like a sailor.")
        await at.says("/persona pirate")
        await at.says("what is there?")
        await at.sees(2)
        await gate.reached.wait()
        write(at.workspace, "pirate", SOUL="Speak like a parrot.")
        await at.says("/persona sailor")
        assert (await at.sees(3))[2].startswith("From the next message on I am sailor")
        await at.says("and the hills?")
        await at.chat.until(lambda: "A stone." in at.chat.texts())
        gate.open.set()
        agents = await settled(at)
        assert {name: one.status for name, one in agents.items()} == dict.fromkeys(
            ("first", "deep", "second"), "completed"
        )
        of = {name: await bound(at, one.session_id) for name, one in agents.items()}
        assert of["first"] == of["deep"]
        assert (of["first"].name, of["second"].name) == ("pirate", "sailor")
    for name in ("first", "deep"):
        assert all("Speak like a pirate." in system for system in systems[name])
    assert len(systems["first"]) == 2, "one step after the parent's change"
    assert all("Speak like a sailor." in system for system in systems["second"])
