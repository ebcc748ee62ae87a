"""What is explained of a child's call is what policy says of it (POL-1, SUB-18)."""

from pathlib import Path

import pytest
from pydantic import JsonValue

from gateway.explain import Explainer
from runtime.domain.people import Trust
from runtime.views.reader import Views
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Said
from tests.scenario.cast import Cast, played, spawn, tree

__all__ = ["dialect", "migrated_url", "schema_templates"]

CALLS: tuple[tuple[str, str, dict[str, JsonValue], str], ...] = (
    ("look", "write_file", {"path": "a", "content": "a"}, "tool surface: "),
    ("look", "exec", {"command": "rm a"}, "mode: plan mode runs commands that only read"),
    ("bound", "read_file", {"path": "SOUL.md"}, "capability scope: paths: "),
    ("free", "write_file", {"path": "USER.md", "content": "a"}, "privacy: a subagent writes no"),
    ("free", "write_file", {"path": "a", "content": "a"}, "mode: plan mode is read-only"),
)


@pytest.mark.requirement("POL-1", "SUB-18")
async def test_a_childs_call_is_explained_with_all_that_bounds_it(
    tmp_path: Path, migrated_url: str
) -> None:
    calls = (
        spawn(task="x", id="look"),
        spawn(task="x", id="bound", type="general", paths=["notes"]),
        spawn(task="x", id="free", type="general"),
    )
    cast = Cast([Said(calls=calls), "Done."], {name: ["a"] for name in ("look", "bound", "free")})
    async with played(tmp_path, migrated_url, cast) as at:
        root = (await at.says("go")).session_id
        assert await at.sees(1) == ["Done."]
        parts, settings = at.engine.parts, at.engine.settings
        explainer = Explainer(
            Views(at.database),
            parts.workspace,
            parts.registry,
            parts.clock,
            settings.policy,
            settings.agent,
            at.engine.blocks,
        )
        there = await tree(at, root)
        said = []
        for place, (name, tool, arguments, _) in enumerate(CALLS):
            if place == len(CALLS) - 1:
                await at.says("/plan")
            found = await explainer.decision(
                there[name].session_id, tool=tool, arguments=arguments, trust=Trust.OWNER
            )
            assert found.verdict == "deny"
            said.append(found.rule)
        shown = await explainer.context(there["look"].session_id)
    for rule, (*_, begins) in zip(said, CALLS, strict=True):
        assert rule.startswith(begins)
    assert "read_file" in shown.tools
    assert "write_file" not in shown.tools
