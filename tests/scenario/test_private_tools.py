"""Tools about one person: offered and run where nobody else reads along (CTX-6, POL-4)."""

import json
from dataclasses import replace

import pytest

from runtime.domain.messages import ChatKind
from runtime.domain.tools import Effect, Touches
from runtime.engine.feature import Feature
from runtime.policy.decide import Bounds
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from tests.fakes.model import Said, ScriptedModel
from tests.scenario.cards import GUEST, MEMBER, both, results
from tests.scenario.conftest import Worlds, intake
from tests.scenario.engine import OPEN, OWNER
from tests.scenario.test_prompt_blocks import explainer

ACCESS = intake(access={"test": replace(OPEN, dm_policy="open", allow_users=frozenset({MEMBER}))})


class DiaryArguments(Arguments):
    """Nothing is asked."""


class Diary(Tool[DiaryArguments]):
    """What a person wrote for themselves."""

    name = "diary"
    description = "Read the diary."
    arguments = DiaryArguments
    effect = Effect.READ
    example = "{}"

    def offered(self, bounds: Bounds) -> bool:
        return bounds.notes and super().offered(bounds)

    def touches(self, arguments: DiaryArguments, context: ToolContext) -> Touches:
        return Touches(private=True)

    async def run(self, arguments: DiaryArguments, context: ToolContext) -> ToolOutput:
        return ToolOutput("Dear diary.")


DIARIES = Feature(name="diaries", tools=lambda _services: (Diary(),))


@pytest.mark.requirement("CTX-6", "POL-4")
@pytest.mark.parametrize(
    ("kind", "user", "refused"),
    [
        ("direct", OWNER, ""),
        ("direct", MEMBER, ""),
        ("direct", GUEST, "a guest"),
        ("group", OWNER, "a group"),
        ("topic", OWNER, "a group"),
    ],
)
async def test_a_private_tool_is_offered_and_runs_only_in_a_known_person_s_own_chat(
    worlds: Worlds, kind: ChatKind, user: str, refused: str
) -> None:
    model = ScriptedModel([Said(calls=(("diary", json.dumps({})),)), "done"])
    change = both(ACCESS, lambda setup: replace(setup, more=(DIARIES,)))
    async with worlds(model, change=change) as at:
        said = await at.says("hi", user=user, kind=kind, chat_id="P")
        await at.sees(1, "P")
        view = await explainer(at).context(str(said.session_id))
    offered = [one.name for one in model.requests[0].tools]
    assert ("diary" in offered, "diary" in view.tools) == (not refused, not refused)
    (result,) = results(model.requests[1])
    if refused:
        assert result.status == "denied"
        assert f"private notes are not open to {refused}" in result.content
    else:
        assert (result.status, result.content) == ("ok", "Dear diary.")
