"""What the agent sent, as the page and programs get it: a download that nobody else can fetch."""

import json

import pytest
from pydantic import SecretStr

from gateway.cli.client import GatewayClient
from gateway.cli.conversation import Conversation
from tests.fakes.model import Said
from tests.scenario.harness import ADMIN, READER, Site
from tests.scenario.http.conftest import Sites

HTML = "<!doctype html><script>alert(document.cookie)</script>"


def sends(path: str, caption: str = "") -> Said:
    """A response that sends a file."""
    return Said(calls=(("send_file", json.dumps({"path": path, "caption": caption})),))


async def sent(gateway: Site, session: str) -> dict[str, object]:
    """The message with the file, once the reply behind it was delivered."""
    async with gateway.feed(f"session_id={session}") as feed:
        await gateway.says(session, "send it")
        for _ in range(2):
            await feed.until("delivery.sent")
        (event,) = [
            one.data
            for one in feed.seen
            if one.kind == "message" and not one.data["final"] and one.data["parts"]
        ] or [{}]
        assert "/outputs/" not in json.dumps(event)
    (found,) = [one for one in await gateway.messages(session, html="1") if one["kind"] == "file"]
    return found


@pytest.mark.requirement("MSG-19", "WEB-1", "WEB-2")
async def test_a_file_is_a_download_and_never_a_page(sites: Sites) -> None:
    async with sites(sends("page.html", "Look at **this**"), "There.") as gateway:
        (gateway.workspace / "files/page.html").write_text(HTML)
        session = await gateway.session()
        found = await sent(gateway, session)
        (file,) = found["files"]
        assert (file["name"], file["size_bytes"]) == ("page.html", len(HTML))
        assert "path" not in file
        assert "<strong>this</strong>" in str(found["html"])
        kinds = [one["kind"] for one in await gateway.messages(session)]
        assert kinds == ["user", "assistant", "file", "assistant"]
        headers = {"Authorization": f"Bearer {READER}"}
        async with gateway.client.get(f"{gateway.url}{file['url']}", headers=headers) as answer:
            assert answer.status == 200
            assert await answer.text() == HTML
            assert answer.headers["Content-Type"] == "application/octet-stream"
            assert answer.headers["Content-Disposition"] == (
                "attachment; filename=\"page.html\"; filename*=UTF-8''page.html"
            )
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert "sandbox" in answer.headers["Content-Security-Policy"]
            assert "script-src" not in answer.headers["Content-Security-Policy"]


@pytest.mark.requirement("MSG-19", "WEB-2")
async def test_a_file_is_not_for_who_has_no_token_and_no_other_place_is_one(sites: Sites) -> None:
    async with sites(sends("a.txt"), "There.") as gateway:
        (gateway.workspace / "files/a.txt").write_text("a")
        found = await sent(gateway, await gateway.session())
        (file,) = found["files"]
        url = str(file["url"])
        assert (await gateway.ask("GET", url, token=None))[0] == 401
        assert (await gateway.ask("GET", url, token="wrong"))[0] == 401
        row = url.rsplit("/", 1)[0]
        for wrong in (f"{row}/1", f"{row}/999", "/v1/files/out_none/0", f"{row}/..%2f0"):
            status, problem = await gateway.ask("GET", wrong, token=ADMIN)
            assert status == 404, (wrong, problem)


@pytest.mark.requirement("MSG-19")
async def test_a_copy_that_is_gone_or_changed_is_said_to_be_gone(sites: Sites) -> None:
    async with sites(sends("a.txt"), "There.") as gateway:
        (gateway.workspace / "files/a.txt").write_text("a")
        found = await sent(gateway, await gateway.session())
        (file,) = found["files"]
        (copy,) = (gateway.workspace / ".gatehouse" / "outputs" / "sent").iterdir()
        for change in (lambda: copy.write_text("b"), copy.unlink):
            change()
            status, problem = await gateway.ask("GET", str(file["url"]))
            assert (status, problem["code"]) == (410, "gone")


@pytest.mark.requirement("MSG-19")
async def test_a_caption_with_markup_stays_words(sites: Sites) -> None:
    caption = "<img src=x onerror=alert(1)> [x](javascript:alert(1))"
    async with sites(sends("a.txt", caption), "There.") as gateway:
        (gateway.workspace / "files/a.txt").write_text("a")
        found = await sent(gateway, await gateway.session())
    assert "<img" not in str(found["html"])
    assert 'href="javascript' not in str(found["html"])


@pytest.mark.requirement("MSG-19", "TTY-1")
async def test_the_terminal_says_where_a_file_can_be_had(sites: Sites) -> None:
    async with sites(sends("a.txt", "Look:"), "There.") as gateway:
        (gateway.workspace / "files/a.txt").write_text("a")
        session = await gateway.session()
        found = await sent(gateway, session)
        (file,) = found["files"]
        async with GatewayClient(gateway.url, SecretStr(ADMIN)) as client:
            conversation = Conversation(client, {"id": session})
            await conversation.refresh()
    shown = [(one.kind, one.text) for one in conversation.entries if one.text]
    assert shown[1] == ("file", f"Look:\n\nFile `a.txt`: `{gateway.url}{file['url']}`")


@pytest.mark.requirement("POL-1")
async def test_why_a_file_may_be_sent_is_explained_and_nothing_is_sent(sites: Sites) -> None:
    async with sites() as gateway:
        (gateway.workspace / "files/a.txt").write_text("a")
        session = await gateway.session()
        asked = {"tool": "send_file", "arguments": {"path": "a.txt"}}
        for trust, verdict, rule in (
            ("owner", "allow", "default on what goes to the chat of the session itself"),
            ("guest", "deny", "a guest causes no side effects"),
        ):
            status, said = await gateway.ask(
                "POST", f"/v1/sessions/{session}/policy/explain", {**asked, "trust": trust}
            )
            assert (status, said["verdict"]) == (200, verdict)
            assert rule in str(said["rule"])
        assert not (gateway.workspace / ".gatehouse" / "outputs" / "sent").exists()
