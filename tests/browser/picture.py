"""Writes docs/images/chat.png, the picture of the page in README.md: `make picture`.

The page, its server, policy and cards are the real ones; the model's words are written down here,
and no command runs.
"""

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.async_api import Page, async_playwright, expect

from tests.browser.conftest import ARGUMENTS, CHROMIUM, login_cookie
from tests.browser.test_chat import ready, write
from tests.fakes.model import Said, ScriptedModel, ScriptedModels
from tests.fakes.sandbox import FakeStdio
from tests.scenario.harness import Plan, Site, site

PICTURE: Final = Path(__file__).parents[2] / "docs" / "images" / "chat.png"
SIZE: Final = {"width": 1280, "height": 800}
OTHERS: Final = ("When is standup?", "Draft the release notes", "Who is away next week?")
COMMAND: Final = "make test-migrations"
FOUND: Final = """Two migrations follow `9c2e`, so Alembic finds **two heads** and stops. I would
put `0042_rename.py` behind the other one:

```python
revision = "b07c"
down_revision = "a41f"  # 0041_invoices.py
```"""
DONE: Final = "All **14 migrations** pass with it. Shall I open a pull request?"
CONVERSATION: Final = (
    *("At ten.", "Here they are.", "Nobody."),
    Said(FOUND, calls=(("exec", json.dumps({"command": COMMAND})),)),
    DONE,
)


async def passes(stdio: FakeStdio) -> int:
    """The program behind the command."""
    await stdio.write(b"14 passed\n")
    return 0


async def talk(page: Page, gateway: Site) -> None:
    """The conversation of the picture."""
    for title in OTHERS:
        session = await gateway.session(title=title)
        await gateway.state(await gateway.says(session, title), "completed")
    await page.reload()
    await ready(page)
    await page.locator("#new-session").click()
    await write(page, "Why has staging been red since this morning?")
    await page.get_by_role("button", name="Allow once").click()
    await expect(page.locator("#log")).to_contain_text("14 migrations")
    await page.get_by_text("What was asked").click()
    await page.locator("#message").focus()
    await expect(page.locator(".sessions .state")).to_have_count(0)


async def main() -> None:
    with TemporaryDirectory() as folder:
        model = ScriptedModel(CONVERSATION, name="anthropic:claude-sonnet-4-5")
        plan = Plan(Path(folder), ScriptedModels(model), programs={COMMAND: passes})
        async with site(plan) as gateway, async_playwright() as by:
            browser = await by.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            context = await browser.new_context(viewport=SIZE, color_scheme="light")
            await context.add_cookies([await login_cookie(gateway)])
            page = await context.new_page()
            await page.goto(gateway.url)
            await talk(page, gateway)
            await page.screenshot(path=PICTURE, animations="disabled", caret="hide")
            await browser.close()


if __name__ == "__main__":
    asyncio.run(main())
