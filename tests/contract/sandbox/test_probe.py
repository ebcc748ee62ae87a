"""The choice is made by trying, and what fails its canary is not used (TOOL-5)."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.command_process import Plan
from adapters.sandbox.landlock import Landlock
from adapters.sandbox.probe import Setting, choose, try_backend
from adapters.sandbox.unconfined import Unconfined
from runtime.ports.sandbox import SandboxCommand, SandboxUnavailable
from tests.contract.sandbox.conftest import Bench, HandClock

NOTHING = Cgroups()


class Leaky(Unconfined):
    """A backend that promises to confine and does not."""

    name = "leaky"

    def available(self) -> SandboxUnavailable | None:
        return None


class OnlineLandlock(Landlock):
    """Landlock, but with the network open."""

    def plan(self, command: SandboxCommand) -> Plan:
        return super().plan(replace(command, network=True))


class TightLandlock(Landlock):
    """Landlock without a way to write anywhere."""

    def plan(self, command: SandboxCommand) -> Plan:
        roots = (*command.readable, *command.writable)
        return super().plan(replace(command, readable=roots, writable=()))


@pytest.mark.requirement("TOOL-5")
async def test_bubblewrap_comes_first_and_landlock_second(
    clock: HandClock, confined: Bench
) -> None:
    chosen = await choose("auto", clock=clock, cgroups=NOTHING)
    if await try_backend(Bubblewrap(clock, cgroups=NOTHING)) is None:
        assert chosen.name == "bubblewrap"
    absent = Bubblewrap(clock, cgroups=NOTHING, program="no-such-program")
    second = await choose(
        "auto", clock=clock, backends=(absent, Landlock(clock, cgroups=NOTHING)), cgroups=NOTHING
    )
    assert second.name == "landlock"
    assert "bubblewrap was not taken" in second.describe()
    assert "apt install bubblewrap" in second.describe()


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    ("kind", "complaint"),
    [
        (Leaky, "a file outside the working folder could be written"),
        (OnlineLandlock, "a listener on this host could be reached"),
        (TightLandlock, "nothing can be made in the working folder"),
    ],
)
async def test_a_backend_that_fails_its_canary_is_not_used(
    kind: type[Leaky | Landlock], complaint: str, clock: HandClock
) -> None:
    backend = kind(clock, cgroups=NOTHING)
    if backend.available() is not None:
        pytest.skip("Landlock is not to be had here: Linux 6.2 or newer is needed")
    chosen = await choose("auto", clock=clock, cgroups=NOTHING, backends=(backend,))
    assert chosen.name == "refused"
    assert complaint in chosen.describe()


@pytest.mark.requirement("TOOL-5")
async def test_the_canary_works_where_commands_work_and_leaves_nothing(confined: Bench) -> None:
    (confined.workspace / "mine").write_text("kept")
    folder = str(confined.workspace)
    grants = SandboxCommand("", cwd=folder, writable=(folder,), env={"GRANTED": "x"})
    assert await try_backend(confined.sandbox, grants) is None
    assert [path.name for path in confined.workspace.iterdir()] == ["mine"]
    assert [path.name for path in confined.base.glob(".*")] == []


@pytest.mark.requirement("TOOL-5")
async def test_a_folder_that_cannot_be_listed_from_the_top_is_no_folder_to_work_in(
    clock: HandClock, tmp_path: Path
) -> None:
    """As it was with Landlock: what is hidden lay inside of what was granted."""
    backend = Landlock(clock, cgroups=NOTHING)
    if backend.available() is not None:
        pytest.skip("Landlock is not to be had here: Linux 6.2 or newer is needed")
    (tmp_path / "memory").mkdir()
    folder = str(tmp_path)
    grants = SandboxCommand("", cwd=folder, writable=(folder,), hidden=(f"{folder}/memory",))
    said = await try_backend(backend, grants)
    assert said is not None
    assert "cannot be listed" in said


@pytest.mark.requirement("TOOL-5")
async def test_without_a_backend_no_command_runs_and_the_way_out_is_named(
    clock: HandClock, tmp_path: Path
) -> None:
    refused = await choose("auto", clock=clock, cgroups=NOTHING, backends=())
    command = SandboxCommand(f"touch {tmp_path}/ran", cwd=str(tmp_path), writable=(str(tmp_path),))
    with pytest.raises(SandboxUnavailable) as error:
        await refused.start(command)
    assert "bubblewrap" in error.value.hint
    assert "Landlock" in error.value.hint
    assert 'sandbox = "none"' in error.value.hint
    assert not (tmp_path / "ran").exists()


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("setting", ["auto", "bubblewrap", "landlock"])
async def test_no_setting_but_none_runs_commands_unconfined(
    setting: Setting, clock: HandClock
) -> None:
    absent = Bubblewrap(clock, cgroups=NOTHING, program="no-such-program")
    chosen = await choose(setting, clock=clock, cgroups=NOTHING, backends=(absent,))
    assert chosen.name == "refused"
    explicit = await choose("none", clock=clock, cgroups=NOTHING, backends=(absent,))
    assert explicit.name == "none"
    assert "NOT confined" in explicit.describe()


@pytest.mark.requirement("TOOL-5")
async def test_a_setting_that_names_a_backend_tries_no_other(clock: HandClock) -> None:
    backends = (
        Bubblewrap(clock, cgroups=NOTHING, program="no-such-program"),
        Landlock(clock, cgroups=NOTHING),
    )
    chosen = await choose("bubblewrap", clock=clock, cgroups=NOTHING, backends=backends)
    assert chosen.name == "refused"
    assert "landlock was not taken" not in chosen.describe()
    assert "bubblewrap was not taken" in chosen.describe()


@pytest.mark.requirement("TOOL-5")
async def test_the_chosen_one_runs_commands_and_says_how_they_are_confined(
    confined: Bench, clock: HandClock, groups: Cgroups
) -> None:
    backend = confined.sandbox
    assert isinstance(backend, Bubblewrap | Landlock)
    chosen = await choose("auto", clock=clock, cgroups=groups, backends=(backend,))
    output, ended = await replace(confined, sandbox=chosen).run("echo hi")
    assert (output, ended.code) == ("hi\n", 0)
    assert chosen.name == backend.name
    assert "Memory is limited by" in chosen.describe()


@pytest.mark.requirement("TOOL-5")
async def test_a_backend_that_cannot_start_is_told_from_a_command_that_fails(
    clock: HandClock, tmp_path: Path
) -> None:
    backend = Landlock(clock, cgroups=NOTHING)
    if backend.available() is not None:
        pytest.skip("Landlock is not to be had here: Linux 6.2 or newer is needed")
    command = SandboxCommand(("/no/such/program",), cwd=str(tmp_path), writable=(str(tmp_path),))
    async with asyncio.timeout(180):
        with pytest.raises(SandboxUnavailable, match="No such file"):
            await backend.start(command)
    assert clock.pending() == []
