"""A gateway that starts while its disk is full says so, waits, and comes up when there is room."""

import asyncio
import json
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import Place, gateway
from tests.scenario.process.talk import conversation, finished

SIZE = 8 * 1024 * 1024


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 8 MiB at the folder. Only root may mount one."""
    folder.mkdir(exist_ok=True)
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "small", folder],
            check=True,
            capture_output=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small disk is a file system that only root may mount")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def fill(folder: Path, *, but: int = 0) -> Path:
    """Fill the disk with one file, up to so many bytes."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
        file.truncate(max(file.tell() - but, 0))
    return ballast


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def answers(port: int, path: str) -> tuple[int, dict[str, str]]:
    """What is answered to anybody who asks."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}") as response:
            return response.status, json.load(response)
    except HTTPError as error:
        return error.code, json.load(error)


async def until_answered(port: int, path: str) -> tuple[int, dict[str, str]]:
    """Between two tries nobody listens for a moment."""
    while True:
        try:
            return await asyncio.to_thread(answers, port, path)
        except OSError:
            continue


@pytest.mark.requirement("API-5", "OPS-10")
@pytest.mark.parametrize("room", [0, 4096, 65_536, 400_000])
async def test_a_start_on_a_full_disk_waits_for_room_and_says_so(
    place: Place, fail_after: FailAfter, room: int
) -> None:
    port = free_port()
    place.variables |= {"GATEHOUSE_HTTP__PORT": str(port)}
    async with fail_after(120):
        with small_disk(place.home):
            ballast = fill(place.home, but=room)
            async with gateway(place) as program:
                await program.says("room_awaited")
                assert str(place.home) in program.transcript
                assert await until_answered(port, "/healthz") == (200, {"status": "ok"})
                status, said = await until_answered(port, "/readyz")
                assert (status, said["reason"]) == (503, "the disk is full")
                assert str(place.home) not in json.dumps(said)
                ballast.unlink()
                url = await program.url()
                assert (await until_answered(port, "/readyz"))[0] == 200
                async with conversation(url) as talk:
                    first = await talk.submit("read AGENTS.md")
                    assert await finished(talk, first.run_id) == "completed"
                empty = [
                    path.name
                    for path in place.home.rglob("*.md")
                    if not path.stat().st_size and path.parent.name != "memory"
                ]
                assert empty == [], "what was begun on the full disk is whole now"
                program.process.terminate()
                assert await program.ended() == 0
                assert "Traceback" not in program.transcript


@pytest.mark.requirement("OPS-10")
async def test_a_start_that_waits_for_room_can_be_stopped(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        with small_disk(place.home):
            fill(place.home)
            async with gateway(place) as program:
                await program.says("room_awaited")
                program.process.terminate()
                assert await program.ended() == 0
