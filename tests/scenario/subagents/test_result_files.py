"""Files of long results where the disk is not as it should be (SUB-10)."""

from pathlib import Path

import pytest

from runtime.domain.results import path_of
from runtime.ports.model import ModelRequest
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Said
from tests.scenario.cast import ask
from tests.scenario.subagents.children import engine, name_of, spawn, told, tree

__all__ = ["dialect", "migrated_url", "schema_templates"]

LONG = "".join(f"line {number} of the sea\n" for number in range(2_000))


@pytest.mark.requirement("SUB-10")
async def test_where_the_file_cannot_be_written_the_output_is_still_there(
    tmp_path: Path, migrated_url: str
) -> None:
    """A command put a link in the place of the folder: nothing is written where it leads."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def script(request: ModelRequest) -> Said | str:
        text = told(request)
        if name_of(request):
            return LONG
        if '"output"' in text:
            return "It is read."
        if "all of it is in" in text:
            return Said(calls=(ask("output", agent="one"),))
        return spawn(task="Count.", id="one")

    async with engine(tmp_path, migrated_url, script) as at:
        folder = at.workspace / ".gatehouse"
        folder.mkdir(exist_ok=True)
        (folder / "outputs").symlink_to(elsewhere)
        await at.says("count")
        assert await at.sees(1) == ["It is read."]
    assert not list(elsewhere.rglob("*"))


@pytest.mark.requirement("SUB-10", "SUB-8")
async def test_a_child_that_goes_on_gives_another_file(tmp_path: Path, migrated_url: str) -> None:
    """The first result stays what it was: a file that was named is never another."""
    more = LONG.replace("sea", "sky")
    seen: list[str] = []

    def script(request: ModelRequest) -> Said | str:
        text = told(request)
        if name_of(request):
            return more if "Look up." in text else LONG
        seen.append(text)
        if "of the sky" in text:
            return "Both."
        if "Look up." in text:
            return "Told."
        if "of the sea" in text:
            return Said(calls=(ask("message", agent="one", text="Look up."),))
        return spawn(task="Count.", id="one")

    async with engine(tmp_path, migrated_url, script) as at:
        session = (await at.says("count")).session_id or ""
        await at.chat.until(lambda: "Both." in at.chat.texts())
        child = (await tree(at))["one"]
        folder = at.workspace / path_of(session, child.session_id, "x" * 64)
        kept = sorted(file.read_text() for file in folder.parent.iterdir())
    assert kept == sorted([LONG.strip(), more.strip()])
