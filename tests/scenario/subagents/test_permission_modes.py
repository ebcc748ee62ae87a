"""A person who says that nothing is to be changed is heard by every subagent (POL-2, POL-5)."""

import json
from pathlib import Path

import pytest

from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.cast import Cast, ask, got_to, played, spawn
from tests.scenario.subagents.children import settled

__all__ = ["dialect", "migrated_url", "schema_templates"]

LOOK = ("list_dir", "{}")


def write(name: str) -> tuple[str, str]:
    return "write_file", json.dumps({"path": name, "content": "changed\n"})


@pytest.mark.requirement("POL-5", "POL-2")
@pytest.mark.parametrize("word", ["/plan", "/ask"])
async def test_the_mode_of_a_chat_reaches_all_agents_below_from_their_next_step(
    tmp_path: Path, migrated_url: str, word: str
) -> None:
    first, second = Gate(), Gate()
    mode = "plan" if word == "/plan" else "ask"
    cast = Cast(
        [
            Said(calls=(spawn(task="x", id="one", type="general", mode="background"),)),
            "Sent.",
            "Done.",
        ],
        {
            "one": [Said(calls=(spawn(task="x", id="two", type="general"),)), "a"],
            "two": [
                Said(calls=(LOOK,), before=first),
                Said(calls=(write("no.md"),)),
                Said(calls=(LOOK,), before=second),
                Said(calls=(write("yes.md"),)),
                "a",
            ],
        },
    )
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("go")
        await got_to(first)
        await at.says(word)
        first.open.set()
        await got_to(second)
        await at.says("/edit")
        second.open.set()
        await settled(at)
        assert not (at.workspace / "files/no.md").exists()
        assert (at.workspace / "files/yes.md").exists()
    (refused,) = cast.told(2, "two")
    assert f"mode: {mode} mode is read-only" in refused


@pytest.mark.requirement("POL-5", "SUB-4")
async def test_who_may_change_nothing_has_nothing_changed_by_an_agent_that_was_there(
    tmp_path: Path, migrated_url: str
) -> None:
    cast = Cast(
        [
            Said(calls=(spawn(task="x", id="one", type="general"),)),
            "Done.",
            Said(calls=(ask("message", agent="one", text="Write it."),)),
            "Told.",
            "Then.",
        ],
        {"one": ["a", Said(calls=(write("no.md"),)), "b"]},
    )
    async with played(tmp_path, migrated_url, cast) as at:
        await at.says("go")
        assert await at.sees(1) == ["Done."]
        await at.says("/plan")
        await at.says("write")
        await at.chat.until(lambda: "Told." in at.chat.texts())
        await settled(at)
        assert not (at.workspace / "files/no.md").exists()
    (refused,) = cast.told(2, "one")
    assert "mode: plan mode is read-only" in refused
