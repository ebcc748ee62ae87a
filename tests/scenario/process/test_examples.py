"""The examples that the program shows work as they stand, in a home that was just made."""

from pathlib import Path
from typing import Final

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import Place, gateway
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
    assert kept(files) == {"hello.txt": "hello", "list.txt": "coffee", "shopping.md": "milk"}


def kept(folder: Path) -> dict[str, str]:
    """What the files of a folder hold."""
    return {path.name: path.read_text() for path in folder.iterdir()}
