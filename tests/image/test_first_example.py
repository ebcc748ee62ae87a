"""What a person does first with the image, by the pages' own `docker run`, under each sandbox."""

import json
import os
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.image.build import ROOT, Image
from tests.image.container import DEFAULT, UNCONFINED, Container, Options, example, running
from tests.scenario.process.ordinary import ALL, BUILDS, DRIVER

BACKENDS = {DEFAULT: "landlock", UNCONFINED: "bubblewrap"}
LIMIT_S = 240.0
WAITS = 4
"""The exit code of `chat -m` when its call waits for a person."""
PROJECT = (
    "mkdir project",
    "cd project",
    "git init -q",
    r"printf 'all:\n\tpython3 -m unittest -q\n' > Makefile",
    r"printf 'import unittest\nclass T(unittest.TestCase):\n def test(self): pass\n' > test_t.py",
    "git add --all",
    "git -c user.name=A -c user.email=a@example.org commit -q -m one",
    "make 2>&1",
    "mv test_t.py renamed.py",
    "git status --short",
    "cd ..",
    "cp -r project kept",
    "rm -r project",
    "ls",
)
"""What an agent does every day, in the folder where its commands start."""


@pytest.fixture(params=BACKENDS)
def confinement(request: pytest.FixtureRequest) -> str:
    """What the engine refuses."""
    return str(request.param)


def first_commands(page: str) -> list[list[str]]:
    """What the page lets a person run in the container, as it stands there."""
    lines = (ROOT / page).read_text("utf-8").splitlines()
    start = "$ docker exec gatehouse "
    found = [line.removeprefix(start) for line in lines if line.startswith(start)]
    return [shlex.split(line, comments=True) for line in found]


async def ran(container: Container, *commands: str) -> str:
    """What the agent hears from a command line once the owner has allowed it."""
    message = f"run `{' && '.join(commands)}`"
    code, said = await container.execute("gatehouse", "chat", "-m", message)
    assert code == WAITS, f"{said}\n{container.program.transcript}"
    answer = re.search(r"`gatehouse (approvals approve \S+)`", said)
    assert answer is not None, said
    await container.says("gatehouse", *answer[1].split())
    # The next message of a conversation waits for the one before.
    await container.says("gatehouse", "chat", "-m", "hello")
    (session,) = json.loads(await container.says("gatehouse", "sessions", "list", "--json"))
    exported = await container.says("gatehouse", "sessions", "export", session["id"])
    calls = [call for line in exported.splitlines() for call in json.loads(line)["calls"]]
    return str(calls[-1]["result"])


@pytest.mark.requirement("OPS-9", "OPS-11")
async def test_the_first_example_of_the_readme_runs_as_it_stands(
    image: Image, volume: Path, confinement: str, fail_after: FailAfter
) -> None:
    options, place = example("README.md")
    assert (place,) == image.volumes
    options = replace(options, security=confinement)
    commands = first_commands("README.md")
    assert ["gatehouse", "chat", "-m", "list files"] in commands
    async with fail_after(LIMIT_S), running(image, volume, options) as container:
        said = [await container.says(*command) for command in commands]
    assert all(said)


@pytest.mark.requirement("OPS-9", "TOOL-5", "TOOL-7")
async def test_commands_work_in_the_image_whatever_the_engine_allows(
    image: Image, volume: Path, confinement: str, fail_after: FailAfter
) -> None:
    """Where namespaces are refused Landlock confines, and bubblewrap where they are not."""
    options = Options(tmpfs=("/tmp",), security=confinement)
    async with fail_after(LIMIT_S), running(image, volume, options) as container:
        assert f"run in: {BACKENDS[confinement]}" in await container.says(
            "gatehouse", "chat", "-m", "/status"
        )
        checks = json.loads(await container.says("gatehouse", "doctor", "--json"))
        (sandbox,) = (check for check in checks if check["name"] == "sandbox")
        assert sandbox["state"] == "ok"
        assert sandbox["found"].startswith(f"{BACKENDS[confinement]}:")
        first = await ran(container, "touch written", "ls")
        assert re.search(r"^written$", first, re.MULTILINE), first
        worked = await ran(container, *PROJECT)
        assert "[exit code 0" in worked, worked
        assert "Ran 1 test" in worked
        assert re.search(r"^ D test_t.py$", worked, re.MULTILINE), worked
        assert re.search(r"^kept$", worked, re.MULTILINE), worked
        assert not re.search(r"^project$", worked, re.MULTILINE), worked


@pytest.mark.requirement("OPS-9", "TOOL-5")
async def test_a_hundred_ordinary_commands_work_in_the_image(
    image: Image, volume: Path, confinement: str, fail_after: FailAfter
) -> None:
    commands = [each for each in ALL if each not in BUILDS]
    assert len(commands) >= 100, "all but those of a compiler, which the image does not have"
    options = Options(
        {"GATEHOUSE_POLICY__MODE": "bypassPermissions"}, ("/tmp",), security=confinement
    )
    done = 0
    async with fail_after(600), running(image, volume, options) as container:
        folder = volume / "workspace/files"
        (folder / "cases").mkdir()
        (folder / "hundred.sh").write_text(DRIVER, encoding="utf-8")
        for number, command in enumerate(commands):
            (folder / f"cases/case-{number:03d}.sh").write_text(f"{command}\n", encoding="utf-8")
        for path in folder.rglob("*"):
            os.chown(path, *image.ids)
        # In parts, each within the time that one command has.
        for part in ("0[0-2]", "0[3-5]", "0[6-9]", "1"):
            said = await container.says("gatehouse", "chat", "-m", f"run `bash hundred.sh {part}`")
            assert "BAD" not in said, said
            done += len(re.findall(r"(?m)^ok ", said))
    assert done == len(commands)
