"""The real program: what it hands over at its end, and what its sandbox and secrets look like."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import Place, command, gateway, reaching
from tests.scenario.process.talk import conversation, finished, reply

TOKEN = "made-up-admin-token-0123456789"


@pytest.mark.requirement("OPS-10")
async def test_sigterm_leaves_no_lease_to_wait_for(tmp_path: Path, fail_after: FailAfter) -> None:
    place = Place(tmp_path)
    async with fail_after(60), gateway(place) as program:
        await program.url()
        assert _held(place) > 0
        program.process.terminate()
        assert await program.ended() == 0
    assert _held(place) == 0


@pytest.mark.requirement("POL-7")
async def test_a_secret_of_the_gateway_in_a_file_is_masked_for_model_page_and_database(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    place = Place(tmp_path, {"GATEHOUSE_HTTP__READ_ONLY_TOKEN": TOKEN})
    (place.workspace / "files").mkdir(parents=True)
    (place.workspace / "files/leak.txt").write_text(f"the token is {TOKEN}, keep it\n")
    async with fail_after(60), gateway(place) as program:
        async with conversation(await program.url()) as talk:
            sent = await talk.submit("read leak.txt")
            assert await finished(talk, sent.run_id) == "completed"
            assert "the token is" in reply(talk, sent.run_id)
            assert TOKEN not in reply(talk, sent.run_id)
        program.process.terminate()
        assert await program.ended() == 0
    kept = b"".join(file.read_bytes() for file in place.home.glob("gatehouse.db*"))
    assert b"the token is" in kept
    assert TOKEN.encode() not in kept


@pytest.mark.requirement("TOOL-5")
async def test_how_commands_are_confined_is_said_at_the_start_in_the_log_and_in_the_chat(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    place = Place(tmp_path, {"GATEHOUSE_TOOLS__SANDBOX": "none"})
    async with fail_after(60), gateway(place) as program:
        url = await program.url()
        assert '"sandbox": "none"' in await program.says("sandbox_chosen")
        assert any("Commands run in: none" in line for line in program.out)
        said = await command(reaching(place, url), "chat", "-m", "/status")
        assert "commands run in: none" in said.out


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    ("backend", "chosen"), [("landlock", "refused"), ("bubblewrap", "bubblewrap")]
)
async def test_the_canary_at_the_start_gets_the_folders_of_the_configuration(
    tmp_path: Path, fail_after: FailAfter, backend: str, chosen: str
) -> None:
    """What must stay hidden lies in a root: Landlock cannot list that folder, and is not used."""
    if shutil.which("bwrap") is None and backend == "bubblewrap":
        pytest.skip("bubblewrap is missing: install it (Debian: apt install bubblewrap)")
    place = Place(tmp_path, {"GATEHOUSE_WORKSPACE__PATH": str(tmp_path / "workspace")})
    place.configure(f'[tools]\nsandbox = "{backend}"\nroots = ["{place.home}"]\n')
    async with fail_after(60), gateway(place) as program:
        url = await program.url()
        assert f'"sandbox": "{chosen}"' in await program.says("sandbox_chosen")
        assert any(f"Commands run in: {chosen}." in line for line in program.out)
        said = await command(reaching(place, url), "chat", "-m", "/status")
        assert f"commands run in: {chosen}" in said.out
        if chosen == "refused":
            await program.says(
                "landlock was not taken: a folder that commands work in cannot be listed"
            )


def _held(place: Place) -> int:
    """Leases that have not run out, as another process would see them."""
    with closing(sqlite3.connect(place.home / "gatehouse.db")) as database:
        found = database.execute("SELECT count(*) FROM leases WHERE expires_ms > 0")
        return int(found.fetchone()[0])


@pytest.mark.requirement("POL-1", "CTX-2")
async def test_every_bound_that_was_asked_and_every_blocks_tokens_are_printed(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    place = Place(tmp_path)
    place.configure('[policy]\nallow = ["exec(ls:*)"]\ndeny = ["exec(rm:*)"]\n')
    async with fail_after(60), gateway(place) as program:
        there = reaching(place, await program.url())
        await command(there, "chat", "-m", "/plan")
        (session,) = json.loads((await command(there, "sessions", "list", "--json")).out)
        asked = ("policy", "explain", session["id"], "exec", '{"command": "rm x"}')
        explained = await command(there, *asked)
        prompt = await command(there, "context", session["id"])
    for said in (
        "deny rule",
        "exec(rm:*)",
        "plan mode runs commands that only read, and refuses rm",
        "permission mode",
    ):
        assert said in explained.out, said
    lines = [line.split() for line in prompt.out.splitlines()]
    tokens = {line[0]: int(line[1]) for line in lines if len(line) > 1 and line[1].isdecimal()}
    assert {"runtime", "AGENTS.md", "IDENTITY.md", "tools", "skills"} <= tokens.keys()
    assert all(tokens.values())
