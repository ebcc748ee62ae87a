"""What kind of chat a schedule speaks in is what the platform told, whoever names the place."""

import json

import pytest

from runtime.domain.errors import InvalidInput
from runtime.ports.model import ModelRequest
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.engine import World
from tests.scenario.schedules.scheduling import desk
from tests.scenario.schedules.test_reminders import GROUP, House, goes_on, house

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-1", "CTX-6")
SECRET = "the-safe-is-behind-the-painting"


def reads_notes(request: ModelRequest) -> Said | str:
    """A model that reads the private notes when it is asked for a report, and says what it read."""
    last = request.messages[-1]
    if getattr(last, "text", "") == "report":
        return Said(calls=(("read_file", json.dumps({"path": "memory/MEMORY.md"})),))
    return "".join(one.content for one in getattr(last, "results", ())) or "hello"


async def in_the_group(at: World) -> None:
    await at.says("hello", chat_id=GROUP, kind="channel")
    await at.sees(1, GROUP)
    (at.workspace / "memory").mkdir(exist_ok=True)
    (at.workspace / "memory" / "MEMORY.md").write_text(SECRET, encoding="utf-8")


def place(**more: str) -> dict[str, str]:
    return {"channel": "test", "account": "A1", "chat": GROUP, **more}


async def test_a_group_that_is_named_without_its_kind_hears_nothing_private(house: House) -> None:
    model = ScriptedModel(reads_notes)
    async with house.begins(model) as at:
        await in_the_group(at)
        here = await desk(at)
        made = await here.make(request={"content": "report"}, place=place(thread="other"))
        view = await here.view(made)
        assert view.place.chat_kind == "channel"
        before = len(model.requests)
        await goes_on(at, 61)
        assert len(await here.fires(made)) == 1
        assert not any(SECRET in text for text in at.chat.texts(GROUP))
        assert not any(SECRET in str(request) for request in model.requests[before:])


async def test_another_kind_than_the_chat_has_is_refused(house: House) -> None:
    async with house.begins(ScriptedModel(reads_notes)) as at:
        await in_the_group(at)
        here = await desk(at)
        with pytest.raises(InvalidInput) as refused:
            await here.make(place=place(chat_kind="direct"))
        assert str(refused.value) == "place.chat_kind: must be channel, which this chat is"


async def test_what_a_schedule_was_told_of_a_chat_is_no_proof_for_the_next(house: House) -> None:
    async with house.begins(ScriptedModel(reads_notes)) as at:
        here = await desk(at)
        await here.make(place=place(chat_kind="direct", chat="C-new"))
        with pytest.raises(InvalidInput, match=r"place\.chat_kind: must be given"):
            await here.make(place=place(chat="C-new"))
