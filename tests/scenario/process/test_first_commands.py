"""What a person types first, through everything that is real: a home that was just made, nothing
configured, the offline model, the card that asks, and the sandbox that the machine has."""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.cli.conversation import Conversation
from tests.conftest import FailAfter
from tests.scenario.process.nursery import ROOT
from tests.scenario.process.ordinary import ALL, DRIVER, EACH_KIND
from tests.scenario.process.program import Place, Program, gateway
from tests.scenario.process.talk import conversation, say
from tests.support.users import MISSING, NOBODY, python_of_others

README: Final = ROOT / "README.md"


@pytest.fixture(params=["root", "ordinary"])
def home(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A machine of its own for root or for an ordinary user, with nothing configured."""
    folder = Path(tempfile.mkdtemp(prefix="gatehouse-first-"))
    place = Place(folder, loaded=False)
    if (request.param == "root") != (os.getuid() == 0):
        if request.param == "root":
            pytest.skip("only root can try what root sees: run the tests as root too")
        place.user = NOBODY
        os.chown(folder, NOBODY, NOBODY)
        place.python, place.variables["PYTHONPATH"] = python_of_others("aiohttp", "gateway")
        if not place.python:
            pytest.skip(MISSING)
    yield place
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["landlock", "bubblewrap"])
def backend(request: pytest.FixtureRequest, home: Place) -> str:
    """The sandbox that the machine has; without bubblewrap none is on the PATH."""
    if request.param == "landlock":
        (home.path / "bin").mkdir()
        home.variables["PATH"] = str(home.path / "bin")
    return str(request.param)


async def chosen(program: Program, backend: str) -> str:
    """Where the gateway answers, once it took this sandbox."""
    url = await program.url()
    line = await program.says("sandbox_chosen")
    if backend not in line:
        pytest.skip(f"{backend} does not work here; `gatehouse doctor` says what to install")
    return url


LOOK = """
import os, sys
for look in (
    *(lambda name=name: os.listdir(name) for name in ("fd", "fdinfo", "map_files")),
    *(lambda name=name: open(name, "rb") for name in ("environ", "maps", "mem", "io", "auxv")),
    *(lambda name=name: os.readlink(name) for name in ("cwd", "root", "exe", "fd/0")),
):
    try:
        print("seen:", look())
    except PermissionError:
        print("closed")
"""


async def is_closed_to_its_user(place: Place, pid: int, talk: Conversation) -> None:
    """Another process of the gateway's user, and a command, see nothing of what it holds open, its
    environment and its memory."""
    folder = Path(f"/proc/{pid}")
    assert {(folder / name).stat().st_uid for name in ("environ", "fd", "mem")} == {0}
    other: dict[str, Any] = {}
    if place.user is not None:
        other = {"user": place.user, "group": place.user, "extra_groups": []}
    look = await asyncio.create_subprocess_exec(
        *(place.python, "-I", "-S", "-c", LOOK),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        **other,
    )
    seen, _ = await look.communicate()
    assert seen.decode().splitlines() == ["closed"] * 12
    said = await say(talk, f"run `ls {folder}/fd || cat {folder}/environ || echo closed`")
    assert "\nclosed\n" in said


@pytest.mark.requirement("TOOL-5", "OPS-4", "SEC-6")
async def test_the_readmes_first_words_work(
    home: Place, backend: str, fail_after: FailAfter
) -> None:
    assert "\nlist files\nrun `ls`\nread AGENTS.md\n" in README.read_text()
    async with (
        fail_after(120),
        gateway(home) as program,
        conversation(await chosen(program, backend)) as talk,
    ):
        assert "[empty folder]" in await say(talk, "list files")
        assert "[exit code 0, " in await say(talk, "run `ls`")
        assert "# How to work" in await say(talk, "read AGENTS.md")
        assert "created hello.txt" in await say(talk, "write 'hello' to hello.txt")
        ways = "run `touch a && mkdir b && echo hi > out.txt && ls`"
        assert "a\nb\nhello.txt\nout.txt" in await say(talk, ways)
        assert "hello.txt  5" in await say(talk, "list files")
        assert "it is hi" in await say(talk, "run `echo it is $(cat out.txt)`")
        failed = await say(talk, "run `echo x > ../AGENTS.md`")
        assert "did not succeed" in failed
        assert "[exit code 1, " in failed
        assert "# How to work" in await say(talk, "run `head -n 1 ../AGENTS.md`")
        if home.user is not None or os.getuid() != 0:
            assert isinstance(program.process, asyncio.subprocess.Process)
            await is_closed_to_its_user(home, program.process.pid, talk)
    assert (home.workspace / "AGENTS.md").read_text().startswith("# How to work")
    assert (home.workspace / "files/out.txt").read_text() == "hi\n"


@pytest.mark.requirement("TOOL-5")
async def test_a_hundred_ordinary_commands_work(
    home: Place, backend: str, fail_after: FailAfter
) -> None:
    """Each backend sees them all with the user that it is most often used by, and the other user
    with those of each kind that differ between users."""
    assert len(ALL) >= 100
    is_root = home.user is None and os.getuid() == 0
    commands = ALL if is_root == (backend == "bubblewrap") else EACH_KIND
    missing = [name for name in ("git", "make", "cc", "python3") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    async with fail_after(600), gateway(home) as program:
        url = await chosen(program, backend)
        folder = home.workspace / "files"
        (folder / "cases").mkdir()
        (folder / "hundred.sh").write_text(DRIVER)
        for number, case in enumerate(commands):
            (folder / f"cases/case-{number:03d}.sh").write_text(f"{case}\n")
        for path in (folder, *folder.rglob("*")):
            os.chown(path, folder.stat().st_uid, folder.stat().st_gid)
        done = 0
        async with conversation(url) as talk:
            # In parts, each within the time that one command has.
            for part in range(len(commands) // 10 + 1):
                said = await say(talk, f"run `bash hundred.sh {part:02d}`")
                assert "BAD" not in said, said
                done += len(re.findall(r"(?m)^ok ", said))
    assert done == len(commands)
