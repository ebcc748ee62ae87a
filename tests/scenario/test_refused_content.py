"""No refusal of a provider makes a conversation unusable, and each is said (MDL-4 to MDL-6)."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from runtime.domain.errors import ModelError, ModelRejected, ModelRetry
from runtime.domain.transcript import (
    AssistantMessage,
    NoticeMessage,
    TranscriptMessage,
    UserMessage,
)
from runtime.ports.model import ModelRequest
from runtime.sessions.tables import lanes, messages
from runtime.sessions.transcripts import line_of
from runtime.store import Connection
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.conftest import Worlds
from tests.scenario.engine import World

BAD = "the word that is refused"
REFUSED = ModelRejected("HTTP 400", "It was refused.", content=True, cause="filter")


async def transcript(world: World) -> Sequence[TranscriptMessage]:
    """Every message that was kept, in order."""

    def look(conn: Connection) -> Sequence[TranscriptMessage]:
        rows = conn.execute(select(messages).order_by(messages.c.session_id, messages.c.seq))
        return [line_of(row).message for row in rows]

    return await world.database.read(look)


def picky(request: ModelRequest) -> str | ModelError:
    """Refuses whatever holds the bad word."""
    return REFUSED if BAD in str(request.messages) else "fine"


@pytest.mark.requirement("MDL-5")
async def test_what_was_refused_stands_in_no_later_prompt_and_in_the_transcript(
    worlds: Worlds,
) -> None:
    model = ScriptedModel(picky)
    async with worlds(model) as world:
        await world.says("hi")
        await world.says(BAD)
        assert (await world.sees(2))[1].startswith("It was refused.")
        await world.says("hello")
        assert (await world.sees(3))[2] == "fine"
        await world.says("and again")
        assert (await world.sees(4))[3] == "fine"
        kept = await transcript(world)
    last = model.requests[-1].messages
    assert [one.text for one in last if isinstance(one, UserMessage)] == [
        "hi",
        "hello",
        "and again",
    ]
    (notice,) = [one.text for one in last if isinstance(one, NoticeMessage)]
    assert "left out here" in notice
    assert BAD in str(kept), "the transcript keeps it"
    assert [one.text for one in kept if isinstance(one, AssistantMessage) and one.refused] == [
        "It was refused."
    ]


@pytest.mark.requirement("MDL-5")
async def test_what_is_refused_only_now_is_left_out_with_all_before_it(worlds: Worlds) -> None:
    """The provider changed its mind about an older message."""
    minded = False

    def script(request: ModelRequest) -> str | ModelError:
        return picky(request) if minded else "fine"

    model = ScriptedModel(script)
    async with worlds(model) as world:
        await world.says(BAD)
        await world.sees(1)
        minded = True
        await world.says("hello")
        answer = (await world.sees(2))[1]
        assert answer.startswith("fine\n\n(The provider of ")
        asked = len(model.requests)
        await world.says("and again")
        assert (await world.sees(3))[2] == "fine", "it is said once"
    assert len(model.requests) == asked + 1, "it is left out from then on"
    assert BAD not in str(model.requests[-1].messages)


@pytest.mark.requirement("MDL-5")
async def test_a_server_that_fails_at_what_it_cannot_read_is_asked_without_it(
    worlds: Worlds,
) -> None:
    minded = False

    def script(request: ModelRequest) -> str | ModelError:
        broken = minded and BAD in str(request.messages)
        return ModelRetry("HTTP 500", 0.0, status=500, cause="error") if broken else "fine"

    model = ScriptedModel(script)
    async with worlds(model) as world:
        await world.says(BAD)
        await world.sees(1)
        minded = True
        await world.says("hello")
        assert (await world.sees(2))[1].startswith("fine")
    assert len(model.requests) == 1 + 5 + 1


@pytest.mark.requirement("MDL-5")
async def test_an_outage_leaves_nothing_out(worlds: Worlds) -> None:
    away = True

    def script(request: ModelRequest) -> str | ModelError:
        return ModelRetry("HTTP 503", 0.0, status=503, cause="error") if away else "fine"

    model = ScriptedModel(script)
    async with worlds(model) as world:
        await world.says("hi")
        await world.sees(1)
        away = False
        await world.says("and now?")
        assert (await world.sees(2))[1] == "fine"
    texts = [one.text for one in model.requests[-1].messages if isinstance(one, UserMessage)]
    assert texts == ["hi", "and now?"]


def crowded(limit: int) -> ScriptedModel:
    """A model whose context is so small, in characters of the conversation, and says so."""

    def script(request: ModelRequest) -> str | ModelError:
        size = sum(len(one.text) for one in request.messages if isinstance(one, UserMessage))
        if size > limit:
            return ModelRejected("too long", "Too long.", content=True, cause="too_long")
        return "fine"

    return ScriptedModel(script)


@pytest.mark.requirement("MDL-5")
async def test_a_conversation_that_is_full_goes_on_with_what_fits(worlds: Worlds) -> None:
    model = crowded(20_000)
    async with worlds(model) as world:
        for number in range(1, 5):
            await world.says(f"{number} " + "x" * 8_000)
            answers = await world.sees(number)
        assert [answer == "fine" for answer in answers] == [True, True, False, True]
        assert answers[2].startswith("fine\n\n(This conversation has more than fits")
        await world.says("hello")
        assert (await world.sees(5))[4] == "fine"


@pytest.mark.requirement("MDL-5")
async def test_one_message_that_is_too_long_is_shortened(worlds: Worlds) -> None:
    model = crowded(20_000)
    async with worlds(model) as world:
        await world.says("begin " + "x" * 60_000)
        assert (await world.sees(1))[0].startswith("fine")
    (seen,) = model.requests[-1].messages
    assert isinstance(seen, UserMessage)
    assert "were left out here" in seen.text


@pytest.mark.requirement("MDL-5")
async def test_the_size_that_is_set_bounds_the_prompt(worlds: Worlds) -> None:
    model = ScriptedModel(lambda _: "fine", context_tokens=8_000)
    async with worlds(model) as world:
        for number in range(1, 6):
            await world.says(f"{number} " + "x" * 8_000)
            await world.sees(number)
        seen = await world.database.read(lambda conn: conn.scalar(select(lanes.c.window_from)))
    assert (seen or 0) > 1, "the window of later turns begins behind what does not fit"
    for request in model.requests:
        assert sum(len(str(one)) for one in request.messages) < 8_000 * 4
        assert request.max_output_tokens <= 2_000


@pytest.mark.requirement("MDL-4")
async def test_what_a_model_lacks_is_said_once_in_a_conversation(worlds: Worlds) -> None:
    lacking = Said("fine", missing=frozenset({"tools"}))
    model = ScriptedModel(lambda _: lacking)
    async with worlds(model) as world:
        await world.says("hi")
        (first,) = await world.sees(1)
        await world.says("and?")
        second = (await world.sees(2))[1]
    assert first.startswith("fine\n\n(")
    assert "cannot use tools" in first
    assert "`model` lists other models" in first
    assert second == "fine"


@pytest.mark.requirement("MDL-6")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ModelRetry("x", 0.0, cause="unreached"), "could not be reached"),
        (ModelRetry("x", 0.0, cause="timeout", waited_s=7.5), "sent nothing within 7.5 s"),
        (ModelRetry("x", 0.0, cause="error", status=503), "answered with an error (HTTP 503)"),
        (ModelRetry("x", 0.0, cause="busy", status=429), "has too much to do"),
        (ModelRetry("x", 0.0, cause="cut"), "broke off its answer"),
    ],
)
async def test_what_was_tried_in_vain_says_what_happened(
    worlds: Worlds, error: ModelRetry, words: str
) -> None:
    model = ScriptedModel(lambda _: replace(error))
    with capture_logs() as logs:
        async with worlds(model) as world:
            await world.says("hi")
            (text,) = await world.sees(1)
    assert words in text
    (failed,) = [one for one in logs if one["event"] == "run_failed"]
    assert failed["cause"] == error.cause


@pytest.mark.requirement("MDL-3")
async def test_thoughts_are_in_no_chat_and_go_back_to_their_model(worlds: Worlds) -> None:
    thinking = Said(calls=(("list_dir", "{}"),), thoughts="She wants the date.")
    model = ScriptedModel([thinking, "It is noon."])
    async with worlds(model) as world:
        await world.says("what time is it?")
        assert await world.sees(1) == ["It is noon."]
        kept = await transcript(world)
    (said,) = [one for one in model.requests[1].messages if isinstance(one, AssistantMessage)]
    assert said.thoughts == "She wants the date."
    for message in kept:
        assert "She wants" not in message.model_dump_json()
