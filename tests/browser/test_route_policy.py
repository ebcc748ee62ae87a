"""The model of a conversation, chosen on the page (WEB-3)."""

import pytest
from playwright.async_api import Page

from tests.browser.conftest import Chats, Visits
from tests.browser.test_chat import ready
from tests.fakes.model import ScriptedModel, ScriptedModels
from tests.scenario.harness import Plan

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.requirement("WEB-3", "RUN-1")
async def test_another_model_keeps_the_generation_that_a_program_set(
    chats: Chats, visits: Visits
) -> None:
    """Also one that was set while the page was open; what the model refuses goes."""

    def plays(plan: Plan) -> None:
        other = ScriptedModel(name="scripted:other")
        strict = ScriptedModel(name="scripted:strict", refused=["temperature", "top_p"])
        plan.models = ScriptedModels(ScriptedModel(), other, strict)

    async def chosen(page: Page, label: str) -> tuple[object, object]:
        async with page.expect_response(lambda one: one.url.endswith("/route-policy") and one.ok):
            await page.get_by_label("Model").select_option(label=label)
        _, view = await gateway.ask("GET", f"/v1/sessions/{session}")
        return view["model"], view["generation"]

    async with chats(change=plays) as gateway, visits(gateway) as page:
        session = await gateway.session()
        await page.goto(f"{gateway.url}/#{session}")
        await page.reload()
        await ready(page)
        path = f"/v1/sessions/{session}/route-policy"
        writes = {"temperature": 0.5, "top_p": 0.5, "max_output_tokens": 300}
        assert (await gateway.ask("PUT", path, {"generation": writes}))[0] == 200
        whole = {**writes, "reasoning_effort": None}
        assert await chosen(page, "scripted:other") == ("scripted:other", whole)
        assert await chosen(page, "scripted:model") == (None, whole)
        rest = {**dict.fromkeys(whole), "max_output_tokens": 300}
        assert await chosen(page, "scripted:strict") == ("scripted:strict", rest)
        only = {"model": "scripted:other", "generation": {"temperature": 0.5}}
        assert (await gateway.ask("PUT", path, only))[0] == 200
        assert await chosen(page, "scripted:strict") == ("scripted:strict", None)
        assert await chosen(page, "scripted:model") == (None, None)
