"""Which sandbox a gateway takes at its start, and where it says so (TOOL-5)."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import Place, command, gateway, reaching


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
