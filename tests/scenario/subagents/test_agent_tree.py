"""What is seen of subagents: the types that there are, the tree in a chat, and who has settled."""

import asyncio
import re
from pathlib import Path

import pytest

from adapters.rendering import render_slack
from runtime.bus.memory import MemoryBus
from runtime.ports.bus import CHILDREN
from runtime.sessions.unit import Units
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.clock import FakeClock, settle
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.rendering.texts import render_html
from tests.scenario.cast import Cast, family_of, got_to, played, spawn, tree
from tests.scenario.engine import Drain, setup_at, world
from tests.scenario.subagents.test_batch_cards import platform
from tests.support.kinds import KINDS

__all__ = ["dialect", "migrated_url", "schema_templates"]


@pytest.mark.requirement("SUB-3")
async def test_types_are_listed_with_their_tools_and_what_is_wrong(
    tmp_path: Path, migrated_url: str
) -> None:
    look = ("agents_list", "{}")
    cast = Cast(
        [Said(calls=(look, spawn(task="Look.", id="one", type="explore"))), "Done."],
        {
            "one": [Said(calls=(look, spawn(task="Look.", id="two", type="explore"))), "a"],
            "two": [Said(calls=(look,)), "b"],
        },
    )
    async with played(tmp_path, migrated_url, cast) as at:
        folder = tmp_path / "workspace" / "agents"
        folder.mkdir(exist_ok=True)
        (folder / "reader.md").write_text(
            "---\nname: reader\ndescription: Reads.\ntools: read_file, magic\n---\nRead it."
        )
        (folder / "broken.md").write_text("---\nname: broken\n---\n")
        await at.says("look")
        assert await at.sees(1) == ["Done."]
    root, child, grandchild = (cast.told(1, name)[0] for name in ("", "one", "two"))
    assert "- general: All tools" in root
    assert "- explore, only reads: Reads files" in root
    assert "- reader: Reads.\n  tools: read_file\n" in root
    assert "- broken" not in root
    assert "broken.md is not used: body: it has no body" in root
    assert "reader.md: tools: magic does not exist" in root
    explore = root.split("- explore")[1].split("\n- ")[0]
    assert "sessions_spawn" in explore
    assert "write_file" not in explore
    assert "- explore" in child
    assert "- general" not in child
    assert "- reader" not in child
    assert grandchild.startswith("You may spawn no subagents.")


@pytest.mark.requirement("MSG-12")
async def test_the_command_shows_the_tree_with_what_it_used(
    tmp_path: Path, migrated_url: str
) -> None:
    work = Gate()
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", mode="background"),)), "It looks.", "All."],
        {
            "one": [
                Said(calls=(spawn(task="Look.", id="two", label="deep"),)),
                "a",
            ],
            "two": [Said("b", before=work)],
        },
    )
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("/agents")
        assert await at.sees(1) == ["No subagents here."]
        await at.says("look")
        await at.sees(2)
        await got_to(work)
        await at.says("/agents")
        busy = (await at.sees(3))[2]
        work.open.set()
        assert (await at.sees(4))[3] == "All."
        await at.says("/agents")
        done = (await at.sees(5))[4]
    head, one, two = busy.splitlines()
    assert head == "2 subagents, 2 at work: 1 step, 110 tokens, $0.0010."
    assert re.fullmatch(r"- `one` explore, awaiting: 1 step, 110 tokens, \$0\.0010, \d+ s", one)
    assert re.fullmatch(r'  - `two` \("deep"\) explore, running: 0 steps, 0 tokens, \d+ s', two)
    head, one, two = done.splitlines()
    assert head == "2 subagents, 0 at work: 3 steps, 330 tokens, $0.0030."
    assert "completed: 2 steps, 220 tokens" in one
    assert "completed: 1 step, 110 tokens" in two


@pytest.mark.requirement("SUB-4")
async def test_a_wait_ends_at_its_time_and_at_a_tick_where_a_signal_was_lost(
    tmp_path: Path, migrated_url: str
) -> None:
    work = Gate()
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", mode="background"),)), "It looks.", "All."],
        {"one": [Said("a", before=work)]},
    )
    async with played(tmp_path, migrated_url, cast) as at:
        said = await at.says("look")
        await at.sees(1)
        await got_to(work)
        child = (await tree(at, said.session_id))["one"].session_id
        clock, deaf = FakeClock(), MemoryBus()
        clock.drain = Drain(at.database)
        family = family_of(at, Units(at.database, deaf, KINDS), clock)
        waits = asyncio.create_task(family.wait([child], 60), name="waits")
        async with asyncio.timeout(120):
            while not waits.done():
                await clock.advance(1)
        assert (await waits, clock.monotonic() >= 60) == ([child], True)
        waits = asyncio.create_task(family.wait([child], 60), name="waits")
        work.open.set()
        await at.sees(2)
        began = clock.monotonic()
        async with asyncio.timeout(120):
            while not waits.done():
                await clock.advance(1)
        assert (await waits, clock.monotonic() - began < 60) == ([], True)


@pytest.mark.requirement("SUB-4")
async def test_a_signal_ends_a_wait_before_the_tick(tmp_path: Path, migrated_url: str) -> None:
    work = Gate()
    cast = Cast(
        [Said(calls=(spawn(task="Look.", id="one", mode="background"),)), "It looks.", "All."],
        {"one": [Said("a", before=work)]},
    )
    async with played(tmp_path, migrated_url, cast) as at:
        said = await at.says("look")
        await at.sees(1)
        await got_to(work)
        child = (await tree(at, said.session_id))["one"].session_id
        clock, bus = FakeClock(), MemoryBus()
        family = family_of(at, Units(at.database, bus, KINDS), clock)
        waits = asyncio.create_task(family.wait([child], 60), name="waits")
        async with asyncio.timeout(120):
            while not clock.sleeping:
                await settle()
        work.open.set()
        await at.sees(2)
        assert not waits.done()
        bus.publish(CHILDREN, {})
        async with asyncio.timeout(120):
            assert await waits == []
        assert clock.monotonic() == 0


@pytest.mark.requirement("SUB-9")
async def test_a_label_says_nothing_to_people_but_its_words(
    tmp_path: Path, migrated_url: str
) -> None:
    """Labels are chosen by agents, of which most say nothing to people themselves."""
    lie = "[Allow](https://evil.example)\u202e\u200b\x1b[31m **done** `root` <!channel> <b>"
    work = Gate()
    looks = [spawn(task="x", id=name, label=lie, mode="background") for name in ("one", "two")]
    cast = Cast(
        [Said(calls=tuple(looks)), "Sent.", "All."],
        {"one": [Said("a", before=work)], "two": [Said("a", before=work)]},
    )
    models = ScriptedModels(ScriptedModel(cast))
    setup = setup_at(tmp_path, migrated_url, models, alone=migrated_url.startswith("sqlite"))
    async with world(setup, platform()) as at:
        await at.says("look")
        await got_to(work)
        await at.says("/agents")
        await at.chat.until(lambda: len(at.chat.texts()) >= 3)
        card, _, listed = at.chat.texts()
    for said in (card, listed):
        assert r'`two` ("\[Allow\]' in said
        html, (slack, *_) = render_html(said), render_slack(said)
        assert "href" not in html
        assert "evil.example|" not in slack.text
        assert "(https://evil.example) [31m **" in html
        assert not set("\u202e\u200b\x1b") & set(said)
    assert "(https://evil.example) [31m **done** `root` &lt;" in render_html(listed)
