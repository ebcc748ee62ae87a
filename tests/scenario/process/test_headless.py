"""A deployment that is made of variables alone, as `docker run --env ...` makes it (OPS-9)."""

import asyncio
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.town import Town, town_at
from tests.scenario.process.compose import image
from tests.scenario.process.program import followed, gateway
from tests.wire.openai import says
from tests.wire.slack import ANNA

LIMIT_S = 240.0


def headless(town: Town) -> Path:
    """Make the town's machine a container's: one volume, no file, variables; the volume."""
    volume = town.place.path / "data"
    (town.place.home / "gatehouse.toml").unlink()
    town.place.variables |= {
        name: str(volume) if value == "/data" else value
        for name, value in image().env.items()
        if name not in ("PATH", "HOME")
    }
    town.place.variables |= {
        "GATEHOUSE_SLACK__OWNERS": f'["{ANNA}"]',
        "GATEHOUSE_TELEGRAM__OWNERS": f'["{town.ann.id}"]',
    }
    return volume


@pytest.mark.requirement("OPS-9", "CTX-1")
async def test_variables_alone_make_a_deployment_whose_identity_files_heal(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with fail_after(LIMIT_S), town_at(tmp_path) as town:
        town.model.plays = lambda prompt: says("Here ", "I am.")
        volume = headless(town)
        async with gateway(town.place, *image().command[3:]) as program:
            await program.url()
            await town.on_slack("hello")
            town.on_telegram("hello")
            await town.slack.wait_for_post(
                lambda post: post.visible_text == "Here I am.", within=LIMIT_S
            )
            await town.telegram.wait_for_message(
                lambda one: one.text == "Here I am.", timeout=LIMIT_S
            )
            program.signal(signal.SIGTERM)
            assert await program.ended() == 0
        workspace = volume / "workspace"
        (workspace / "SOUL.md").unlink()
        (workspace / "USER.md").write_text("Mine.", encoding="utf-8")
        async with gateway(town.place, *image().command[3:]) as program:
            await program.url()
            assert (workspace / "SOUL.md").read_text(encoding="utf-8").strip()
            assert (workspace / "USER.md").read_text(encoding="utf-8") == "Mine."
        assert not town.place.home.joinpath("gatehouse.db").exists(), "all of it is in the volume"


@pytest.mark.requirement("OPS-9", "OPS-10")
async def test_as_process_1_on_a_read_only_root_it_is_healthy_and_stops_on_a_signal(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    """Without a container engine: bubblewrap gives what the page's `docker run` asks for."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is missing: install it (Debian: apt install bubblewrap)")
    volume, temporary = tmp_path / "data", tmp_path / "tmp"
    volume.mkdir()
    temporary.mkdir()
    env = {name: value.replace("/data", str(volume)) for name, value in image().env.items()}
    env |= {"TMPDIR": str(temporary), "GATEHOUSE_HTTP__PORT": "0"}
    told, tells = os.pipe()
    container = (
        *("bwrap", "--unshare-user", "--uid", "10001", "--gid", "10001", "--cap-drop", "ALL"),
        *("--unshare-pid", "--as-pid-1", "--info-fd", str(tells)),
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *("--tmpfs", str(temporary), "--bind", str(volume), str(volume)),
        *("--chdir", str(volume)),
    )
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *container, *image().command, stdout=pipe, stderr=pipe, env=env, pass_fds=(tells,)
    )
    os.close(tells)
    async with fail_after(LIMIT_S), followed(process) as program:
        url = await program.url()
        with os.fdopen(told, encoding="utf-8") as information:
            process_1 = int(json.load(information)["child-pid"])
        assert " / / ro," in mounts_of(process_1)
        assert await health(url) == 0
        os.kill(process_1, signal.SIGTERM)
        assert await program.ended() == 0
        assert await health(url) != 0
    assert (volume / "gatehouse.db").is_file()


def mounts_of(pid: int) -> str:
    """What a process sees mounted, as proc(5) writes it."""
    return Path(f"/proc/{pid}/mountinfo").read_text(encoding="utf-8")


async def health(url: str) -> int:
    """The exit code of the Dockerfile's health check, asked at this address."""
    port = url.rpartition(":")[2]
    process = await asyncio.create_subprocess_exec(
        *image().health,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "GATEHOUSE_HTTP__PORT": port},
    )
    return await process.wait()
