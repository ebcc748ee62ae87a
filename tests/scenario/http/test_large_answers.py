"""Answers that may be large: few at once, written in pieces, and cut off where nobody reads."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from gateway.http import large_answers
from gateway.http.large_answers import PIECE, json_parts, parts_of
from runtime.domain.decisions import PermissionMode
from runtime.features.tasks.model import TaskOutputView, TaskRecord
from runtime.sessions.bounds import PolicySettings
from tests.conftest import FailAfter
from tests.fakes.sandbox import FakeStdio
from tests.scenario.harness import ADMIN, READER, Plan, Site
from tests.scenario.http.conftest import Sites
from tests.scenario.http.test_tasks import begun, ended, starts

CONTROL = b"\x01" * 4 * 1024 * 1024
"""Six times as long in JSON: more than the system keeps for a reader that reads nothing."""
LONG = "\u4e16" * 2_000_000

RECORD = TaskRecord(
    id="tsk_1",
    title="one",
    description="",
    status="completed",
    owner_agent_id=None,
    blocked_by=(),
    blocks=(),
    output=None,
    metadata={},
    created_at_ms=1,
    updated_at_ms=1,
)


async def control(stdio: FakeStdio) -> int:
    await stdio.write(CONTROL)
    return 0


def commands(plan: Plan) -> None:
    """Commands need no approval."""
    plan.policy = PolicySettings(mode=PermissionMode.BYPASS)
    plan.programs = {"control": control}


@asynccontextmanager
async def unread(gateway: Site, path: str, token: str = ADMIN) -> AsyncIterator[None]:
    """An answer that has begun, and of which nothing more is read."""
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    own.setblocking(False)
    await asyncio.get_running_loop().sock_connect(own, ("127.0.0.1", gateway.port))
    reader, writer = await asyncio.open_connection(sock=own, limit=1)
    try:
        head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
        writer.write(f"GET {path} HTTP/1.1\r\n{head}\r\n".encode())
        assert await reader.readexactly(12) == b"HTTP/1.1 200"
        yield
    finally:
        writer.close()


async def asks(gateway: Site, path: str, token: str = ADMIN) -> tuple[int, str, str | None]:
    """(status, body, `Retry-After`) of a request."""
    headers = {"Authorization": f"Bearer {token}"}
    async with gateway.client.get(f"{gateway.url}{path}", headers=headers) as found:
        return found.status, await found.text(), found.headers.get("Retry-After")


async def printed(gateway: Site) -> str:
    """The path of an output that is large."""
    session, task = await begun(gateway)
    await ended(gateway, session, task)
    return f"/v1/sessions/{session}/tasks/{task['id']}/output"


@pytest.mark.requirement("TSK-2", "API-1", "SEC-7")
@pytest.mark.parametrize(("bound", "who"), [("MOST_OF_ONE", ADMIN), ("MOST", READER)])
async def test_so_many_large_answers_are_written_at_once(
    sites: Sites, monkeypatch: pytest.MonkeyPatch, fail_after: FailAfter, bound: str, who: str
) -> None:
    monkeypatch.setattr(large_answers, bound, 1)
    async with fail_after(), sites(*starts("control"), change=commands) as gateway:
        path = await printed(gateway)
        export = f"{path.partition('/tasks/')[0]}/export"
        large = (f"{path}?full=true", f"{path}?full=true&wait=true", export)
        async with unread(gateway, f"{path}?full=true"):
            for other in large:
                status, text, again = await asks(gateway, other, who)
                problem = json.loads(text)
                assert (status, problem["code"], again) == (429, "queue_full", "5")
                assert "large answers of one token" in problem["detail"]
            # What is short needs no place.
            assert (await asks(gateway, path, who))[0] == 200
        # A place is free again once its reader has gone, and once it is written.
        while (await asks(gateway, export, who))[0] == 429:
            pass
        for other in large:
            assert (await asks(gateway, other, who))[0] == 200


@pytest.mark.requirement("RUN-6", "SEC-7")
async def test_an_export_holds_its_place_until_it_is_read(
    sites: Sites, monkeypatch: pytest.MonkeyPatch, fail_after: FailAfter
) -> None:
    monkeypatch.setattr(large_answers, "MOST_OF_ONE", 1)
    async with fail_after(), sites("hello") as gateway:
        session = await gateway.session()
        await gateway.state(await gateway.says(session, "hi"), "completed")
        grows = "UPDATE messages SET payload = replace(payload, 'hello', ?)"
        await gateway.database.write(lambda conn: conn.exec_driver_sql(grows, (LONG,)), name="test")
        path = f"/v1/sessions/{session}/export"
        async with unread(gateway, path):
            assert (await asks(gateway, path))[0] == 429
        while (found := await asks(gateway, f"{path}?format=json"))[0] == 429:
            pass
        texts = [one["text"] for one in json.loads(found[1])["messages"]]
        assert texts.count(LONG) == 1


@pytest.mark.requirement("TSK-2", "SEC-7")
async def test_who_reads_too_slowly_is_cut_off_in_the_middle(
    sites: Sites, monkeypatch: pytest.MonkeyPatch, fail_after: FailAfter
) -> None:
    monkeypatch.setattr(large_answers, "MOST_OF_ONE", 1)
    async with fail_after(), sites(*starts("control"), change=commands) as gateway:
        path = await printed(gateway)
        monkeypatch.setattr(large_answers, "WHOLE_S", 0.0)
        # The connection ends, and the answer does not look whole.
        with pytest.raises(aiohttp.ClientPayloadError):
            await asks(gateway, f"{path}?full=true")
        monkeypatch.undo()
        assert (await asks(gateway, f"{path}?full=true"))[0] == 200


@pytest.mark.requirement("TSK-2", "API-2")
async def test_a_large_answer_is_the_json_of_its_view(sites: Sites) -> None:
    async with sites(*starts("control"), change=commands) as gateway:
        path = await printed(gateway)
        _, short = await gateway.ask("GET", path)
        status, whole = await gateway.ask("GET", f"{path}?full=true")
        assert status == 200
        # Compared first, because the difference of such texts takes long to show.
        assert (whole.pop("output_text") == CONTROL.decode()) is True
        assert short.pop("output_text") is None
        assert whole == {**short, "output_truncated": False}


@pytest.mark.requirement("TSK-2", "SEC-7")
@pytest.mark.parametrize("text", ["", 'a"\\\n\x01\U0001f600\u2028' * 100_000, None])
def test_a_long_text_is_written_in_short_pieces(text: str | None) -> None:
    view = TaskOutputView(retrieval_status="success", task=RECORD, output_text=text)
    pieces = list(json_parts(view, "output_text"))
    assert (json.loads("".join(pieces)) == view.model_dump(mode="json")) is True
    assert max(len(piece) for piece in pieces) <= 6 * PIECE
    assert "".join(parts_of(text or "")) == (text or "")
