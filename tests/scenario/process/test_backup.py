"""Backups with the real program: made while people talk, checked, and put back."""

import json
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.scenario.process.program import Place, command, gateway, reaching
from tests.scenario.process.talk import conversation, finished
from tests.unit.backup.support import members


async def _said(url: str) -> list[str]:
    async with conversation(url) as talk:
        await talk.refresh()
        return [one.text for one in talk.entries if one.kind == "user"]


async def _say(url: str, text: str) -> None:
    async with conversation(url) as talk:
        sent = await talk.submit(text)
        assert await finished(talk, sent.run_id) == "completed"


async def _round_trip(place: Place) -> None:
    async with gateway(place) as program:
        url = await program.url()
        await _say(url, "hello before the backup")
        (place.workspace / "files/plan.md").write_text("the plan of then")
        made = await command(place, "backup", "create", "--json")
        assert made.code == 0, made.err
        file = json.loads(made.out)["file"]
        await _say(url, "hello after the backup")
        (place.workspace / "files/plan.md").write_text("the plan of now")
        refused = await command(place, "backup", "restore", "--force", file)
        assert refused.code == 1
        assert "Traceback" not in refused.err
        assert ("process" in refused.err) or ("replica" in refused.err)
        program.process.terminate()
        assert await program.ended() == 0
    checked = await command(place, "backup", "verify", file)
    assert checked.code == 0, checked.err
    assert "is complete" in checked.out
    careful = await command(place, "backup", "restore", file)
    assert careful.code == 1
    assert "--force" in careful.err
    done = await command(place, "backup", "restore", "--force", file, "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert (told["messages_held_back"], told["unfinished_runs"]) == (0, 0)
    assert told["database_kept"]
    assert (place.workspace / "files/plan.md").read_text() == "the plan of then"
    assert (Path(told["workspace_kept"]) / "files/plan.md").read_text() == "the plan of now"
    async with gateway(place) as program:
        url = await program.url()
        assert await _said(url) == ["hello before the backup"]
        await _say(url, "and on we go")


@pytest.mark.requirement("OPS-6")
async def test_a_backup_made_while_running_brings_the_conversation_back(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(120):
        await _round_trip(place)


@pytest.mark.requirement("OPS-6")
async def test_the_same_on_postgresql(place: Place, fail_after: FailAfter) -> None:
    server = postgres_server()
    name = await server.create()
    place.variables["GATEHOUSE_DATABASE__URL"] = server.url(name)
    try:
        async with fail_after(120):
            await _round_trip(place)
    finally:
        await server.drop(name)


@pytest.mark.requirement("OPS-6")
async def test_without_pg_dump_it_says_what_to_install(place: Place, fail_after: FailAfter) -> None:
    server = postgres_server()
    name = await server.create()
    place.variables["GATEHOUSE_DATABASE__URL"] = server.url(name)
    try:
        async with fail_after(60):
            assert (await command(place, "migrate")).code == 0
            place.variables["PATH"] = str(place.path / "empty")
            ended = await command(place, "backup", "create")
        assert ended.code == 1
        assert "pg_dump is not installed" in ended.err
        assert "postgresql-client" in ended.err
        assert not any((place.home / "backups").iterdir())
    finally:
        await server.drop(name)


@pytest.mark.requirement("OPS-2", "OPS-6")
async def test_exit_codes_and_words_for_what_cannot_be(place: Place, fail_after: FailAfter) -> None:
    (place.path / "notes.txt").write_text("no backup")
    async with fail_after(60):
        nothing = await command(place, "backup", "create")
        missing = await command(place, "backup", "verify", "nowhere.tar.gz")
        wrong = await command(place, "backup", "verify", "notes.txt")
        folder = await command(place, "backup", "restore", ".")
        usage = await command(place, "backup", "verify")
    assert [one.code for one in (nothing, missing, wrong, folder, usage)] == [1, 1, 1, 1, 2]
    assert "no database" in nothing.err
    assert "nowhere.tar.gz" in missing.err
    assert "Gatehouse made" in wrong.err
    for one in (nothing, missing, wrong, folder):
        assert "Traceback" not in one.err


@pytest.mark.requirement("OPS-6")
async def test_no_token_of_the_settings_is_in_a_backup(place: Place, fail_after: FailAfter) -> None:
    token = "made-up-admin-token-0123456789"
    place.configure('timezone = "UTC"\n')
    secrets = place.home / "secrets.toml"
    # The operator's own token of the tests stands in the environment, above this file.
    secrets.write_text(f'[http]\nread_only_token = "{token}"\n')
    secrets.chmod(0o600)
    async with fail_after(60), gateway(place) as program:
        url = await program.url()
        assert (await command(reaching(place, url), "chat", "-m", "hello")).code == 0
        reader = reaching(place, url, {"GATEHOUSE_TOKEN": token})
        assert (await command(reader, "sessions", "list")).code == 0
        made = await command(place, "backup", "create", str(place.path))
    assert made.code == 0, made.err
    assert "no tokens" in made.err
    (file,) = place.path.glob("gatehouse-*.tar.gz")
    found = members(file)
    assert not [name for name in found if "secrets" in name or "toml" in name]
    assert token.encode() not in b"".join(found.values())
