"""`/v1/assets` over HTTP, and runs of items that name what was uploaded (RUN-5)."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping

import aiohttp
import pytest

from gateway.http import assets as routes
from runtime.intake.assets import AssetLimits
from tests.conftest import FailAfter
from tests.fakes.model import Gate, ScriptedModel, ScriptedModels
from tests.scenario.harness import ADMIN, READER, Plan, Site
from tests.scenario.http.conftest import Sites
from tests.support.files import png

PICTURE, OTHER, THIRD = png(30, 20), png(20, 30), png(25, 25)


async def uploads(
    gateway: Site,
    content: object,
    query: str = "?name=view.png",
    *,
    token: str | None = ADMIN,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, dict[str, object], Mapping[str, str]]:
    """(status, JSON, headers) of an upload."""
    sent = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with gateway.client.post(
        f"{gateway.url}/v1/assets{query}", data=content, headers={**sent, **(headers or {})}
    ) as response:
        return response.status, await response.json(content_type=None), response.headers


def files(gateway: Site) -> list[str]:
    folder = gateway.workspace / ".gatehouse/assets"
    return [one.name for one in folder.iterdir()] if folder.exists() else []


@pytest.mark.requirement("RUN-5", "API-1")
async def test_an_upload_comes_back_as_a_download_that_no_browser_shows(sites: Sites) -> None:
    page = b"<html><script>alert(1)</script></html>"
    async with sites() as gateway:
        status, made, headers = await uploads(
            gateway, page, "?name=a%22b.html", headers={"Content-Type": "image/png"}
        )
        assert (status, made["media_type"]) == (201, "text/plain")
        path = f"/v1/assets/{made['id']}"
        assert headers["Location"] == path
        again = await uploads(gateway, page, "?name=other", headers={"Content-Type": "text/html"})
        assert again[:2] == (200, made)
        for token in (ADMIN, READER):
            given = {"Authorization": f"Bearer {token}"}
            async with gateway.client.get(f"{gateway.url}{path}", headers=given) as got:
                assert (got.status, await got.read()) == (200, page)
                assert got.headers["Content-Type"] == "application/octet-stream"
                assert got.headers["X-Content-Type-Options"] == "nosniff"
                assert got.headers["Content-Disposition"].startswith('attachment; filename="a_b')
                policy = got.headers["Content-Security-Policy"]
                assert policy.startswith("default-src 'none'; sandbox")
        assert (await gateway.ask("GET", path, token=None))[0] == 401
        assert (await uploads(gateway, b"x", token=READER))[0] == 403
        assert (await uploads(gateway, b"x", token=None))[0] == 401
        assert len(files(gateway)) == 1
        status, problem = await gateway.ask("GET", "/v1/assets/ast_none")
        assert (status, problem["code"], problem["kind"]) == (404, "not_found", "asset")
        (gateway.workspace / ".gatehouse/assets" / files(gateway)[0]).unlink()
        status, problem = await gateway.ask("GET", path)
        assert (status, problem["code"]) == (410, "gone")


@pytest.mark.requirement("RUN-5", "API-3")
async def test_what_is_too_large_is_413_with_the_limit_however_it_is_sent(sites: Sites) -> None:
    def change(plan: Plan) -> None:
        limits = AssetLimits(file_bytes=200_000, owner_bytes=300_000)
        plan.control = {"assets": limits}

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield bytes(100_000)

    async with sites(change=change) as gateway:
        for content in (bytes(200_001), chunks()):
            status, problem, headers = await uploads(gateway, content)
            assert (status, problem["code"]) == (413, "too_large")
            assert "attachments.file_mb" in str(problem["detail"])
            assert headers["Connection"] == "close"
        assert (await uploads(gateway, bytes(200_000)))[0] == 201
        status, problem, _ = await uploads(gateway, b"y" * 100_001)
        assert (status, "attachments.assets_mb" in str(problem["detail"])) == (413, True)
        assert len(files(gateway)) == 1
        # More than any other body may have.
        assert (await gateway.ask("GET", "/v1/status"))[0] == 200


@pytest.mark.requirement("RUN-5")
async def test_an_upload_may_be_larger_than_any_other_body(sites: Sites) -> None:
    def change(plan: Plan) -> None:
        plan.http = {"max_body": 1000}

    async with sites(change=change) as gateway:
        status, made, _ = await uploads(gateway, bytes(500_000))
        assert (status, made["size_bytes"]) == (201, 500_000)


@pytest.mark.requirement("RUN-5", "API-3")
@pytest.mark.parametrize(
    ("content", "query", "headers", "status", "said"),
    [
        (b"", "", {}, 422, "body: must hold the bytes"),
        (b"x", "?name=", {}, 422, "name"),
        (b"x", "?nam=a", {}, 422, "nam"),
        (b"x", "", {"Idempotency-Key": "a b"}, 422, "Idempotency-Key"),
        (aiohttp.FormData({"file": "x"}), "", {}, 415, "neither a form"),
        (b"x", "", {"Content-Encoding": "identity"}, 415, "nor compressed"),
    ],
)
async def test_what_is_wrong_with_an_upload_is_named(
    sites: Sites, content: object, query: str, headers: dict[str, str], status: int, said: str
) -> None:
    async with sites() as gateway:
        found, problem, _ = await uploads(gateway, content, query, headers=headers)
        assert (found, said in str(problem["detail"])) == (status, True), problem
        assert files(gateway) == []


@pytest.mark.requirement("RUN-5", "SEC-7")
async def test_a_slow_upload_ends_and_too_many_at_once_are_sent_back(
    sites: Sites, monkeypatch: pytest.MonkeyPatch, fail_after: FailAfter
) -> None:
    monkeypatch.setattr(routes, "MOST_OF_ONE", 1)
    gate = Gate()

    async def held() -> AsyncIterator[bytes]:
        yield b"begun"
        await gate.wait()
        yield b"done"

    async with fail_after(), sites() as gateway:
        first = asyncio.create_task(uploads(gateway, held()), name="first")
        await gate.reached.wait()
        while not files(gateway):
            await gateway.database.read(lambda conn: None)
        status, problem, headers = await uploads(gateway, b"second")
        assert (status, problem["code"], headers["Retry-After"]) == (429, "queue_full", "2")
        gate.open.set()
        assert (await first)[0] == 201
        assert (await uploads(gateway, b"second"))[0] == 201
        monkeypatch.setattr(routes, "IDLE_S", 0.05)
        slow = Gate()

        async def stuck() -> AsyncIterator[bytes]:
            yield b"begun"
            await slow.wait()
            yield b"never"

        status, problem, _ = await uploads(gateway, stuck())
        assert (status, problem["code"]) == (408, "too_slow")
        assert len(files(gateway)) == 2


@pytest.mark.requirement("RUN-5", "RUN-1", "MSG-19")
async def test_items_reach_the_model_in_their_order(sites: Sites) -> None:
    model = ScriptedModel(["Two gardens."])

    def change(plan: Plan) -> None:
        plan.models = ScriptedModels(model)

    async with sites(change=change) as gateway:
        session = await gateway.session()
        _, made, _ = await uploads(gateway, PICTURE)
        _, third, _ = await uploads(gateway, THIRD, "")
        items = [
            {"type": "text", "text": "before"},
            {"type": "asset_reference", "asset_id": made["id"]},
            {"type": "text", "text": "between"},
            {
                "type": "inline_asset",
                "name": "b.png",
                "data": base64.b64encode(OTHER).decode(),
            },
            {"type": "asset_reference", "asset_id": third["id"], "name": "c.png"},
            {"type": "text", "text": "behind"},
        ]
        path = f"/v1/sessions/{session}/runs"
        status, done = await gateway.ask("POST", path, {"input_items": items})
        assert status == 202, done
        await gateway.state(str(done["run_id"]), "completed")
        shown = await gateway.messages(session)
        assert shown[0]["text"] == (
            "before\n\n[file: view.png]\n\nbetween\n\n[file: b.png]\n\n[file: c.png]\n\nbehind"
        )
        lines = [str(one["text"]) for one in shown if one["kind"] == "system"]
        assert [line.partition(":")[0] for line in lines] == ["view.png", "b.png", "c.png"]
    assert list(model.requests[0].enclosed.values()) == [PICTURE, OTHER, THIRD]


@pytest.mark.requirement("RUN-5", "RUN-1", "API-3")
async def test_an_upload_that_is_not_there_is_named_by_its_place(sites: Sites) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        path = f"/v1/sessions/{session}/runs"
        for asset_id, rule in (("ast_none", "/v1/assets"), ("../x", "pattern")):
            items = [
                {"type": "text", "text": "look"},
                {"type": "asset_reference", "asset_id": asset_id},
            ]
            status, problem = await gateway.ask("POST", path, {"input_items": items})
            assert status == 422
            assert "input_items.1" in str(problem["field"])
            assert "asset_id" in str(problem["field"])
            assert rule in str(problem["rule"])
        assert (await gateway.ask("GET", "/v1/runs"))[1]["items"] == []


@pytest.mark.requirement("RUN-5", "RUN-6")
async def test_a_deleted_session_takes_along_what_only_it_used(sites: Sites) -> None:
    async with sites("ok") as gateway:
        session = await gateway.session()
        _, made, _ = await uploads(gateway, PICTURE)
        items = [{"type": "asset_reference", "asset_id": made["id"]}]
        _, done = await gateway.ask("POST", f"/v1/sessions/{session}/runs", {"input_items": items})
        await gateway.state(str(done["run_id"]), "completed")
        async with gateway.feed(f"session_id={session}&last_event_id=0") as feed:
            await feed.until("delivery.sent")
        assert (await gateway.ask("DELETE", f"/v1/sessions/{session}"))[0] == 204
        assert (await gateway.ask("GET", f"/v1/assets/{made['id']}"))[0] == 404
        assert files(gateway) == []
        assert list((gateway.workspace / "uploads").rglob("*.png")) == []
