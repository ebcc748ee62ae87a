"""Files that are sent by the page or the API reach the model like those of the platforms."""

import base64
import hashlib

import pytest

from runtime.domain.messages import Attachment, InboundMessage
from runtime.domain.transcript import NoticeMessage
from runtime.intake.submissions import OWNER
from runtime.ports.model import ModelRequest
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.harness import Plan, Site
from tests.scenario.http.conftest import Sites
from tests.support.files import png

PICTURE = png(30, 20)


def item(name: str, content: bytes) -> dict[str, str]:
    """A file of a request."""
    data = base64.b64encode(content).decode()
    return {"type": "inline_asset", "name": name, "media_type": "image/png", "data": data}


async def sends(gateway: Site, session: str, *items: dict[str, str]) -> None:
    """The run of these items, to its end."""
    status, done = await gateway.ask(
        "POST", f"/v1/sessions/{session}/runs", {"input_items": list(items)}
    )
    assert status == 202, done
    await gateway.state(str(done["run_id"]), "completed")


def said(request: ModelRequest) -> str:
    """What a request tells of files."""
    return "\n".join(one.text for one in request.messages if isinstance(one, NoticeMessage))


@pytest.mark.requirement("MSG-19", "WEB-1")
async def test_a_picture_of_the_page_goes_to_the_model_and_is_one_line_in_the_conversation(
    sites: Sites,
) -> None:
    model = ScriptedModel(["A garden."])

    def change(plan: Plan) -> None:
        plan.models = ScriptedModels(model)

    async with sites(change=change) as gateway:
        session = await gateway.session()
        text = {"type": "text", "text": "look"}
        await sends(gateway, session, text, item("view.png", PICTURE), item("a.png", b"milk"))
        lines = [one["text"] for one in await gateway.messages(session) if one["kind"] == "system"]
    assert list(model.requests[0].enclosed.values()) == [PICTURE]
    assert "calls it image/png, which its content is not" in said(model.requests[0])
    assert lines == [
        f"view.png: image/png, 30 x 20 pixels, {len(PICTURE)} bytes",
        "a.png: text/plain, 4 bytes",
    ]


@pytest.mark.requirement("MSG-19")
async def test_a_file_that_an_older_version_kept_is_still_found(sites: Sites) -> None:
    model = ScriptedModel(["A garden.", "No."])

    def change(plan: Plan) -> None:
        plan.models = ScriptedModels(model)

    async with sites(change=change) as gateway:
        digest = hashlib.sha256(PICTURE).hexdigest()
        path = f"uploads/{digest[:16]}/view.png"
        (gateway.workspace / path).parent.mkdir(parents=True)
        (gateway.workspace / path).write_bytes(PICTURE)
        session = await gateway.session(key="old")
        for number, name in enumerate((path, "uploads/gone/view.png")):
            file = Attachment(name="view.png", reference=f"sha256:{digest}{number}", path=name)
            if number == 0:
                file = file.model_copy(update={"reference": f"sha256:{digest}"})
            accepted = await gateway.engine.intake.accept(
                InboundMessage(
                    channel="web",
                    account="local",
                    chat_id="old",
                    message_id=f"m{number}",
                    sender=OWNER,
                    text="look",
                    attachments=(file,),
                    received_at_ms=1,
                )
            )
            assert accepted.session_id == session
            await gateway.state(str(accepted.run_id), "completed")
        replies = [m["text"] for m in await gateway.messages(session) if m["kind"] == "assistant"]
    assert list(model.requests[0].enclosed.values()) == [PICTURE]
    assert replies[1] == (
        "No.\n\n(I could not fetch `view.png`: it is not in this workspace, or was changed there.)"
    )
