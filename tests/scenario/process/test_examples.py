"""The examples that the program shows work as they stand, in a home that was just made."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
import typer
from typer.core import TyperCommand, TyperGroup

from gateway.cli.main import app
from tests.conftest import FailAfter
from tests.scenario.process.program import Place, command, gateway
from tests.scenario.process.talk import conversation, say

OUTSIDE: Final = {
    "fetch https://example.com": "it needs the network, which tests do not use",
}
"""Examples that no test can run as they stand, with the reason."""
FOUND_NOTHING: Final = "[no "
"""How a search begins that found nothing."""


@pytest.fixture(params=["landlock", "bubblewrap"])
def backend(request: pytest.FixtureRequest, place: Place) -> str:
    """The sandbox that the machine has; without bubblewrap none is on the PATH."""
    if request.param == "landlock":
        (place.path / "bin").mkdir()
        place.variables["PATH"] = str(place.path / "bin")
    return str(request.param)


@pytest.mark.requirement("OPS-11", "OPS-4")
async def test_each_example_of_help_works_as_it_stands(
    place: Place, backend: str, fail_after: FailAfter
) -> None:
    async with fail_after(120), gateway(place) as program:
        url = await program.url()
        if backend not in await program.says("sandbox_chosen"):
            pytest.skip(f"{backend} does not work here; `gatehouse doctor` says what to install")
        async with conversation(url) as talk:
            helped = await say(talk, "help")
        examples = [line[2:] for line in helped.splitlines() if line.startswith("- ")]
        assert len(examples) > len(OUTSIDE) + 10, helped
        for number, example in enumerate(examples):
            if example in OUTSIDE:
                continue
            async with conversation(url, f"example-{number}") as talk:
                said = await say(talk, example)
                calls = [call for one in talk.entries for call in one.calls]
                assert calls, (example, said)
                assert {call.state for call in calls} == {"ok"}, (example, said)
                assert FOUND_NOTHING not in said, (example, said)
    files = place.workspace / "files"
    assert kept(files) == {
        "done.md": "plan",
        "hello.txt": "hello",
        "list.txt": "coffee",
        "shopping.md": "milk",
    }


def kept(folder: Path) -> dict[str, str]:
    """What the files of a folder hold."""
    return {path.name: path.read_text() for path in folder.iterdir()}


ELSEWHERE: Final = {
    "gatehouse serve": "it runs while the others are tried",
    "gatehouse chat": "it needs a terminal: see test_terminal.py",
}
"""Examples of `--help` that are not typed one after the other."""


def shown(program: TyperCommand | TyperGroup, *path: str) -> Iterator[str]:
    """The examples in the help of a command and of those below it."""
    helped = program.get_help(program.make_context(" ".join(path), [], resilient_parsing=True))
    assert not re.search(r"\b[A-Z]{3,4}-\d", helped), "the numbers of requirements are ours"
    yield from (line.strip() for line in helped.splitlines() if line.startswith("    gatehouse "))
    if isinstance(program, TyperGroup):
        for name, below in program.commands.items():
            assert isinstance(below, TyperCommand | TyperGroup)
            yield from shown(below, *path, name)


@pytest.mark.requirement("OPS-11", "OPS-2")
async def test_each_example_of_the_commands_help_works_as_it_stands(
    place: Place, fail_after: FailAfter
) -> None:
    examples = list(dict.fromkeys(shown(typer.main.get_group(app), "gatehouse")))
    assert set(ELSEWHERE) < set(examples)
    assert any(one.startswith("gatehouse slack manifest") for one in examples)
    async with fail_after(120), gateway(place) as running:
        await running.url()
        for example in examples:
            if example not in ELSEWHERE:
                _, *arguments = shlex.split(example)
                ended = await command(place, *arguments)
                assert (ended.code, bool(ended.out)) == (0, True), (example, ended)
