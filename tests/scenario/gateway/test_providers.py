"""The model through somebody else's server, in the formats of two providers, end to end."""

import pytest

from runtime.domain.json_fields import objects_of
from tests.conftest import FailAfter
from tests.scenario.gateway.page import Page
from tests.scenario.gateway.town import Town
from tests.wire.aimock import Aimock, Json

WHOLE = (
    "A long answer that is cut in the middle of its stream the first time, and whole the second."
)


def wires(url: str) -> dict[str, dict[str, str]]:
    """What an operator sets for each of the formats."""
    return {
        "openai": {
            "OPENAI_BASE_URL": f"{url}/v1",
            "GATEHOUSE_MODELS__DEFAULT": "openai:gpt-6.1-terra",
        },
        "anthropic": {
            "ANTHROPIC_API_KEY": "sk-test-key",
            "GATEHOUSE_MODELS__ANTHROPIC_BASE_URL": url,
            "GATEHOUSE_MODELS__DEFAULT": "anthropic:claude-sonnet-5-5",
        },
    }


def fixture(said: str, response: Json, *, number: int | None = None, **more: object) -> Json:
    """An answer to what the person said; with a number, to the n-th request of its kind."""
    match = {"userMessage": said}
    return {
        "match": match if number is None else {**match, "sequenceIndex": number},
        "response": response,
        **more,
    }


def fixtures() -> list[Json]:
    """The model of these tests."""
    reads = [{"name": "read_file", "arguments": {"path": one}} for one in ("a.txt", "b.txt")]
    busy = {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429}
    return [
        fixture("stream to me", {"content": "Word after word after word."}, chunkSize=4, latency=5),
        {
            "match": {"userMessage": "read both", "hasToolResult": False},
            "response": {"content": "I look.", "toolCalls": reads},
            "chunkSize": 3,
        },
        fixture("read both", {"content": "Both are read."}),
        fixture("busy", {**busy, "retryAfter": 1}, number=0),
        fixture("busy", {"content": "Now I have time."}, number=1),
        fixture("cut", {"content": WHOLE}, number=0, chunkSize=5, truncateAfterChunks=8, latency=5),
        fixture("cut", {"content": WHOLE}, number=1, chunkSize=5),
    ]


@pytest.mark.requirement("MSG-7", "MSG-9", "MSG-18")
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
async def test_a_providers_stream_calls_and_faults_end_in_whole_answers(
    town: Town, aimock: Aimock, wire: str, fail_after: FailAfter
) -> None:
    await aimock.load(*fixtures())
    town.place.variables |= wires(aimock.url)[wire]
    async with fail_after(90), town.serving() as here:
        page = await Page.open(here.client)

        run = await page.says("stream to me")
        assert await here.feed.ended(run) == "run.completed"
        pieces = [one for one in here.feed.live if one.kind == "delta"]
        assert len(pieces) > 1, "the text came piece by piece"
        assert here.feed.text(run) == "Word after word after word."

        for name in ("a", "b"):
            (town.place.workspace / f"files/{name}.txt").write_text(f"this is the file {name}\n")
        run = await page.says("read both")
        assert await here.feed.ended(run) == "run.completed"
        called = [call for one in await page.messages() for call in objects_of(one, "calls")]
        assert [call["status"] for call in called] == ["ok", "ok"]
        sent = str((await aimock.requests())[-1])
        assert "this is the file a" in sent
        assert "this is the file b" in sent

        run = await page.says("busy")
        assert await here.feed.ended(run) == "run.completed"
        assert len([one for one in here.program.err if "model_retry" in one]) == 1

        run = await page.says("cut")
        assert await here.feed.ended(run) == "run.completed"
        assert here.feed.text(run) == WHOLE
        assert len([one for one in here.program.err if "model_retry" in one]) == 2

        await town.on_slack("stream to me")
        await here.feed.settled(5)
        assert town.slack_texts() == ["Word after word after word."]
        assert (await page.texts())[-2:] == ["Now I have time.", WHOLE]
        assert "sk-test-key" not in here.program.transcript
