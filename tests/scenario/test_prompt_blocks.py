"""What a feature tells the model with the newest turn: read once a turn, for those who may know."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from sqlalchemy import func, select

from gateway.explain import Explainer
from runtime.agent.prompt_blocks import Audience, PromptBlock, prompt_block
from runtime.domain.messages import ChatKind
from runtime.domain.people import Trust
from runtime.engine.feature import Feature
from runtime.sessions.tables import accounts
from runtime.store import Connection
from runtime.views.reader import Views
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.scenario.cards import GUEST, MEMBER, both, call, offering
from tests.scenario.conftest import intake
from tests.scenario.engine import OPEN, OWNER, Setup, World, setup_at, world
from tests.scenario.tools import Note

__all__ = ["dialect", "migrated_url", "schema_templates"]

ACCESS = intake(access={"test": replace(OPEN, dm_policy="open", allow_users=frozenset({MEMBER}))})
pytestmark = pytest.mark.requirement("CTX-2")


@dataclass
class Asked:
    """A block that counts accounts for people who are alone, and remembers for whom it did."""

    audiences: list[Audience] = field(default_factory=list)

    def load(self, conn: Connection, audience: Audience) -> int | None:
        self.audiences.append(audience)
        if not audience.private:
            return None
        return conn.execute(select(func.count()).select_from(accounts)).scalar_one()

    @staticmethod
    def render(count: int | None) -> str:
        return "" if count is None else f"Asked {count}.\n"

    @property
    def block(self) -> PromptBlock:
        return prompt_block("asked", self.load, self.render)


def telling(*blocks: PromptBlock) -> Callable[[Setup], Setup]:
    """A feature for each block, beside the others."""
    more = tuple(Feature(name=block.name, prompt=(block,)) for block in blocks)
    return both(ACCESS, lambda setup: replace(setup, more=more))


def placed(tmp_path: Path, url: str, model: ScriptedModel, *changes: Callable[[Setup], Setup]):
    """A world on either database."""
    setup = setup_at(tmp_path, url, ScriptedModels(model), alone=url.startswith("sqlite"))
    return world(both(*changes)(setup))


def explainer(at: World) -> Explainer:
    parts, settings = at.engine.parts, at.engine.settings
    return Explainer(
        Views(at.database),
        parts.workspace,
        parts.registry,
        parts.clock,
        settings.policy,
        settings.agent,
        at.engine.blocks,
    )


@pytest.mark.requirement("CTX-3")
async def test_blocks_come_with_the_newest_turn_in_the_order_of_the_features(
    tmp_path: Path, migrated_url: str
) -> None:
    asked = Asked()
    silent = PromptBlock("silent", lambda _conn, _audience: " \n")
    last = PromptBlock("last", lambda _conn, audience: f"For {audience.session.key}.")
    model = ScriptedModel([Said(calls=(call("a"),)), "one", "two"])
    change = (telling(asked.block, silent, last), offering(Note()))
    async with placed(tmp_path, migrated_url, model, *change) as at:
        await at.says("hi")
        await at.sees(1)
        assert len(asked.audiences) == 1, "two steps are one turn"
        await at.says("and again")
        await at.sees(2)
        assert len(asked.audiences) == 2
    assert [one.speaker.user_id for one in asked.audiences] == [OWNER, OWNER]
    for request in model.requests:
        assert request.present.splitlines()[-2:] == ["Asked 1.", f"For test:A1:D-{OWNER}."]
        assert request.system == model.requests[0].system
        assert "Asked" not in request.system


@pytest.mark.requirement("CTX-6")
@pytest.mark.parametrize(
    ("kind", "user", "private"),
    [
        ("direct", OWNER, True),
        ("direct", MEMBER, True),
        ("direct", GUEST, False),
        ("group", OWNER, False),
    ],
)
async def test_a_block_knows_whether_its_audience_is_private(
    tmp_path: Path, migrated_url: str, kind: ChatKind, user: str, private: bool
) -> None:
    asked, model = Asked(), ScriptedModel(["hello"])
    async with placed(tmp_path, migrated_url, model, telling(asked.block)) as at:
        said = await at.says("hi", user=user, kind=kind, chat_id="P")
        await at.sees(1, "P")
        view = await explainer(at).context(str(said.session_id))
    assert [one.private for one in asked.audiences] == [private, private]
    (request,) = model.requests
    assert ("Asked" in request.present, "Asked" in view.present) == (private, private)


async def test_a_context_is_explained_with_the_blocks_of_the_next_turn(
    tmp_path: Path, migrated_url: str
) -> None:
    asked, model = Asked(), ScriptedModel(["hello"])
    async with placed(tmp_path, migrated_url, model, telling(asked.block)) as at:
        said = await at.says("/help")
        await at.sees(1)
        explain = explainer(at)
        view = await explain.context(str(said.session_id))
        assert (asked.audiences, "Asked" in view.present) == ([], False), "nobody has asked yet"
        await at.says("hi")
        await at.sees(2)
        assert "Asked 1." in (await explain.context(str(said.session_id))).present
        await explain.context(str(said.session_id), trust=Trust.GUEST)
    turn, as_owner, as_guest = asked.audiences
    assert turn == as_owner
    assert (as_guest.speaker.trust, as_guest.private) == (Trust.GUEST, False)
