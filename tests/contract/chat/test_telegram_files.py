"""Files both ways: what people send can be fetched, and what we send arrives as they see it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from runtime.domain.errors import (
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
    Forbidden,
    GatehouseError,
    NotFound,
    Unavailable,
)
from runtime.domain.messages import Attachment, FilePart, TextPart
from tests.contract.chat.telegram_support import Desk, desk, to
from tests.wire.telegram import Attachment as Sent
from tests.wire.telegram.faults import DOWNLOAD

__all__ = ["desk"]

PNG = b"\x89PNG\r\n\x1a\n made up picture"


async def fetched(desk: Desk, attachment: Attachment) -> bytes:
    files = desk.adapter.files
    assert files is not None
    return b"".join([piece async for piece in files.fetch(attachment)])


async def heard(desk: Desk) -> Attachment:
    """The file of the only message."""
    async with desk.listening():
        (message,) = await desk.hears(1)
    (attachment,) = message.attachments
    return attachment


def part(path: Path, content: bytes, media_type: str = "application/octet-stream") -> FilePart:
    path.write_bytes(content)
    return FilePart(name=path.name, path=str(path), media_type=media_type)


@pytest.mark.requirement("TEL-4", "MSG-19")
async def test_a_document_is_fetched_as_it_was_sent(desk: Desk) -> None:
    content = bytes(range(256)) * 2_000
    desk.server.user_sends_document(desk.chat, desk.ann, content, filename="data.bin")
    assert await fetched(desk, await heard(desk)) == content


@pytest.mark.requirement("TEL-4")
async def test_a_voice_message_and_a_sticker_are_described(desk: Desk) -> None:
    desk.server.user_sends_voice(desk.chat, desk.ann, b"OggS", duration=12)
    voice = await heard(desk)
    assert (voice.kind, voice.duration_s, voice.media_type) == ("voice message", 12, "audio/ogg")
    assert await fetched(desk, voice) == b"OggS"


@pytest.mark.requirement("TEL-4")
async def test_a_file_that_telegram_does_not_give_says_why(desk: Desk) -> None:
    big = Attachment(name="film.mp4", size_bytes=30_000_000, reference="BQACAgTest")
    with pytest.raises(Forbidden, match="up to 20 MB, and this one has 30"):
        await fetched(desk, big)
    assert desk.server.calls_to("getFile") == [], "there is no need to ask"
    stored = desk.server.state.files.add(Sent(b"x" * (20 * 1024 * 1024 + 1), "film.mp4"))
    with pytest.raises(Forbidden, match="up to 20 MB"):
        await fetched(desk, Attachment(name="film.mp4", reference=stored.file_id))
    with pytest.raises(NotFound):
        await fetched(desk, Attachment(name="gone.txt", reference="no such id"))
    with pytest.raises(NotFound):
        await fetched(desk, Attachment(name="nothing.txt"))


@pytest.mark.requirement("TEL-4")
@pytest.mark.parametrize("trouble", ["down", "5xx", "cut", "429"])
async def test_a_fetch_that_fails_can_be_tried_again_and_tells_no_token(
    desk: Desk, trouble: str, caplog: pytest.LogCaptureFixture
) -> None:
    stored = desk.server.state.files.add(Sent(b"hello", "notes.txt"))
    attachment = Attachment(name="notes.txt", reference=stored.file_id)
    match trouble:
        case "down":
            await desk.server.down()
        case "5xx":
            desk.server.fail(DOWNLOAD, 502, "Bad Gateway")
        case "cut":
            desk.server.hang(DOWNLOAD)
        case "429":
            desk.server.rate_limit("getFile")
    with pytest.raises(Unavailable) as failed:
        await fetched(desk, attachment)
    assert all(desk.server.token not in str(one) for one in chain(failed.value))
    assert desk.server.token not in caplog.text
    await desk.server.up() if trouble == "down" else None
    assert await fetched(desk, attachment) == b"hello"


@pytest.mark.requirement("TEL-4")
async def test_a_reader_may_stop_in_the_middle(desk: Desk) -> None:
    content = b"x" * 1_000_000
    stored = desk.server.state.files.add(Sent(content, "large.bin"))
    files = desk.adapter.files
    assert files is not None
    attachment = Attachment(name="large.bin", reference=stored.file_id)
    pieces = files.fetch(attachment)
    first = await anext(pieces)
    assert isinstance(pieces, AsyncGenerator)
    await pieces.aclose()
    assert 0 < len(first) < len(content)
    assert await fetched(desk, attachment) == content


def chain(error: BaseException | None) -> list[BaseException]:
    """The error and what it names as its cause."""
    found: list[BaseException] = []
    while error is not None:
        found.append(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


@pytest.mark.requirement("TEL-4")
async def test_a_path_on_the_servers_own_disk_is_not_asked_for(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = desk.server.state.files
    stored = files.add(Sent(b"hello", "notes.txt"))
    for path in ("/var/lib/telegram/secret", "../../etc/passwd", ""):
        answer = {**stored.reference(), "file_path": path}
        monkeypatch.setattr(files, "downloadable", lambda _, answer=answer: answer)
        with pytest.raises(NotFound):
            await fetched(desk, Attachment(name="notes.txt", reference=stored.file_id))


@pytest.mark.requirement("TEL-4", "MSG-19")
async def test_a_file_of_ours_arrives_as_a_document_with_its_caption(
    desk: Desk, tmp_path: Path
) -> None:
    group = desk.server.world.supergroup("Team", desk.ann)
    question = desk.server.user_says(group, desk.ann, "@gatehouse_bot report?")
    report = part(tmp_path / "r\u00e9port.pdf", b"%PDF", "application/pdf")
    receipt = await desk.send(to(group, TextPart(markdown="**Here**"), report, reply_to=question))
    (post,) = desk.server.from_bot(group)
    assert (post.text, [e.type for e in post.content.entities]) == ("Here", ["bold"])
    assert (list(post.media), post.reply_to) == (["document"], question)
    document = post.media["document"]
    assert isinstance(document, dict)
    assert (document["file_name"], document["mime_type"]) == ("r\u00e9port.pdf", "application/pdf")
    assert desk.server.state.files.find(str(document["file_id"])).attachment.content == b"%PDF"
    assert receipt.message_ids == (str(post.message_id),)


@pytest.mark.requirement("TEL-4")
async def test_a_picture_is_a_photo_and_what_only_claims_to_be_one_is_a_document(
    desk: Desk, tmp_path: Path
) -> None:
    chart = part(tmp_path / "chart.png", PNG, "image/png")
    claims = part(tmp_path / "claims.png", b"not a picture", "image/png")
    large = part(tmp_path / "large.png", PNG + b"x" * 10_000_001, "image/png")
    await desk.send(to(desk.chat, chart, claims, large))
    kinds = [list(post.media) for post in desk.server.from_bot(desk.chat)]
    assert kinds == [["photo"], ["document"], ["document"]]


@pytest.mark.requirement("TEL-4")
async def test_speech_is_a_voice_message_and_a_file_where_nobody_takes_those(
    desk: Desk, tmp_path: Path
) -> None:
    speech = part(tmp_path / "answer.ogg", b"OggS made up speech", "audio/ogg")
    await desk.send(to(desk.chat, "Listen.", speech))
    desk.server.fail("sendVoice", 400, "Bad Request: VOICE_MESSAGES_FORBIDDEN")
    await desk.send(to(desk.chat, "Listen.", speech))
    posts = desk.server.from_bot(desk.chat)
    assert [(list(post.media), post.text) for post in posts] == [
        (["voice"], "Listen."),
        (["document"], "Listen."),
    ]


@pytest.mark.requirement("TEL-4")
async def test_a_file_that_cannot_be_sent_is_named_with_the_reason(
    desk: Desk, tmp_path: Path
) -> None:
    huge = tmp_path / "huge.bin"
    with huge.open("wb") as file:
        file.truncate(61_000_000)
    gone = FilePart(name="gone.txt", path=str(tmp_path / "gone.txt"))
    empty = part(tmp_path / "empty.txt", b"")
    await desk.send(
        to(desk.chat, "It is big.", FilePart(name="huge.bin", path=str(huge)), gone, empty)
    )
    first, second, third = desk.shown()
    assert first == (
        "It is big.\n\nFile huge.bin could not be sent: "
        "it has 61 MB, and Telegram takes at most 50."
    )
    assert second == "File gone.txt could not be sent: it is gone."
    assert third == "File empty.txt could not be sent: it is empty."
    assert str(tmp_path) not in "".join(desk.shown())


@pytest.mark.requirement("TEL-4", "TEL-6")
@pytest.mark.parametrize(
    ("code", "description"),
    [(400, "Bad Request: nobody listed this"), (403, "Forbidden: no files"), (404, "Not Found")],
)
async def test_whatever_a_file_is_refused_with_is_said_in_its_chat(
    desk: Desk, tmp_path: Path, code: int, description: str
) -> None:
    desk.server.fail("sendDocument", code, description)
    await desk.send(to(desk.chat, "Here it is.", part(tmp_path / "a.txt", b"hello")))
    (told,) = desk.shown()
    assert told.startswith("Here it is.\n\nFile a.txt could not be sent: Telegram says:")


@pytest.mark.requirement("TEL-6")
async def test_a_chat_that_takes_nothing_takes_no_sentence_either(
    desk: Desk, tmp_path: Path
) -> None:
    for method in ("sendDocument", "sendMessage"):
        desk.server.fail(method, 403, "Forbidden: bot was blocked by the user")
    with pytest.raises(DeliveryRejected, match="the person blocked the bot"):
        await desk.send(to(desk.chat, part(tmp_path / "a.txt", b"hello")))


@pytest.mark.requirement("TEL-4", "REN-3")
async def test_a_refused_caption_goes_out_plain_with_its_file(desk: Desk, tmp_path: Path) -> None:
    desk.server.fail("sendDocument", 400, "Bad Request: can't parse entities: in the test")
    await desk.send(to(desk.chat, "**Here**", part(tmp_path / "a.txt", b"hello")))
    (post,) = desk.server.from_bot(desk.chat)
    assert (post.text, post.content.entities, list(post.media)) == ("Here", (), ["document"])


@pytest.mark.requirement("TEL-4", "MSG-11")
async def test_an_upload_that_broke_is_repeated_only_where_it_surely_did_not_arrive(
    desk: Desk, tmp_path: Path
) -> None:
    message = to(desk.chat, part(tmp_path / "a.txt", b"hello"))
    desk.server.rate_limit("sendDocument", retry_after=5)
    with pytest.raises(DeliveryRetry) as flood:
        await desk.send(message)
    assert flood.value.after_s == 5
    desk.server.hang("sendDocument")
    with pytest.raises(DeliveryUnknown) as unknown:
        await desk.send(message)
    assert desk.server.token not in str(unknown.value)
    assert len(desk.server.from_bot(desk.chat)) == 1


@pytest.mark.requirement("TEL-4")
async def test_a_name_cannot_write_into_the_request(desk: Desk, tmp_path: Path) -> None:
    name = 'a"; name="chat_id"\r\n\r\n5\r\n.txt'
    file = part(tmp_path / "a.txt", b"hello").model_copy(update={"name": name})
    await desk.send(to(desk.chat, file))
    (post,) = desk.server.from_bot(desk.chat)
    document = post.media["document"]
    assert isinstance(document, dict)
    assert document["file_name"] == "a'; name='chat_id' 5 .txt"


async def test_the_reference_of_a_file_of_another_bot_is_not_found(desk: Desk) -> None:
    with pytest.raises(GatehouseError):
        await fetched(desk, Attachment(name="x", reference="AgACAgForeign"))


@pytest.mark.requirement("TEL-4")
async def test_music_and_films_are_played_and_other_kinds_are_documents(
    desk: Desk, tmp_path: Path
) -> None:
    song = part(tmp_path / "song.mp3", b"ID3 made up", "audio/mpeg")
    film = part(tmp_path / "film.mp4", b"made up", "video/mp4")
    table = part(tmp_path / "table.csv", b"a,b", "text/plain")
    await desk.send(to(desk.chat, song, film, table))
    kinds = [list(post.media) for post in desk.server.from_bot(desk.chat)]
    assert kinds == [["audio"], ["video"], ["document"]]
