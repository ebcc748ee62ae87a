"""What a child shares with its parent: the record of files, and the grants of later (SUB-17)."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.clock import FakeClock
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.fakes.sandbox import FakeSandbox, FakeStdio
from tests.scenario.cards import card, cards
from tests.scenario.cast import Cast, got_to, played, spawn
from tests.scenario.engine import World, setup_at, world
from tests.scenario.subagents.children import settled

__all__ = ["dialect", "migrated_url", "schema_templates"]

CHANGED = "changed since it was last read in this session"
READ = ("read_file", json.dumps({"path": "plan.md"}))
WRITE = ("write_file", json.dumps({"path": "plan.md", "content": "the child's"}))
OURS = ("write_file", json.dumps({"path": "plan.md", "content": "the parent's"}))


def plan(path: Path) -> Path:
    return path / "workspace/files" / "plan.md"


def written(path: Path, text: str) -> Path:
    """Somebody else writes the plan."""
    file = plan(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize("isolation", [None, "full", "selective", "shared"])
async def test_a_child_knows_what_its_parent_had_read(
    tmp_path: Path, migrated_url: str, isolation: str | None
) -> None:
    """It does not write over a change that its parent has not seen either."""
    held = Gate()
    more = {} if isolation is None else {"isolation": isolation}
    cast = Cast(
        [
            Said(calls=(READ,)),
            Said(calls=(spawn(task="Write it.", id="one", type="general", **more),)),
            "Done.",
        ],
        {"one": [Said(calls=(WRITE,), before=held), "a"]},
    )
    written(tmp_path, "old")
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("Nothing of this is told to it.")
        await got_to(held)
        written(tmp_path, "somebody's")
        held.open.set()
        assert await at.sees(1) == ["Done."]
        found = (await settled(at))["one"]
    first = cast.requests["one"][0]
    assert "Nothing of this" not in cast.words(0, "one")
    assert {"write_file", "read_file"} <= {tool.name for tool in first.tools}
    assert found.isolation == (isolation or "full")
    assert CHANGED in cast.told(1, "one")[0]
    assert plan(tmp_path).read_text() == "somebody's"


@pytest.mark.requirement("SUB-17")
async def test_what_nobody_had_read_is_written(tmp_path: Path, migrated_url: str) -> None:
    held = Gate()
    cast = Cast(
        [Said(calls=(spawn(task="Write it.", id="one", type="general"),)), "Done."],
        {"one": [Said(calls=(WRITE,), before=held), "a"]},
    )
    written(tmp_path, "old")
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("go")
        await got_to(held)
        written(tmp_path, "somebody's")
        held.open.set()
        assert await at.sees(1) == ["Done."]
    assert plan(tmp_path).read_text() == "the child's"


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize("isolation", ["full", "selective", "shared"])
async def test_what_a_parent_reads_later_counts_for_a_child_that_shares(
    tmp_path: Path, migrated_url: str, isolation: str
) -> None:
    held = Gate()
    start = spawn(task="Write.", id="one", type="general", mode="background", isolation=isolation)
    cast = Cast(
        [Said(calls=(start,)), Said(calls=(READ,)), "Read.", "Done."],
        {"one": [Said(calls=(WRITE,), before=held), "a"]},
    )
    written(tmp_path, "old")
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("go")
        assert await at.sees(1) == ["Read."]
        await got_to(held)
        written(tmp_path, "somebody's")
        held.open.set()
        assert await at.sees(2) == ["Read.", "Done."]
    shares = isolation == "shared"
    assert (CHANGED in cast.told(1, "one")[0]) is shares
    assert plan(tmp_path).read_text() == ("somebody's" if shares else "the child's")


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize("isolation", ["full", "shared"])
@pytest.mark.parametrize("restarted", [False, True])
async def test_what_a_child_reads_counts_for_a_parent_that_shares(
    tmp_path: Path, migrated_url: str, isolation: str, restarted: bool
) -> None:
    """Also where another process goes on with the parent than the one that had the child."""
    held, last = Gate(), Gate()
    first = [
        Said(calls=(spawn(task="Read.", id="one", type="general", isolation=isolation),)),
        Said(calls=(OURS,), before=held),
    ]
    cast = Cast([*first, "Done."], {"one": [Said(calls=(READ,)), "a"]})
    again = Cast([Said(calls=(OURS,), before=last), "Done."])
    written(tmp_path, "old")
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("go")
        await got_to(held)
        written(tmp_path, "somebody's")
        if not restarted:
            held.open.set()
            assert await at.sees(1) == ["Done."]
    if restarted:
        async with played(tmp_path, migrated_url, again) as at:
            await got_to(last)
            last.open.set()
            assert await at.sees(1) == ["Done."]
    result = again.told(1)[0] if restarted else cast.told(2)[0]
    shares = isolation == "shared"
    assert (CHANGED in result) is shares
    assert plan(tmp_path).read_text() == ("somebody's" if shares else "the parent's")


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize("isolation", ["full", "shared"])
async def test_a_child_that_is_taken_up_elsewhere_still_knows_it(
    tmp_path: Path, migrated_url: str, isolation: str
) -> None:
    held, again = Gate(), Gate()
    start = spawn(task="Write it.", id="one", type="general", isolation=isolation)
    before = Cast(
        [Said(calls=(READ,)), Said(calls=(start,))], {"one": [Said(calls=(WRITE,), before=held)]}
    )
    after = Cast(["Done."], {"one": [Said(calls=(WRITE,), before=again), "a"]})
    written(tmp_path, "old")
    async with played(tmp_path, migrated_url, before) as at:
        await at.says("go")
        await got_to(held)
    written(tmp_path, "somebody's")
    async with played(tmp_path, migrated_url, after) as at:
        await got_to(again)
        again.open.set()
        assert await at.sees(1) == ["Done."]
    assert CHANGED in after.told(1, "one")[0]
    assert plan(tmp_path).read_text() == "somebody's"


async def nothing(_stdio: FakeStdio) -> int:
    return 0


@pytest.mark.requirement("SUB-17")
@pytest.mark.parametrize(
    ("dialect", "isolation", "restarted"),
    [
        *product(["sqlite"], ["full", "selective", "shared"], [False, True]),
        # Each isolation, and each way to go on.
        ("postgresql", "full", True),
        ("postgresql", "selective", False),
        ("postgresql", "shared", True),
    ],
)
async def test_what_a_parent_is_granted_later(
    tmp_path: Path, migrated_url: str, isolation: str, restarted: bool
) -> None:
    """A grandchild is reached as well, through a child that is; a card comes where none is."""
    command = ("exec", json.dumps({"command": "make x"}))
    look = ("list_files", "{}")
    held = Gate()
    makefile = tmp_path / "workspace/files/Makefile"
    makefile.parent.mkdir(parents=True)
    makefile.write_text("x:\n")

    def start(name: str) -> tuple[str, str]:
        mode = "background" if name == "one" else "await"
        return spawn(task="Do.", id=name, type="general", mode=mode, isolation=isolation)

    cast = Cast(
        [Said(calls=(start("one"),)), Said(calls=(command,)), "Granted.", "Done."],
        {
            "one": [Said(calls=(start("two"),)), "a"],
            "two": [Said(calls=(look,), before=held), Said(calls=(command,)), "b"],
        },
    )
    again = Cast(["Done."], {"one": ["a"], "two": cast.agents["two"]})
    setup = setup_at(
        tmp_path, migrated_url, ScriptedModels(ScriptedModel(cast)), alone="sqlite" in migrated_url
    )
    setup = replace(setup, sandbox=FakeSandbox(FakeClock(), {"make x": nothing}))
    async with world(setup) as at:
        await at.says("go")
        part = await card(at)
        await got_to(held)
        await at.presses(part.open_call_id, "session")
        await at.chat.until(lambda: "Granted." in at.chat.texts())
        if not restarted:
            held.open.set()
            await _ends(at, isolation, before=1)
            return
    held.open.set()
    async with world(replace(setup, models=ScriptedModels(ScriptedModel(again)))) as at:
        await _ends(at, isolation, before=0)


async def _ends(at: World, isolation: str, *, before: int) -> None:
    """The grandchild asks once more where nothing of the grant reaches it."""
    if isolation == "full":
        asked = await card(at, before + 1)
        await at.presses(asked.open_call_id, "once")
    await settled(at)
    await at.chat.until(lambda: "Done." in at.chat.texts())
    assert len(cards(at)) == before + (isolation == "full")
