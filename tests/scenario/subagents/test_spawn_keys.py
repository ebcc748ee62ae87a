"""A spawn that is sent again under its key: the same children, or a conflict (SUB-6)."""

import json
from pathlib import Path

import pytest

from runtime.sessions import runs
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.cast import Cast, got_to, played, spawn, tree
from tests.scenario.subagents.test_isolation import UNTRUSTED, upload

__all__ = ["dialect", "migrated_url", "schema_templates"]

KEYED = {"task": "Dive.", "id": "one", "mode": "background", "spawn_request_id": "dive-1"}


@pytest.fixture
def url(migrated_url: str) -> str:
    return migrated_url


@pytest.mark.requirement("SUB-6")
async def test_a_spawn_sent_again_is_the_same_children_also_after_a_restart(
    tmp_path: Path, url: str
) -> None:
    work, later = Gate(), Gate()
    turned = dict(reversed(KEYED.items()))
    cast = Cast(
        [
            Said(calls=(spawn(**KEYED), spawn(**turned))),
            "Sent.",
            Said(calls=(spawn(**KEYED),)),
            "Sent again.",
            Said(calls=(spawn(**KEYED),)),
            "Sent anew.",
            "Back.",
            Said(calls=(spawn(**KEYED),)),
            "There.",
        ],
        {"one": [Said("lost", before=work), Said("a pearl", before=later)]},
    )
    async with played(tmp_path, url, cast) as at:
        session = (await at.says("dive")).session_id
        await at.sees(1)
        await got_to(work)
        # What it would inherit now is something else: the mode of its parent changed.
        await at.says("/plan")
        await at.says("again")
        await at.sees(3)
        child = (await tree(at, session))["one"]
    async with played(tmp_path, url, cast) as at:
        await at.says("/edit", message_id="n1")
        await at.says("anew", message_id="n2")
        await at.sees(2)
        await got_to(later)
        later.open.set()
        await at.chat.until(lambda: "Back." in at.chat.texts())
        await at.says("and now?", message_id="n3")
        await at.chat.until(lambda: "There." in at.chat.texts())
        found = await tree(at, session)
        assert list(found) == ["one"]
        assert found["one"].session_id == child.session_id
    first, second = cast.told(1)
    reply = json.loads(first.splitlines()[0])
    assert reply == {
        "status": "accepted",
        "agent_id": "one",
        "session_id": child.session_id,
        "run_id": reply["run_id"],
    }
    assert str(reply["run_id"]).startswith("run_")
    for told in (second, *cast.told(3), *cast.told(5)):
        assert told.startswith("This request started them before")
        assert child.session_id in told
        assert "You will be told the results" in told
        assert json.loads(told.splitlines()[1]) == reply
    settled = cast.told(8)[0]
    assert "The subagent one (explore) completed after" in settled
    assert "a pearl" in settled


@pytest.mark.requirement("SUB-6")
async def test_the_same_key_with_other_arguments_is_a_conflict(tmp_path: Path, url: str) -> None:
    cast = Cast(
        [
            Said(calls=(spawn(**KEYED | {"mode": "await"}),)),
            Said(calls=(spawn(**KEYED | {"mode": "await", "task": "Dive deeper."}),)),
            Said(calls=(spawn(**KEYED | {"mode": "await", "id": "two"}),)),
            "No.",
        ],
        {"one": ["a pearl"]},
    )
    async with played(tmp_path, url, cast) as at:
        session = (await at.says("dive")).session_id
        assert await at.sees(1) == ["No."]
        assert list(await tree(at, session)) == ["one"]
    for place in (2, 3):
        said = cast.told(place)[0]
        assert said.startswith("Nothing was started:\n- spawn_request_id: dive-1 is the key of a")
        assert "other arguments" in said
        assert "it started one" in said
        assert "a pearl" not in said


@pytest.mark.requirement("SUB-6")
async def test_a_refused_spawn_leaves_its_key_free(tmp_path: Path, url: str) -> None:
    cast = Cast(
        [
            Said(calls=(spawn(task=" ", spawn_request_id="k"),)),
            Said(calls=(spawn(task="Dive.", id="one", spawn_request_id="k"),)),
            "Done.",
        ],
        {"one": ["a pearl"]},
    )
    async with played(tmp_path, url, cast) as at:
        await at.says("dive")
        assert await at.sees(1) == ["Done."]
    assert "a pearl" in cast.told(2)[0]


@pytest.mark.requirement("SUB-6", "SUB-9")
async def test_a_key_gives_a_guest_nothing_of_the_owner(tmp_path: Path, url: str) -> None:
    keyed = KEYED | {"mode": "await"}
    cast = Cast(
        [Said(calls=(spawn(**keyed),)), "Mine.", Said(calls=(spawn(**keyed),)), "No."],
        {"one": ["a pearl"]},
    )
    async with played(tmp_path, url, cast) as at:
        await at.says("dive", chat_id="G", kind="group")
        await at.sees(1, "G")
        await at.says("dive", chat_id="G", kind="group", user="U-guest")
        assert (await at.sees(2, "G"))[1] == "No."
    said = cast.told(3)[0]
    assert "for somebody else" in said
    assert "a pearl" not in said


@pytest.mark.requirement("SUB-6", "SUB-9")
async def test_a_repeated_spawn_carries_the_taint_of_its_children(tmp_path: Path, url: str) -> None:
    keyed = KEYED | {"mode": "await"}
    cast = Cast(
        [Said(calls=(spawn(**keyed),)), "Mine.", Said(calls=(spawn(**keyed),)), "Again."],
        {"one": [Said(calls=(UNTRUSTED,)), "a pearl"]},
    )
    async with played(tmp_path, url, cast) as at:
        upload(at)
        await at.says("dive")
        await at.sees(1)
        said = await at.says("again")
        await at.sees(2)
        run = await at.database.read(lambda conn: runs.get(conn, said.run_id or ""))
    assert "<untrusted" in cast.told(3)[0]
    assert run.tainted
