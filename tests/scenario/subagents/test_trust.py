"""What children bring back gives nobody rights, and goes nowhere else (SUB-8, SUB-9, POL-4)."""

from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import select

from runtime.features.subagents import agent_messages
from runtime.features.subagents.agent_messages import Word
from runtime.ports.model import ModelRequest
from runtime.sessions import runs
from runtime.sessions.runs import Run
from runtime.sessions.tables import runs as run_rows
from runtime.store import Connection
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.cast import Cast, ask, got_to, played
from tests.scenario.cast import spawn as spawning
from tests.scenario.engine import World
from tests.scenario.subagents.children import engine, name_of, settled, spawn, told, tree

__all__ = ["dialect", "migrated_url", "schema_templates"]


@pytest.mark.requirement("SUB-8")
async def test_a_result_joins_no_run_of_somebody_trusted_otherwise(
    tmp_path: Path, migrated_url: str
) -> None:
    """The owner's child settles while a guest's run of the same group is at work."""
    child, guest = Gate(), Gate()

    def script(request: ModelRequest) -> Said | str:
        text = told(request)
        if name_of(request):
            return Said("a pearl", before=child)
        if "from the guest" in text.rsplit("UserMessage", 1)[-1] and "a pearl" not in text:
            return Said("Hello, guest.", before=guest)
        if "a pearl" in text:
            return "The owner's pearl."
        if "accepted" in text:
            return "Sent."
        return spawn(mode="background", agents=[{"task": "dive", "id": "diver"}])

    async with engine(tmp_path, migrated_url, script) as at:
        await at.says("dive", chat_id="G1", kind="group")
        assert await at.sees(1) == ["Sent."]
        await child.reached.wait()
        await at.says("hello, from the guest", user="U-guest", chat_id="G1", kind="group")
        await guest.reached.wait()
        child.open.set()
        await settled(at)
        guest.open.set()
        assert await at.sees(3) == ["Sent.", "Hello, guest.", "The owner's pearl."]


@pytest.mark.requirement("SUB-9")
async def test_a_guest_starts_no_subagents(tmp_path: Path, migrated_url: str) -> None:
    def script(request: ModelRequest) -> Said | str:
        if "may spawn: none" in told(request):
            return "I may not."
        return spawn(task="everything")

    async with engine(tmp_path, migrated_url, script) as at:
        await at.says("go", user="U-guest", chat_id="G1", kind="group")
        assert await at.sees(1) == ["I may not."]
        assert await tree(at) == {}


@pytest.mark.requirement("SUB-19")
async def test_a_new_conversation_ends_the_children_of_the_old_one(
    tmp_path: Path, migrated_url: str
) -> None:
    gate = Gate()

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return Said("never", before=gate)
        return "Sent." if "accepted" in told(request) else spawn(task="x", mode="background")

    async with engine(tmp_path, migrated_url, script) as at:
        await at.says("go")
        assert await at.sees(1) == ["Sent."]
        await gate.reached.wait()
        await at.says("/new")
        assert {one.status for one in (await settled(at)).values()} == {"cancelled"}
        assert all("never" not in text for text in at.chat.texts())


READS = Said(calls=(("read_file", '{"path": "uploads/x.txt"}'),))


def upload(at: World) -> None:
    """A file of somebody else."""
    folder = at.workspace / "uploads"
    folder.mkdir(exist_ok=True)
    (folder / "x.txt").write_text("from outside")


async def tainted_runs(at: World, name: str) -> list[bool]:
    """Which runs of an agent have read something untrusted, in order."""
    session_id = (await tree(at))[name].session_id

    def read(conn: Connection) -> list[Run]:
        query = select(run_rows.c.id).where(run_rows.c.session_id == session_id)
        return [runs.get(conn, one) for one in conn.execute(query.order_by("seq")).scalars()]

    return [run.tainted for run in await at.database.read(read)]


@pytest.mark.requirement("POL-6", "SUB-9")
async def test_a_task_carries_the_taint_of_what_an_earlier_run_read(
    tmp_path: Path, migrated_url: str
) -> None:
    """The window of the run that spawns holds what the run before it was given."""
    gate = Gate()
    cast = Cast(
        [
            READS,
            "Read.",
            Said(calls=(spawning(task="Do as it says.", id="one"),)),
            "Done.",
            Said("And?", before=gate),
        ],
        {"one": ["a pearl", "gold"]},
    )
    async with played(tmp_path, migrated_url, cast) as at:
        upload(at)
        await at.says("read it")
        await at.sees(1)
        await at.says("go")
        assert await at.sees(2) == ["Read.", "Done."]
        assert await tainted_runs(at, "one") == [True]
        # Its task is in the window of its later runs too, whoever lets it go on.
        third = await at.says("and?")
        await got_to(gate)
        one = (await tree(at))["one"]
        speaker = third.run_id or ""
        clean = partial(runs.change, run_id=speaker, values={"tainted": False})
        await at.database.write(clean, name="clean")
        word = Word(one.session_id, speaker, "c1", "root", "And now?")
        told_it = partial(agent_messages.tell, word=word)
        assert await at.engine.units.run(told_it, name="tell") == "continued"
        await settled(at)
        gate.open.set()
        assert await tainted_runs(at, "one") == [True, True]


@pytest.mark.requirement("POL-6", "SUB-9")
async def test_what_an_agent_is_told_carries_the_taint_of_what_an_earlier_run_read(
    tmp_path: Path, migrated_url: str
) -> None:
    cast = Cast(
        [
            Said(calls=(spawning(task="Dive.", id="one"),)),
            "Dived.",
            READS,
            "Read.",
            Said(calls=(ask("message", agent="one", text="Do as it says."),)),
            "Told.",
        ],
        {"one": ["a pearl", "gold"]},
    )
    async with played(tmp_path, migrated_url, cast) as at:
        upload(at)
        for place, text in enumerate(("dive", "read it", "tell it"), start=1):
            await at.says(text)
            await at.sees(place)
        assert await tainted_runs(at, "one") == [False, True]
