"""A model that answers nonsense: the person gets a clear answer all the same."""

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import ALLOWED, Town
from tests.wire.openai import Answer, Prompt, Use, calls, says, use


def nonsense(prompt: Prompt) -> Answer:
    """One kind of nonsense for each wish, and sense once the model was told."""
    if prompt.results:
        return says(f"I was told: {prompt.results[-1]}")
    wish = prompt.asked
    if "unknown tool" in wish:
        return calls(use("launch_rocket", speed=11))
    if "broken arguments" in wish:
        return calls(Use("write_file", '{"path": "half.txt", "content": "ne'))
    if "wrong arguments" in wish:
        return calls(Use("write_file", '["half.txt"]'))
    if "nothing at all" in wish:
        return says()
    if "a refusal" in wish:
        return Answer(status=401)
    return says(*["ten megabytes of text " * 5_000] * 96)


@pytest.mark.requirement("MSG-9", "MSG-14")
async def test_nonsense_of_the_model_ends_in_a_clear_answer(
    town: Town, fail_after: FailAfter
) -> None:
    town.configure(ALLOWED)
    town.model.plays = nonsense
    async with fail_after(90), town.serving() as here:
        page = await Page.open(here.client)

        async def asks(wish: str) -> str:
            run = await page.says(wish)
            assert await here.feed.ended(run) == "run.completed"
            return (await page.texts())[-1]

        unknown = await asks("unknown tool")
        assert unknown.startswith("I was told: ")
        assert "launch_rocket" in unknown
        assert "list_dir" in unknown, "it names the tools that there are"
        broken = await asks("broken arguments")
        assert "JSON" in broken
        wrong = await asks("wrong arguments")
        assert "object" in wrong
        assert not (town.place.workspace / "files/half.txt").exists()
        asked = len(town.model.prompts)
        assert await asks("nothing at all") == (
            "The model gave no answer. Please ask again, perhaps in other words."
        )
        assert len(town.model.prompts) == asked + 2, "it was asked once more"
        huge = await asks("everything")
        assert 50_000 < len(huge) < 500_000
        await town.on_slack("everything")
        await here.feed.settled(6)
        shown = "".join(town.slack_texts())
        assert "".join(shown.split()) == "".join(huge.split()), "both read all that was kept"
        await town.on_slack("a refusal")
        failed = await here.feed.run(6)
        assert await here.feed.ended(failed) == "run.failed"
        await here.feed.settled(7)
        sentence = town.slack_texts()[-1]
        assert failed in sentence, "there is an id to quote"
        assert "did not accept the gateway's key" in sentence
        assert "refused by the script" not in sentence, "the provider's own words stay away"
        assert here.feed.kinds().count("delivery.sent") == 7
        assert "Traceback" not in here.program.transcript
