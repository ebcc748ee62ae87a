"""Speech to text over OpenAI's format: what is sent, and what each answer means (TEL-4)."""

from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from adapters.transcription.openai import MOST_BYTES, OpenAITranscriber, TranscriptionSettings
from runtime.domain.errors import Forbidden, Unavailable
from tests.wire.transcription import TranscriptionServer

pytestmark = pytest.mark.requirement("TEL-4")


@pytest.fixture
async def server() -> AsyncIterator[TranscriptionServer]:
    async with TranscriptionServer().running() as running:
        yield running


@pytest.fixture
async def transcriber(server: TranscriptionServer) -> AsyncIterator[OpenAITranscriber]:
    settings = TranscriptionSettings(url=server.url + "/", model="whisper-1", key=SecretStr("k-1"))
    made = OpenAITranscriber(settings)
    yield made
    await made.close()


async def test_a_recording_goes_out_and_its_words_come_back(
    server: TranscriptionServer, transcriber: OpenAITranscriber
) -> None:
    server.text = "hello\ud800"
    for name, kind in (("a.oga", "application/ogg"), ("clip.m4a", "audio/mp4")):
        assert await transcriber.transcribe(b"OggS", name=name, media_type=kind) == "hello?"
    first, second = server.heard
    assert (first.content, first.model, first.authorization) == (b"OggS", "whisper-1", "Bearer k-1")
    assert (first.filename, second.filename) == ("recording.ogg", "clip.m4a")


async def test_an_answer_that_comes_in_several_pieces_is_read_to_its_end(
    server: TranscriptionServer, transcriber: OpenAITranscriber
) -> None:
    server.text = "word " * 200_000
    said = await transcriber.transcribe(b"OggS", name="a.oga", media_type="audio/ogg")
    assert said == server.text


@pytest.mark.parametrize(
    ("status", "body", "raised"),
    [
        (429, None, Unavailable),
        (500, None, Unavailable),
        (400, None, Forbidden),
        (401, None, Forbidden),
        (307, None, Forbidden),
        (200, "no json", Unavailable),
        (200, "[]", Unavailable),
        (200, '{"text": 5}', Unavailable),
    ],
)
async def test_every_other_answer_is_one_of_two(
    server: TranscriptionServer,
    transcriber: OpenAITranscriber,
    status: int,
    body: str | None,
    raised: type[Exception],
) -> None:
    server.status, server.body = status, body
    with pytest.raises(raised) as caught:
        await transcriber.transcribe(b"OggS", name="a.oga", media_type="application/ogg")
    assert "k-1" not in str(caught.value)
    assert len(server.heard) == 1, "it is not sent on"


async def test_a_server_that_is_not_there_and_a_recording_that_is_too_long() -> None:
    nobody = OpenAITranscriber(TranscriptionSettings(url="http://127.0.0.1:9/v1", model="m"))
    with pytest.raises(Unavailable):
        await nobody.transcribe(b"OggS", name="a.oga", media_type="application/ogg")
    with pytest.raises(Forbidden):
        await nobody.transcribe(b"\0" * (MOST_BYTES + 1), name="a", media_type="audio/wav")
    await nobody.close()
