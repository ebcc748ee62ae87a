"""Files in Slack, both ways, and what becomes of the bot token on their way."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapters.slack import manifest
from runtime.domain.errors import (
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
    Forbidden,
    NotFound,
    Unavailable,
)
from runtime.domain.messages import Attachment, FilePart, OutboundMessage, TextPart
from tests.contract.chat.slack_support import (
    Desk,
    desk,
    desk_at,
    installed,
    reply,
    shown,
    slack,
)
from tests.wire.slack import ANNA, GENERAL, Install, SlackServer, Upload

__all__ = ["desk", "slack"]

SCOPES = frozenset(manifest.SCOPES)


async def content(desk: Desk, attachment: Attachment) -> bytes:
    files = desk.adapter.files
    assert files is not None
    return b"".join([piece async for piece in files.fetch(attachment)])


async def attached(desk: Desk, upload: Upload) -> Attachment:
    """A person shares a file; what the engine hears of it."""
    async with desk.listening():
        await desk.slack.user_says(desk.direct(ANNA), ANNA, "read this", files=[upload])
        (message,) = await desk.gatehouse.wait_for(1)
        await desk.slack.wait_for_quiet()
    (found,) = message.attachments
    return found


@dataclass
class Stranger:
    """A server that is not Slack's, and remembers what it was sent."""

    url: str
    authorizations: list[str | None] = field(default_factory=list)


@asynccontextmanager
async def stranger() -> AsyncIterator[Stranger]:
    app = web.Application()
    runner = web.AppRunner(app, access_log=None)

    async def serve(request: web.Request) -> web.Response:
        made.authorizations.append(request.headers.get("Authorization"))
        return web.Response(body=b"not yours")

    app.add_routes([web.get("/{tail:.*}", serve)])
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made = Stranger(f"http://127.0.0.1:{runner.addresses[0][1]}")
    try:
        yield made
    finally:
        await runner.cleanup()


@pytest.mark.requirement("SLK-5", "MSG-19")
async def test_a_file_that_a_person_shares_can_be_read(desk: Desk) -> None:
    told = await attached(desk, Upload("a b.bin", b"\x00\x01" * 90_000, "application/x-test"))
    assert (told.name, told.size_bytes) == ("a b.bin", 180_000)
    assert await content(desk, told) == b"\x00\x01" * 90_000


@pytest.mark.requirement("SLK-5")
async def test_the_reader_may_stop_where_it_is_too_much(desk: Desk) -> None:
    told = await attached(desk, Upload("big.bin", b"x" * 1_000_000))
    files = desk.adapter.files
    assert files is not None
    taken, pieces = 0, files.fetch(told)
    async for piece in pieces:
        taken += len(piece)
        if taken > 100_000:
            break
    await pieces.aclose()
    assert taken < 300_000


@pytest.mark.requirement("SLK-5")
async def test_a_web_page_that_a_person_shares_is_no_login_page(desk: Desk) -> None:
    told = await attached(desk, Upload("page.html", b"<p>hello", "text/html"))
    assert await content(desk, told) == b"<p>hello"


@pytest.mark.requirement("SLK-5")
@pytest.mark.parametrize("kind", ["text/plain", "text/html"])
async def test_a_login_page_in_place_of_the_file_is_not_the_file(kind: str) -> None:
    install = Install(scopes=frozenset({"chat:write", "im:history", "users:read"}))
    async with SlackServer(install).running() as slack, desk_at(slack) as desk:
        told = await attached(desk, Upload("notes", b"12345", kind))
        with pytest.raises(Forbidden, match="files:read"):
            await content(desk, told)


@pytest.mark.requirement("SLK-5")
async def test_the_token_is_sent_to_nobody_but_slack(desk: Desk) -> None:
    async with stranger() as other:
        for address in (
            f"{other.url}/files-pri/T0TEAM-F1/x.txt",
            "http://files.slack.com/files-pri/T0TEAM-F1/x.txt",
            "https://files.slack.com.evil.test/x.txt",
            "https://files.slack.com:8443/x.txt",
            "https://evilslack.com/x.txt",
            "file:///etc/passwd",
            "//[",
        ):
            told = Attachment(name="x.txt", reference=address)
            with pytest.raises(Forbidden, match="not at an address of Slack's"):
                await content(desk, told)
        assert other.authorizations == []


@pytest.mark.requirement("SLK-5")
async def test_the_token_does_not_follow_a_redirect_to_somewhere_else(desk: Desk) -> None:
    told = await attached(desk, Upload("x.txt", b"12345"))
    async with stranger() as other:
        desk.slack.redirect_files(f"{other.url}/x.txt")
        with pytest.raises(Forbidden, match="not at an address of Slack's"):
            await content(desk, told)
        assert other.authorizations == []
    desk.slack.redirect_files(told.reference)
    with pytest.raises(Forbidden, match="leads nowhere"):
        await content(desk, told)


@pytest.mark.requirement("SLK-5")
async def test_a_file_that_cannot_be_had_says_why(desk: Desk) -> None:
    told = await attached(desk, Upload("x.txt", b"12345"))
    desk.slack.workspace.files.clear()
    with pytest.raises(NotFound):
        await content(desk, told)
    with pytest.raises(Forbidden, match="not kept in Slack"):
        await content(desk, told.model_copy(update={"reference": ""}))
    with pytest.raises(NotFound):
        await content(desk, told.model_copy(update={"reference": "slack-file:F0NONE"}))
    await desk.outage()
    with pytest.raises(Unavailable):
        await content(desk, told)


@pytest.mark.requirement("SLK-5")
async def test_a_file_of_which_only_the_id_came_is_asked_for(desk: Desk) -> None:
    stored = desk.slack.workspace.add_file(Upload("shared.txt", b"from elsewhere"), ANNA)
    told = Attachment(
        name="shared.txt", media_type="text/plain", reference=f"slack-file:{stored.id}"
    )
    assert await content(desk, told) == b"from elsewhere"


def with_file(path: Path, thread: str | None = None) -> OutboundMessage:
    part = FilePart(name="report.txt", path=str(path))
    parts = (TextPart(markdown="Here it is."), part)
    return reply(thread=thread).model_copy(update={"parts": parts})


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "made-by-a-tool"
    path.write_bytes(b"a report")
    return path


@pytest.mark.requirement("SLK-5", "MSG-19")
async def test_a_file_is_sent_into_the_thread_after_its_words(desk: Desk, report: Path) -> None:
    said = await desk.slack.user_says(GENERAL, ANNA, "report!", mention=True)
    message = with_file(report, said.ts)
    receipt = await desk.send(message)
    words, shared = desk.slack.posts(GENERAL, said.ts)
    assert shown([words]) == ["Here it is."]
    (file,) = shared.files
    assert (file.name, file.title, file.content) == ("report.txt", "report.txt", b"a report")
    assert receipt.message_ids == (words.ts, file.id)
    assert await desk.send(message) == receipt
    assert len(desk.slack.posts(GENERAL)) == 2, "what is there is not sent again"


@pytest.mark.requirement("SLK-5", "MSG-11")
@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
async def test_a_file_that_was_surely_not_shared_is_sent_again_and_stands_there_once(
    desk: Desk, report: Path, method: str
) -> None:
    desk.slack.rate_limit(method, retry_after=5)
    with pytest.raises(DeliveryRetry) as caught:
        await desk.send(with_file(report))
    assert caught.value.after_s == 5.0
    desk.clock.advance(5.0)
    await desk.send(with_file(report))
    assert [len(post.files) for post in desk.slack.posts(GENERAL)] == [0, 1]


@pytest.mark.requirement("SLK-5", "MSG-11")
async def test_a_share_without_an_answer_is_looked_for(desk: Desk, report: Path) -> None:
    desk.slack.hang("files.completeUploadExternal", cut=True)
    receipt = await desk.send(with_file(report))
    assert [len(post.files) for post in desk.slack.posts(GENERAL)] == [0, 1]
    (file,) = desk.slack.posts(GENERAL)[1].files
    assert receipt.message_ids[1] == file.id


@pytest.mark.requirement("SLK-5", "MSG-11")
async def test_a_share_that_nobody_answers_for_is_unknown_and_found_by_its_name_later(
    slack: SlackServer, desk: Desk, report: Path
) -> None:
    message = with_file(report)
    slack.hang("files.completeUploadExternal", cut=True)
    slack.break_http("files.info", 502)
    with pytest.raises(DeliveryUnknown):
        await desk.send(message)
    async with desk_at(slack) as later:
        await later.adapter.connect()
        found = await later.adapter.lookup(message, posted=tuple(desk.progress.ids))
        assert found is not None
        assert len(found.message_ids) == 2
        later.progress.ids = list(found.message_ids)
        await later.send(message)
    assert [len(post.files) for post in slack.posts(GENERAL)] == [0, 1]


async def test_a_file_that_is_gone_or_empty_is_named_instead(desk: Desk, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for path in (tmp_path / "never-was", empty):
        await desk.send(with_file(path))
        desk.progress.ids.clear()
    seen = shown(desk.slack.posts(GENERAL))
    assert len(seen) == 4
    assert "report.txt" in seen[1]
    assert "cannot be read" in seen[3]


@pytest.mark.requirement("SLK-5", "MSG-11")
async def test_files_of_one_name_are_told_apart_by_their_marks(
    slack: SlackServer, desk: Desk, report: Path
) -> None:
    """The weak spot of names: one share of the same name is there, another may be."""
    await desk.adapter.connect()
    earlier = with_file(report).model_copy(update={"outbox_id": "out_earlier"})
    await desk.send(earlier)
    desk.progress.ids.clear()
    for arrives in (False, True):
        message = with_file(report).model_copy(update={"outbox_id": f"out_{arrives}"})
        if arrives:
            slack.hang("files.completeUploadExternal", cut=True)
        else:
            slack.break_http("files.completeUploadExternal", 502)
        slack.break_http("files.info", 502)
        with pytest.raises(DeliveryUnknown):
            await desk.send(message)
        found = await desk.adapter.lookup(message, posted=tuple(desk.progress.ids))
        assert found is not None
        assert len(found.message_ids) == 1 + arrives
        desk.progress.ids = list(found.message_ids)
        await desk.send(message)
        desk.progress.ids.clear()
    assert [len(post.files) for post in slack.posts(GENERAL)] == [0, 1] * 3


@pytest.mark.requirement("SLK-5", "REN-3")
@pytest.mark.parametrize("error", ["invalid_blocks", "a_code_of_next_year"])
async def test_where_slack_takes_no_mark_the_file_goes_without(
    desk: Desk, report: Path, error: str
) -> None:
    desk.slack.refuse("files.completeUploadExternal", error, holding="blocks")
    await desk.send(with_file(report))
    shared = desk.slack.posts(GENERAL)[1]
    assert (len(shared.files), shared.blocks) == (1, [])


@pytest.mark.requirement("SLK-5", "MSG-19")
@pytest.mark.parametrize(
    ("method", "error", "said"),
    [
        ("files.getUploadURLExternal", "file_uploads_disabled", "this workspace allows no files"),
        (
            "files.completeUploadExternal",
            "file_type_not_allowed",
            "this workspace does not allow files of its type",
        ),
    ],
)
async def test_a_file_that_slack_will_not_take_is_named_with_the_reason(
    desk: Desk, report: Path, method: str, error: str, said: str
) -> None:
    desk.slack.fail(method, error)
    await desk.send(with_file(report))
    told = f"File `report.txt` could not be sent: {said}."
    assert shown(desk.slack.posts(GENERAL)) == ["Here it is.", told]


@pytest.mark.requirement("SLK-5", "SLK-8")
async def test_a_scope_that_files_lack_stops_no_words_and_is_shown_to_the_operator(
    report: Path,
) -> None:
    lacking = Install(scopes=SCOPES - {"files:write"}, events=installed().events)
    async with (
        SlackServer(lacking).running() as slack,
        desk_at(slack) as desk,
        desk.listening(),
    ):
        with capture_logs() as logs:
            await desk.send(with_file(report))
            await desk.send(with_file(report).model_copy(update={"outbox_id": "out_2"}))
        texts = shown(slack.posts(GENERAL))
        assert texts[0] == "Here it is."
        assert "`report.txt` could not be sent" in texts[1]
        assert "`files:write`" in texts[1]
        status = desk.adapter.status()
        assert status.connected
        assert "files:write" in status.detail
        assert "gatehouse slack manifest" in status.detail
        entries = [one for one in logs if one["event"] == "slack.missing_scope"]
        assert [(one["scope"], one["log_level"]) for one in entries] == [
            ("files:write", "error")
        ], "said once"
        slack.reinstall(SCOPES)
        desk.progress.ids.clear()
        await desk.send(with_file(report).model_copy(update={"outbox_id": "out_3"}))
        assert [len(post.files) for post in slack.posts(GENERAL)][-2:] == [0, 1]
        assert desk.adapter.status().detail == ""


@pytest.mark.requirement("SLK-5", "SLK-8")
@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
@pytest.mark.parametrize("error", ["access_denied", "no_permission", "nobody_listed_this"])
async def test_whatever_slack_refuses_a_file_with_is_said_in_its_chat_and_logged(
    desk: Desk, report: Path, method: str, error: str
) -> None:
    desk.slack.fail(method, error, times=2)
    with capture_logs() as logs:
        await desk.send(with_file(report))
    words, told = shown(desk.slack.posts(GENERAL))
    assert words == "Here it is."
    assert told.startswith("File `report.txt` could not be sent: Slack ")
    (entry,) = [one for one in logs if one["event"] == "slack.file_not_sent"]
    assert (entry["log_level"], entry["refused"]) == ("error", error)


@pytest.mark.requirement("SLK-5", "SLK-8")
@pytest.mark.parametrize(
    ("method", "status"),
    [
        ("files.getUploadURLExternal", 404),
        ("files.completeUploadExternal", 501),
        ("upload", 403),
        ("upload", 413),
    ],
)
async def test_where_no_files_are_taken_at_all_the_chat_is_told(
    desk: Desk, report: Path, method: str, status: int
) -> None:
    desk.slack.break_http(method, status)
    await desk.send(with_file(report))
    told = shown(desk.slack.posts(GENERAL))[1]
    assert told.startswith("File `report.txt` could not be sent: Slack ")


@pytest.mark.requirement("SLK-8")
@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
async def test_a_token_that_is_refused_with_a_file_is_refused_for_everything(
    desk: Desk, report: Path, method: str
) -> None:
    desk.slack.fail(method, "token_revoked")
    with pytest.raises(DeliveryRejected) as caught:
        await desk.send(with_file(report))
    assert caught.value.account_wide


@pytest.mark.requirement("SLK-8", "MSG-11")
async def test_a_history_that_may_not_be_read_holds_no_conversation_up(desk: Desk) -> None:
    desk.slack.fail("conversations.history", "missing_scope")
    with pytest.raises(DeliveryRejected, match="cannot be read") as caught:
        await desk.adapter.lookup(reply("hello"), posted=())
    assert not caught.value.account_wide


@pytest.mark.requirement("SLK-5", "REN-1")
async def test_a_hostile_name_and_caption_notify_nobody(desk: Desk, report: Path) -> None:
    part = FilePart(name="<!channel> `x`.txt", path=str(report))
    words = TextPart(markdown="<!channel> <@U0BEN> look")
    await desk.send(reply().model_copy(update={"parts": (words, part)}))
    said, shared = desk.slack.posts(GENERAL)
    assert "<!channel>" not in said.text
    assert "<!channel>" not in said.visible_text
    assert [block["elements"][0]["type"] for block in shared.blocks] == ["plain_text"]
