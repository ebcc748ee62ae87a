"""The offline model sends a real batch: two who read, and a third who waits for both (OPS-4)."""

from functools import partial

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.page import Feed, Page
from tests.scenario.gateway.town import Town
from tests.scenario.process.program import command, reaching

README = "# Lighthouse\nA lamp for ships, with a keeper.\n"
PROJECT = '[project]\nname = "lighthouse"\ndescription = "a lamp and its keeper"\n'
WISH = "ask two explorers to read README.md and pyproject.toml, then compare"
ROWS = "SELECT name, type, mode, status FROM agents ORDER BY place"


def further(feed: Feed, heard: int) -> bool:
    """Whether there were more events than those."""
    return len(feed.events) > heard


@pytest.mark.requirement("OPS-4", "SUB-11")
async def test_two_explorers_read_and_a_third_compares(town: Town, fail_after: FailAfter) -> None:
    town.place.variables["GATEHOUSE_MODELS__DEFAULT"] = "offline:offline"
    (town.place.workspace / "files").mkdir(parents=True)
    (town.place.workspace / "files/README.md").write_text(README)
    (town.place.workspace / "files/pyproject.toml").write_text(PROJECT)
    async with fail_after(60), town.serving() as here:
        page = await Page.open(here.client)
        run = await page.says(WISH)
        assert await here.feed.ended(run) == "run.completed"
        (answer,) = await page.texts()
        assert "A lamp for ships" in answer
        assert 'name = "lighthouse"' in answer
        assert "in common: lighthouse, keeper" in answer
        names = [str(name) for name, *_ in town.rows(ROWS)]
        assert [name.split("-")[0] for name in names] == ["explore", "explore", "compare"]
        assert [row[1:] for row in town.rows(ROWS)] == [("explore", "await", "completed")] * 3
        waits = "SELECT count(*) FROM agent_waits WHERE kind = 'dependency'"
        assert town.rows(waits) == [(2,)]

        there = reaching(town.place, await here.program.url())
        once = await command(
            there, "chat", "-m", "ask two explorers to read README.md, then compare"
        )
        assert (once.code, once.err) == (0, "")
        assert "A lamp for ships" in once.out

        # The same again beside the talk: it says so at once, and tells what came of it later.
        await page.says(f"{WISH} in the background")
        heard = -1
        while not any("in common" in text for text in (await page.texts())[2:]):
            await here.feed.until(partial(further, here.feed, heard))
            heard = len(here.feed.events)
        told = (await page.texts())[1]
        assert told.startswith("3 are on their way: `explore-")
        assert [row[2:] for row in town.rows(ROWS)[6:]] == [("background", "completed")] * 3
