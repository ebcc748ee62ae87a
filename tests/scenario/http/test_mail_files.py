"""Files that come with a message to a mailbox, by the API, on both databases."""

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from sqlalchemy import func, select

from runtime.domain.errors import NotFound
from runtime.features.mailboxes.control import MailboxControl
from runtime.features.mailboxes.model import Mail
from runtime.features.mailboxes.settings import MailboxSettings
from runtime.features.mailboxes.tables import mailbox_messages
from runtime.intake import uploads as inline_files
from runtime.intake.assets import AssetLimits, Assets, AssetUse
from runtime.intake.uploads import Upload
from runtime.ports.model import ModelRequest
from runtime.sessions.tables import asset_uses
from tests.contract.store_support import (
    dialect,
    migrated_url,
    schema_templates,
)
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.harness import Plan, Site, site
from tests.scenario.http.test_assets import uploads
from tests.scenario.subagents.children import name_of, spawn, told
from tests.support.files import png

__all__ = ["dialect", "migrated_url", "schema_templates"]

PICTURE, OTHER, THIRD = png(30, 20), png(20, 30), png(25, 25)


def inline(content: bytes, name: str = "b.png") -> dict[str, object]:
    return {"type": "inline_asset", "name": name, "data": base64.b64encode(content).decode()}


def reference(asset_id: object, **asked: object) -> dict[str, object]:
    return {"type": "asset_reference", "asset_id": asset_id, **asked}


@dataclass
class House:
    """A conversation with an agent `one`, which works until `work` is let go."""

    plan: Plan
    work: Gate
    requests: Sequence[ModelRequest] = ()
    root: str = ""
    one: str = ""
    looks: bool = False
    """Whether the agent uses a tool before it answers a message."""

    def script(self, request: ModelRequest) -> Said | str:
        text = told(request)
        if "hush" in text:
            return "Hello."
        if self.looks and "wrote to you" in text:
            self.looks = False
            return Said("", calls=(("read_file", '{"path": "AGENTS.md"}'),))
        if name_of(request):
            # Only its first run is held.
            return Said("Looked.", before=self.work) if "wrote to you" not in text else "Seen."
        return "Begun." if "accepted" in text else spawn(task="x", id="one", mode="background")

    @asynccontextmanager
    async def stands(self) -> AsyncIterator[Site]:
        async with asyncio.timeout(300), site(self.plan) as gateway:
            self.root = await gateway.session()
            await gateway.says(self.root, "look")
            await self.work.reached.wait()
            while not self.one:
                _, found = await gateway.ask("GET", f"/v1/agents/summaries?root={self.root}")
                self.one = "".join(str(item["session_id"]) for item in found["items"])
            yield gateway

    async def sends(
        self, gateway: Site, payload: Mapping[str, object], *, key: str = "", **asked: object
    ) -> tuple[int, dict[str, object]]:
        """(status, JSON) of a message to `one`."""
        body = {"from": self.root, "to": self.one, "payload": {"type": "task", **payload}, **asked}
        headers = {"Idempotency-Key": key} if key else None
        return await gateway.ask("POST", "/v1/mailboxes", body, headers=headers)

    async def waiting(self, gateway: Site) -> list[dict[str, object]]:
        _, box = await gateway.ask("GET", f"/v1/agents/{self.one}/mailbox")
        return list(box["items"])

    async def reads(self, gateway: Site) -> ModelRequest:
        """What the model is asked once the message that waits is read."""
        (item,) = await self.waiting(gateway)
        self.work.open.set()
        run = await gateway.state(str(item["run_id"]), "completed")
        assert (run["kind"], run["session_id"]) == ("mailbox_delivery", self.one)
        return next(one for one in self.requests if "wrote to you" in told(one))

    def files(self) -> list[str]:
        """The files that the agent has."""
        folder = self.plan.workspace / "uploads"
        return sorted(one.name for one in folder.rglob("*") if one.is_file())


@pytest.fixture
def house(tmp_path: Path, migrated_url: str) -> House:
    made = House(Plan(tmp_path, ScriptedModels(), database=migrated_url), Gate())
    model = ScriptedModel(made.script)
    made.plan.models, made.requests = ScriptedModels(model), model.requests
    return made


async def left(gateway: Site) -> tuple[int, int]:
    """How many messages there are, and how many uses of uploads."""
    mails, uses = (select(func.count()).select_from(one) for one in (mailbox_messages, asset_uses))
    return await gateway.database.read(
        lambda conn: (conn.execute(mails).scalar_one(), conn.execute(uses).scalar_one())
    )


@pytest.mark.requirement("MBX-1", "RUN-5", "MSG-19")
async def test_items_reach_the_agent_in_their_order(house: House) -> None:
    async with house.stands() as gateway:
        _, view, _ = await uploads(gateway, PICTURE)
        _, third, _ = await uploads(gateway, THIRD, "")
        items = [
            {"type": "text", "text": "before"},
            reference(view["id"]),
            {"type": "text", "text": "between"},
            inline(OTHER),
            reference(third["id"], name="c.png"),
            {"type": "text", "text": "behind"},
        ]
        status, receipt = await house.sends(gateway, {"input_items": items})
        assert status == 202, receipt
        (item,) = await house.waiting(gateway)
        shown = item["payload"]["input_items"]
        assert [one["type"] for one in shown] == [one["type"] for one in items]
        assert shown[1]["asset_id"] == view["id"]
        assert shown[3] == {
            "type": "inline_asset",
            "name": "b.png",
            "media_type": "application/octet-stream",
        }
        request = await house.reads(gateway)
        assert list(request.enclosed.values()) == [PICTURE, OTHER, THIRD]
        said = told(request)
        order = ("before", "[file: view.png]", "between", "[file: b.png]", "[file: c.png]")
        places = [said.index(one) for one in (*order, "behind")]
        assert places == sorted(places)
        assert "It came with 3 files." in said
        assert said.count("It was passed on or replied to") == 3
        assert house.files() == ["b.png", "c.png", "view.png"]
        kept = select(mailbox_messages.c.payload)
        payload = await gateway.database.read(lambda conn: conn.execute(kept).scalar_one())
        assert base64.b64encode(OTHER).decode() not in payload


@pytest.mark.requirement("MBX-1", "RUN-5")
@pytest.mark.parametrize("text", ["look at these", None])
async def test_uploads_reach_the_agent_behind_the_text_or_alone(
    house: House, text: str | None
) -> None:
    async with house.stands() as gateway:
        _, first, _ = await uploads(gateway, PICTURE)
        _, second, _ = await uploads(gateway, OTHER, "?name=other.png")
        payload = {"asset_ids": [second["id"], first["id"]]}
        status, _ = await house.sends(
            gateway, payload if text is None else {**payload, "text": text}
        )
        assert status == 202
        (item,) = await house.waiting(gateway)
        assert item["payload"]["asset_ids"] == [second["id"], first["id"]]
        request = await house.reads(gateway)
        assert list(request.enclosed.values()) == [OTHER, PICTURE]
        assert text is None or text in told(request)


@pytest.mark.requirement("MBX-1", "RUN-5")
async def test_files_of_messages_that_one_run_reads_are_told_apart(house: House) -> None:
    house.looks = True
    async with house.stands() as gateway:
        for content in (PICTURE, OTHER):
            items = {"input_items": [inline(content, "same.png")]}
            assert (await house.sends(gateway, items))[0] == 202
        first, second = await house.waiting(gateway)
        assert first["run_id"] == second["run_id"]
        house.work.open.set()
        await gateway.state(str(first["run_id"]), "completed")
        first_step, second_step = [one for one in house.requests if "wrote to you" in told(one)]
        assert list(first_step.enclosed.values()) == [PICTURE, OTHER]
        assert list(second_step.enclosed.values()) == [PICTURE, OTHER]
        assert told(second_step).count("same.png") == told(first_step).count("same.png")


@pytest.mark.requirement("MBX-1", "RUN-5", "MBX-3")
async def test_a_message_that_was_taken_has_its_files_also_after_a_crash(house: House) -> None:
    async with house.stands() as gateway:
        assert (await house.sends(gateway, {"input_items": [inline(PICTURE)]}))[0] == 202
        (item,) = await house.waiting(gateway)
    house.work.open.set()
    async with asyncio.timeout(300), site(house.plan) as gateway:
        await gateway.state(str(item["run_id"]), "completed")
    request = next(one for one in house.requests if "wrote to you" in told(one))
    assert list(request.enclosed.values()) == [PICTURE]


@pytest.mark.requirement("MBX-1", "RUN-5", "API-3")
async def test_what_is_wrong_with_a_file_is_named_and_nothing_is_kept(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline_files, "MAX_BYTES", 1000)

    def change(ids: Sequence[object]) -> list[tuple[dict[str, object], int, str]]:
        good = ids[0]
        small: dict[str, object] = {"type": "text", "text": "x"}
        items = "payload.input_items"
        return [
            ({"text": "x", "asset_ids": [good, "ast_none"]}, 422, "payload.asset_ids.1"),
            ({"text": "x", "asset_ids": [good, "../x"]}, 422, "payload.asset_ids.1"),
            ({"text": "x", "asset_ids": [good] * 51}, 422, "payload.asset_ids"),
            ({"input_items": [inline(OTHER), reference("ast_none")]}, 422, f"{items}.1.asset_id"),
            (
                {"input_items": [inline(OTHER), {**inline(b""), "data": "?"}]},
                422,
                f"{items}.1.data",
            ),
            (
                {"input_items": [inline(OTHER), inline(bytes(1001))]},
                422,
                f"{items}.1.data",
            ),
            ({"input_items": [small] * 51}, 422, items),
            ({"input_items": [{"type": "text", "text": "y" * 20_001}]}, 422, items),
            ({"asset_ids": [good], "input_items": [small]}, 422, "payload"),
            ({"input_items": [{"type": "text", "text": " "}]}, 422, "payload"),
        ]

    async with house.stands() as gateway:
        _, made, _ = await uploads(gateway, PICTURE)
        for payload, status, field in change([made["id"]]):
            found, problem = await house.sends(gateway, payload)
            assert (found, problem.get("field")) == (status, field), problem
            assert await left(gateway) == (0, 0)
            assert house.files() == []


@pytest.mark.requirement("MBX-1", "RUN-5", "API-3")
async def test_more_than_an_agent_may_keep_is_refused_whole(house: House) -> None:
    house.plan.control = {"assets": AssetLimits(session_bytes=len(PICTURE) + len(OTHER) - 1)}
    async with house.stands() as gateway:
        _, made, _ = await uploads(gateway, PICTURE)
        both = {"input_items": [reference(made["id"]), inline(OTHER)]}
        status, problem = await house.sends(gateway, both)
        assert (status, problem["code"]) == (413, "too_large")
        assert "attachments.session_mb" in str(problem["detail"])
        assert await left(gateway) == (0, 0)
        assert house.files() == []
        assert (await house.sends(gateway, {"asset_ids": [made["id"]]}))[0] == 202


@pytest.mark.requirement("MBX-1", "RUN-4", "RUN-5")
async def test_a_message_that_was_sent_before_brings_no_other_file(house: House) -> None:
    async with house.stands() as gateway:
        sent = {"input_items": [inline(PICTURE, "a.png")]}
        other = {"input_items": [inline(OTHER, "z.png")]}
        _, first = await house.sends(gateway, sent, key="k")
        _, again = await house.sends(gateway, sent, key="k")
        assert again == {**first, "duplicate": True}
        status, _ = await house.sends(gateway, other, key="k")
        assert status == 409
        _, named = await house.sends(gateway, sent, message_id="m")
        _, twice = await house.sends(gateway, other, message_id="m")
        assert (named["duplicate"], twice["duplicate"]) == (False, True)
        assert twice["message_id"] == "m"
        assert len(await house.waiting(gateway)) == 2
        assert house.files() == ["a.png"]
        # The first answer holds, whatever became of the agent since.
        await gateway.ask("POST", f"/v1/sessions/{house.one}/interrupt")
        for more in ({"key": "k"}, {"message_id": "m"}):
            status, late = await house.sends(gateway, sent, **more)
            assert (status, late.get("duplicate")) == (202, True), late


@pytest.mark.requirement("MBX-1", "RUN-5")
async def test_many_at_once_with_one_id_are_one_message(house: House) -> None:
    async with house.stands() as gateway:
        _, made, _ = await uploads(gateway, PICTURE)
        payload = {"text": "x", "asset_ids": [made["id"]]}
        sending = [house.sends(gateway, payload, message_id="m") for _ in range(5)]
        found = await asyncio.gather(*sending)
        assert sorted(bool(receipt["duplicate"]) for _, receipt in found) == [False] + [True] * 4
        assert await left(gateway) == (1, 1)
        request = await house.reads(gateway)
        assert list(request.enclosed.values()) == [PICTURE]


@pytest.mark.requirement("MBX-1", "RUN-5")
async def test_a_refused_message_leaves_no_file(house: House) -> None:
    house.plan.services = {"mailboxes": MailboxSettings(most_waiting=1)}
    sent: dict[str, object] = {"input_items": [inline(PICTURE)]}
    async with house.stands() as gateway:
        other = await gateway.session()
        assert (await house.sends(gateway, sent, to=other))[0] == 403
        assert (await house.sends(gateway, sent, to="ses_none"))[0] == 404
        assert (await house.sends(gateway, sent, **{"from": other}))[0] == 409
        assert (await house.sends(gateway, {"text": "first"}))[0] == 202
        assert (await house.sends(gateway, sent))[0] == 429
        assert house.files() == []
        await gateway.ask("POST", f"/v1/sessions/{house.one}/interrupt")
        assert (await house.sends(gateway, sent))[0] == 409
        assert house.files() == []


@pytest.mark.requirement("MBX-1", "RUN-6")
async def test_a_file_for_an_agent_that_is_gone_by_then_is_not_left_behind(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    amid, check = Gate(), Assets.check

    async def halting(self: Assets, session_id: str, files: Sequence[Upload | AssetUse]) -> None:
        await check(self, session_id, files)
        await amid.wait()

    monkeypatch.setattr(Assets, "check", halting)
    async with house.stands() as gateway:
        other = await gateway.session()
        allowed = MailboxSettings(allowed=frozenset({(house.root, other)}))
        desk = MailboxControl(gateway.engine.units, gateway.services.control.assets, allowed)
        body = {"type": "task", "input_items": [inline(PICTURE)]}
        mail = Mail.model_validate({"from": house.root, "to": other, "payload": body})
        sending = asyncio.create_task(desk.post(mail), name="message")
        await amid.reached.wait()
        assert (await gateway.ask("DELETE", f"/v1/sessions/{other}"))[0] == 204
        amid.open.set()
        with pytest.raises(NotFound):
            await sending
        assert house.files() == []


@pytest.mark.requirement("MBX-1", "RUN-6")
async def test_the_files_of_an_agent_stay_where_the_sender_is_gone_by_then(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    amid, check = Gate(), Assets.check

    async def halting(self: Assets, session_id: str, files: Sequence[Upload | AssetUse]) -> None:
        await check(self, session_id, files)
        await amid.wait()

    async with house.stands() as gateway:
        assert (await house.sends(gateway, {"input_items": [inline(OTHER, "old.png")]}))[0] == 202
        sender = await gateway.session()
        await gateway.state(await gateway.says(sender, "hush"), "completed")
        async with gateway.feed(f"session_id={sender}&last_event_id=0") as feed:
            await feed.until("delivery.sent")
        monkeypatch.setattr(Assets, "check", halting)
        allowed = MailboxSettings(allowed=frozenset({(sender, house.root)}))
        desk = MailboxControl(gateway.engine.units, gateway.services.control.assets, allowed)
        body = {"type": "task", "input_items": [inline(PICTURE)]}
        mail = Mail.model_validate({"from": sender, "to": house.one, "payload": body})
        sending = asyncio.create_task(desk.post(mail), name="message")
        await amid.reached.wait()
        assert (await gateway.ask("DELETE", f"/v1/sessions/{sender}"))[0] == 204
        amid.open.set()
        with pytest.raises(NotFound):
            await sending
        assert "old.png" in house.files()
