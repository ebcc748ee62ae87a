"""What changes without a restart: the rules of access, and the tokens of the API."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from pydantic import SecretStr

from gateway.cli.answers import Refused
from gateway.cli.client import GatewayClient
from tests.conftest import FailAfter
from tests.scenario.process.program import Place, command, gateway, reaching

OLD, NEW = "made-up-old-token-0001", "made-up-new-token-0002"


def put(file: Path, text: str) -> None:
    """Write a file whole: nobody reads half of it."""
    aside = file.with_suffix(".new")
    aside.write_text(text)
    aside.replace(file)


@pytest.mark.requirement("API-1")
@pytest.mark.parametrize("role", ["admin", "read_only"])
async def test_a_token_file_is_read_again_when_it_changes(
    place: Place, fail_after: FailAfter, role: str
) -> None:
    tokens = place.path / "tokens"
    put(tokens, f"# who: the operator\n{OLD}\n")
    place.variables[f"GATEHOUSE_HTTP__{role.upper()}_TOKEN_FILE"] = str(tokens)

    async def may(gateway: GatewayClient) -> None:
        await gateway.get("/v1/status")
        allowed = nullcontext() if role == "admin" else pytest.raises(Refused, match="only read")
        with allowed:
            await gateway.post("/v1/sessions", {})

    async with fail_after(60), gateway(place) as program:
        url = await program.url()
        async with (
            GatewayClient(url, SecretStr(OLD)) as old,
            GatewayClient(url, SecretStr(NEW)) as new,
        ):
            await may(old)
            put(tokens, f"{NEW}\n")
            await program.says("configuration_read")
            await may(new)
            with pytest.raises(Refused, match="wrong"):
                await old.get("/v1/status")


@pytest.mark.requirement("ACC-2")
async def test_a_changed_file_is_taken_over_and_says_what_needs_a_restart(
    place: Place, fail_after: FailAfter
) -> None:
    file = place.configure('[queue]\nmode = "collect"\n')
    async with fail_after(60), gateway(place) as program:
        url = await program.url()
        file.write_text('[queue]\nmode = "followup"\n[agents]\nmax_steps = 7\n')
        line = await program.says("configuration_read")
        assert '["agents"]' in line
        said = await command(reaching(place, url), "chat", "-m", "/queue", "--session", "fresh")
        assert said.code == 0, said.err
        assert "followup" in said.out


@pytest.mark.requirement("ACC-2")
async def test_files_that_come_and_go_are_taken_over(place: Place, fail_after: FailAfter) -> None:
    async with fail_after(60), gateway(place) as program:
        await program.url()
        file = place.home / "gatehouse.toml"
        put(file, "[agents]\nmax_steps = 7\n")
        assert '["agents"]' in await program.says("configuration_read")
        secrets, before = place.home / "secrets.toml", len(program.err)
        secrets.touch(0o644)
        secrets.write_text("[workers]\nturns = 3\n")
        assert "chmod 600" in await program.says("configuration_refused", after=before)
        before = len(program.err)
        secrets.chmod(0o600)
        assert '["agents", "workers"]' in await program.says("configuration_read", after=before)
        before = len(program.err)
        file.unlink()
        assert '["workers"]' in await program.says("configuration_read", after=before)
        before = len(program.err)
        put(file, "[agents]\nmax_steps = 8\n")
        assert '["agents", "workers"]' in await program.says("configuration_read", after=before)


@pytest.mark.requirement("ACC-2")
async def test_a_file_that_became_wrong_changes_nothing_and_is_said(
    place: Place, fail_after: FailAfter
) -> None:
    file = place.configure('[queue]\nmode = "followup"\n')
    async with fail_after(60), gateway(place) as program:
        url = await program.url()
        file.write_text("[queue\n")
        line = await program.says("configuration_refused")
        assert "line 1" in line
        elsewhere = reaching(place, url, {"GATEHOUSE_HOME": str(place.path / "client")})
        said = await command(elsewhere, "chat", "-m", "/queue")
        assert "followup" in said.out
