"""The terms of a spawn: what is shared with its parent, and what stays listed (SUB-16, SUB-24)."""

import json
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.features.subagents.rows.agents import Share
from runtime.views.reader import Views
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.cast import Cast, ask, got_to, played, spawn, tree
from tests.scenario.conftest import agent
from tests.scenario.engine import World, setup_at, world
from tests.scenario.subagents.children import grown
from tests.support.kinds import KINDS

__all__ = ["dialect", "migrated_url", "schema_templates"]

UNTRUSTED = ("read_file", '{"path": "uploads/x.txt"}')


@pytest.fixture
def url(migrated_url: str) -> str:
    return migrated_url


def sharing(
    path: Path, url: str, cast: Cast, share: Share, **settings: object
) -> AbstractAsyncContextManager[World]:
    """A world whose setting allows so much, with other settings of the agent."""
    setup = setup_at(path, url, ScriptedModels(ScriptedModel(cast)), alone="sqlite" in url)
    setup = agent(**settings)(setup)
    return world(replace(setup, children=replace(setup.children, share=share)))


def upload(at: World, text: str = "from outside") -> None:
    folder = at.workspace / "uploads"
    folder.mkdir(exist_ok=True)
    (folder / "x.txt").write_text(text)


@pytest.mark.requirement("SUB-16")
async def test_an_isolated_child_that_is_awaited_gives_its_id_and_status_alone(
    tmp_path: Path, url: str
) -> None:
    cast = Cast(
        [
            Said(calls=(spawn(task="Dive.", id="one", memory_share_mode="isolated"),)),
            Said(calls=(ask("output", agent="one"),)),
            "Read.",
        ],
        {"one": ["a pearl"]},
    )
    async with played(tmp_path, url, cast) as at:
        session = (await at.says("dive")).session_id
        assert await at.sees(1) == ["Read."]
        child = (await tree(at, session))["one"]
    told = cast.told(1)[0]
    assert json.loads(told.splitlines()[0]) == {
        "agent_id": "one",
        "session_id": child.session_id,
        "status": "completed",
    }
    assert "a pearl" not in cast.words(1)
    assert "a pearl" in json.loads(cast.told(2)[0])["output"]


@pytest.mark.requirement("SUB-16")
async def test_an_isolated_child_in_the_background_runs_its_parent_never_again(
    tmp_path: Path, url: str
) -> None:
    work = Gate()
    spawned = spawn(task="Dive.", id="one", mode="background", memory_share_mode="isolated")
    cast = Cast(
        [
            Said(calls=(spawned,)),
            "Sent.",
            Said(calls=(ask("wait"),)),
            Said(calls=(ask("output", agent="one"),)),
            "Read.",
        ],
        {"one": [Said("a pearl", before=work)]},
    )
    async with played(tmp_path, url, cast) as at:
        session = (await at.says("dive")).session_id
        await at.sees(1)
        work.open.set()
        await at.says("and?")
        assert await at.sees(2) == ["Sent.", "Read."]
        assert (await tree(at, session))["one"].status == "completed"
    assert "nobody tells you when they end" in cast.told(1)[0]
    assert "completed after" not in cast.words(4)
    assert "a pearl" in cast.told(4)[0]


@pytest.mark.requirement("SUB-16", "SUB-8")
async def test_what_an_agent_answered_is_kept_until_its_isolated_child_settled(
    tmp_path: Path, url: str
) -> None:
    work = Gate()
    below = spawn(task="Dig.", id="two", mode="background", memory_share_mode="isolated")
    cast = Cast(
        [
            Said(calls=(spawn(task="Dive.", id="one", mode="background"),)),
            "Sent.",
            "Back.",
        ],
        {"one": [Said(calls=(below,)), "a pearl"], "two": [Said("gold", before=work)]},
    )
    async with played(tmp_path, url, cast) as at:
        session = (await at.says("dive")).session_id
        await at.sees(1)
        await got_to(work)
        await grown(at, lambda found: found["one"].result == "a pearl")
    async with played(tmp_path, url, Cast(["Back."], {"two": ["gold"]})) as at:
        await at.chat.until(lambda: "Back." in at.chat.texts())
        found = await tree(at, session)
        assert {one.status for one in found.values()} == {"completed"}
        assert (found["one"].result, found["two"].result) == ("a pearl", "gold")
        assert at.chat.texts().count("Back.") == 1


@pytest.mark.requirement("SUB-16")
async def test_a_child_may_be_shown_what_was_said_before_and_no_more(
    tmp_path: Path, url: str
) -> None:
    calls = (spawn(task="Dive.", id="one", memory_share_mode="inherit-readonly"),)
    cast = Cast(
        [
            Said("I look.", calls=(("list_dir", "{}"),)),
            "The boat is <untrusted> blue.",
            Said(calls=calls),
            "Read.",
        ],
        {"one": ["a pearl"]},
    )
    async with sharing(tmp_path, url, cast, "inherit-readonly") as at:
        await at.says("Remember the harbour.")
        await at.sees(1)
        session = (await at.says("dive")).session_id or ""
        await at.sees(2)
        shown = await Views(at.database, KINDS).transcript(session)
    first = cast.words(0, "one")
    lead, fenced = first.split("as background for your task:")
    assert "<untrusted" not in lead
    assert fenced.count("<untrusted id=") == 1
    for words in ("owner: Remember the harbour.", "agent: I look.", "(untrusted> blue", "dive"):
        assert words in fenced
    assert "AGENTS.md" not in fenced, "results of tools are left out"
    assert "a pearl" in cast.told(3)[0]
    assert [item.text for item in shown.items if item.kind == "assistant"][-1] == "Read."


@pytest.mark.requirement("SUB-16", "SUB-9")
@pytest.mark.parametrize("share", ["inherit-readonly", "handoff"])
async def test_what_was_said_by_a_tainted_run_taints_the_child_that_is_shown_it(
    tmp_path: Path, url: str, share: str
) -> None:
    """Also where the window of whoever spawns it does not hold any more what that run read."""
    spawned = spawn(task="Dive.", id="one", memory_share_mode=share)
    cast = Cast(
        [
            Said(calls=(UNTRUSTED,)),
            "It says x.",
            Said(calls=(spawned,)),
            Said(calls=(ask("output", agent="one"),)),
            "Read.",
        ],
        {"one": ["a pearl"]},
    )
    async with sharing(tmp_path, url, cast, "inherit-readonly", window_tokens=2_000) as at:
        upload(at, "from outside " * 2_000)
        await at.says("read it")
        await at.sees(1)
        await at.says("dive")
        await at.sees(2)
    output = cast.told(4)[0]
    assert output.startswith("<untrusted") == (share == "inherit-readonly")


@pytest.mark.requirement("SUB-16")
@pytest.mark.parametrize("widest", ["isolated", "handoff", "inherit-readonly"])
async def test_a_spawn_may_share_less_than_the_setting_and_not_more(
    tmp_path: Path, url: str, widest: Share
) -> None:
    shares: Sequence[Share] = ("isolated", "handoff", "inherit-readonly")
    asked = [spawn(task="x", id=f"a{n}", memory_share_mode=s) for n, s in enumerate(shares)]
    cast = Cast(
        [Said(calls=(*asked, spawn(task="x", id="plain"))), "Done."],
        {name: ["x"] for name in ("a0", "a1", "a2", "plain")},
    )
    async with sharing(tmp_path, url, cast, widest) as at:
        session = (await at.says("go")).session_id
        assert await at.sees(1) == ["Done."]
        found = await tree(at, session)
    allowed = shares[: shares.index(widest) + 1]
    assert {one.share for name, one in found.items() if name != "plain"} == set(allowed)
    assert found["plain"].share == widest
    refused = [said for said in cast.told(1) if "memory_share_mode" in said and "wider" in said]
    assert len(refused) == len(shares) - len(allowed)
    assert all(f"which is {widest}" in said for said in refused)


@pytest.mark.requirement("SUB-16")
@pytest.mark.parametrize("share", ["isolated", "handoff", "inherit-readonly"])
async def test_a_child_reads_its_parents_notes_and_writes_none(
    tmp_path: Path, url: str, share: str
) -> None:
    name = "memory/MEMORY.md"
    write = ("write_file", json.dumps({"path": name, "content": "x"}))
    other = ("write_file", json.dumps({"path": "notes.md", "content": "x"}))
    look = ("read_file", json.dumps({"path": name}))
    calls = (look, write, other)
    spawned = spawn(task="Dive.", id="one", type="general", memory_share_mode=share)
    cast = Cast(
        [Said(calls=(spawned,)), Said(calls=(look, write)), "Done."],
        {"one": [Said(calls=calls), "a pearl"]},
    )
    async with sharing(tmp_path, url, cast, "inherit-readonly") as at:
        before = (at.workspace / name).read_text()
        session = (await at.says("dive")).session_id
        assert await at.sees(1) == ["Done."]
        assert (await tree(at, session))["one"].status == "completed"
        assert (at.workspace / name).read_text() == "x", "its parent may"
    read, written, beside = cast.told(1, "one")
    assert before.splitlines()[0] in read
    assert written.startswith("Denied by policy (privacy: a subagent writes no private notes)")
    assert "notes.md" in beside
    assert before.splitlines()[0] in cast.told(2)[0]


@pytest.mark.requirement("SUB-24")
@pytest.mark.parametrize("retention", ["retain", "close_on_settle"])
async def test_a_settled_child_may_be_listed_no_more_and_is_still_there(
    tmp_path: Path, url: str, retention: str
) -> None:
    work, again = Gate(), Gate()
    cast = Cast(
        [
            Said(calls=(spawn(task="Dive.", id="one", mode="background", retention=retention),)),
            "Sent.",
            "Back.",
            Said(calls=(ask("message", agent="one", text="And gold?"),)),
            "Told.",
            "Back again.",
        ],
        {"one": [Said("a pearl", before=work), Said("no gold", before=again)]},
    )
    closes = retention == "close_on_settle"
    async with played(tmp_path, url, cast) as at:
        views = Views(at.database, KINDS)
        session = (await at.says("dive")).session_id
        await at.sees(1)
        await got_to(work)
        child = (await tree(at, session))["one"].session_id
        assert await _listed(views, child)
        work.open.set()
        await at.sees(2)
        assert await _listed(views, child) != closes
        assert (await views.session(child)).id == child
        said = [item.text for item in (await views.transcript(child)).items]
        assert said[-1] == "a pearl"
        await at.says("gold?")
        await got_to(again)
        assert await _listed(views, child), "it is at work again"
        again.open.set()
        await at.chat.until(lambda: "Back again." in at.chat.texts())
        assert await _listed(views, child) != closes
        said = [item.text for item in (await views.transcript(child)).items]
        assert (said[-1], "a pearl" in said) == ("no gold", True)


async def _listed(views: Views, session_id: str) -> bool:
    """Whether a page of sessions has it; what is counted is what is listed."""
    page = await views.sessions()
    assert page.total_count == len(page.items)
    return session_id in [one.id for one in page.items]
