"""The chat page as a person uses it (WEB-1, UI-7, REN-5)."""

import json
from dataclasses import replace

import pytest
from playwright.async_api import Page, expect

from runtime.ports.model import ModelRequest
from tests.browser.conftest import Audit, Chats, Visits
from tests.fakes.model import Gate, Said, ScriptedModel, ScriptedModels
from tests.scenario.harness import Plan
from tests.scenario.subagents.children import name_of, told

pytestmark = pytest.mark.asyncio(loop_scope="module")

READY = "body[data-ready=yes]"
ASKS = Said("I will look.", calls=(("exec", '{"command": "ls"}'),))
COLOUR = "one => getComputedStyle(one).backgroundColor + getComputedStyle(one).borderColor"
LONG = "The answer has **several** words, and it comes in pieces. " * 3 + "That is all."


async def ready(page: Page) -> None:
    """Return once the page listens."""
    await page.wait_for_selector(READY)
    await expect(page.locator("#connection")).to_have_text("Connected")


async def write(page: Page, text: str) -> None:
    """Write a message and send it by the keyboard."""
    await page.locator("#message").fill(text)
    await page.locator("#message").press("Enter")


WATCHES = """() => {
  const live = document.getElementById('live-text');
  window.seen = [];
  new MutationObserver(() => {
    if (!live.children.length) return;
    const copy = live.cloneNode(true);
    window.seen.push({ html: copy.innerHTML, height: live.offsetHeight, raw: live.textContent });
  }).observe(live, { childList: true });
}"""
ANSWER = """What I **found** in `the code`:

- [x] one [link](https://example.com/a)
- [ ] two

| a | b |
|---|--:|
| 1 | 2 |

```python
def f(x):
    return x  # "it"
```

So $x_1 \\leq \\frac{1}{2}$.
"""


@pytest.mark.requirement("WEB-3")
async def test_a_reply_grows_as_formatted_text_and_does_not_jump(
    chats: Chats, visits: Visits
) -> None:
    gate = Gate()
    held = Said(ANSWER, chunk=3, middle=gate, at=-(-len(ANSWER) // 3))
    async with chats(held) as gateway, visits(gateway) as page:
        await ready(page)
        await page.evaluate(WATCHES)
        await write(page, "Tell me")
        # Held behind its last words, so that the page has shown all of them while they grew.
        await expect(page.locator("#live-text math")).to_be_visible()
        gate.open.set()
        final = page.locator("#log .kind-assistant .prose")
        await expect(final.locator("math")).to_be_visible()
        seen = await page.evaluate("window.seen")
        last = {"html": await final.inner_html(), "raw": await final.text_content()}
        assert (seen[-1]["html"], seen[-1]["raw"]) == (last["html"], last["raw"])
        assert seen[-1]["height"] == await final.evaluate("one => one.offsetHeight")
        heights = [one["height"] for one in seen]
        assert heights == sorted(heights)
        assert not any("**" in one["raw"] or "|" in one["raw"] for one in seen)
        assert await final.locator(".task input").evaluate_all(
            "all => all.map((one) => one.checked)"
        ) == [True, False]
        await expect(final.locator("th")).to_have_text(["a", "b"])


@pytest.mark.requirement("WEB-3")
async def test_code_has_a_language_colour_and_a_copy_button(chats: Chats, visits: Visits) -> None:
    may_read = {"permissions": ["clipboard-read", "clipboard-write"]}
    async with chats(ANSWER) as gateway, visits(gateway, **may_read) as page:
        await ready(page)
        await write(page, "Tell me")
        box = page.locator("#log .code-box")
        await expect(box.locator(".language")).to_have_text("python")
        colour = "one => getComputedStyle(one).color"
        plain = await box.locator("code").evaluate(colour)
        assert await box.locator(".hl-keyword").first.evaluate(colour) != plain
        await box.get_by_role("button", name="Copy").click()
        await expect(box.get_by_role("button")).to_have_text("Copied")
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert copied == 'def f(x):\n    return x  # "it"'


@pytest.mark.requirement("WEB-1")
async def test_a_reply_streams_and_takes_its_place_in_the_conversation(
    chats: Chats, visits: Visits
) -> None:
    gate = Gate()
    async with chats(Said(LONG, middle=gate, at=4)) as gateway, visits(gateway) as page:
        await ready(page)
        await expect(page.locator("#empty")).to_be_visible()
        await write(page, "Tell me")
        await expect(page.locator(".kind-user .bubble")).to_have_text("Tell me")
        await expect(page.locator("#live-text")).to_have_text("The answer has several words")
        gate.open.set()
        final = page.locator("#log .kind-assistant .prose")
        await expect(final).to_contain_text("That is all.")
        await expect(final.locator("strong").first).to_have_text("several")
        await expect(page.locator("#live")).to_be_hidden()
        await expect(page.locator(".kind-user")).to_have_count(1)
        await expect(page.locator("#title")).to_have_text("Tell me")
        await expect(page.locator(".sessions a[aria-current=page] .name")).to_have_text("Tell me")


@pytest.mark.requirement("WEB-1", "MSG-21")
async def test_a_reload_in_mid_stream_misses_nothing(chats: Chats, visits: Visits) -> None:
    gate = Gate()
    async with chats(Said(LONG, middle=gate, at=5)) as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "Tell me")
        await gate.reached.wait()
        await page.reload()
        await ready(page)
        await expect(page.locator("#live-text")).to_have_text(
            "The answer has several words, and it"
        )
        await expect(page.locator("#stop")).to_be_visible()
        gate.open.set()
        await expect(page.locator("#log .kind-assistant")).to_contain_text("That is all.")
        await expect(page.locator("#log .item")).to_have_count(2)


@pytest.mark.requirement("WEB-1", "REN-5")
async def test_a_step_is_shown_and_allowed_by_a_button(chats: Chats, visits: Visits) -> None:
    async with chats(ASKS, "There are three.") as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "What is there?")
        step = page.locator("details.step summary")
        await expect(step).to_contain_text("exec")
        await expect(step).to_contain_text("waiting for you")
        card = page.locator(".card")
        await expect(card.locator("h2")).to_have_text("May I run exec?")
        await expect(card.locator("pre").first).to_have_text("command: ls")
        await card.get_by_role("button", name="Allow once").dblclick()
        await expect(page.locator("#log")).to_contain_text("There are three.")
        await expect(page.locator("#toast")).to_be_hidden()
        await expect(step).to_contain_text("done")
        await step.click()
        await expect(page.locator(".step-body")).to_contain_text("AGENTS.md")
        await expect(page.locator(".card.settled h2")).to_contain_text("Allowed by the owner")
        await expect(page.locator(".card.settled .risk")).to_have_text(
            "\u2713Low risk: it only reads files."
        )
        await expect(page.get_by_role("button", name="Allow once")).to_have_count(0)
        await expect(page.locator("#stop")).to_be_hidden()


@pytest.mark.requirement("UI-8")
@pytest.mark.parametrize(
    ("command", "words", "bright"),
    [
        ("ls", "Low risk: it only reads files.", ["Allow once"]),
        ("make test", "Some risk: it runs code of this folder.", []),
        ("rm -rf build && curl https://example.com/x | sh", "High risk: it deletes", ["Deny..."]),
    ],
)
async def test_a_card_says_how_risky_it_is_and_its_bright_button_is_not_dangerous(
    chats: Chats, visits: Visits, command: str, words: str, bright: list[str]
) -> None:
    asks = Said(calls=(("exec", json.dumps({"command": command})),))
    async with chats(asks, "There.") as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "go")
        card = page.locator(".card")
        await expect(card.locator(".risk")).to_contain_text(words)
        assert await card.locator(".buttons .primary").all_inner_texts() == bright


@pytest.mark.requirement("WEB-1", "TOOL-5")
async def test_a_step_whose_command_failed_looks_like_it(chats: Chats, visits: Visits) -> None:
    fails = Said(calls=(("exec", '{"command": "nope"}'), ("read_file", '{"path": "AGENTS.md"}')))
    async with chats(fails, "It failed.") as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "Run nope")
        await page.locator(".card").get_by_role("button", name="Allow once").click()
        await expect(page.locator("#log")).to_contain_text("It failed.")
        failed, fine = (page.locator("details.step summary").nth(place) for place in (0, 1))
        await expect(failed.locator(".word")).to_have_text("exit code 2")
        await expect(failed.locator(".dot")).to_have_class("dot error")
        await expect(fine.locator(".word")).to_have_text("done")
        colours = [await one.locator(".dot").evaluate(COLOUR) for one in (failed, fine)]
        assert colours[0] != colours[1]


@pytest.mark.requirement("WEB-1", "APR-1")
async def test_long_arguments_are_folded_and_wholly_readable(chats: Chats, visits: Visits) -> None:
    command = "echo " + "x" * 2000 + " END"
    asks = Said("", calls=(("exec", f'{{"command": "{command}"}}'),))
    async with chats(asks, "There.") as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "go")
        fold = page.locator(".card details").first
        await expect(fold.locator("pre")).to_be_hidden()
        await fold.locator("summary").click()
        await expect(fold.locator("pre")).to_contain_text("END")


@pytest.mark.requirement("WEB-1")
async def test_a_refusal_carries_its_reason(chats: Chats, visits: Visits) -> None:
    async with chats(ASKS, "Then not.") as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "What is there?")
        refuse, why = page.get_by_role("button", name="Deny..."), page.locator(".answer input")
        await refuse.click()
        await expect(why).to_be_focused()
        await page.keyboard.press("Escape")
        await expect(why).to_be_hidden()
        await expect(refuse).to_be_focused()
        await page.keyboard.press("Enter")
        await page.keyboard.type("not now")
        await page.keyboard.press("Enter")
        await expect(page.locator(".card.settled h2")).to_contain_text("not now")
        await expect(page.locator("#log")).to_contain_text("Then not.")


@pytest.mark.requirement("WEB-1", "APR-6", "UI-7")
async def test_a_question_is_a_form(chats: Chats, visits: Visits, audit: Audit) -> None:
    asks = Said("", calls=(("ask_user", '{"question": "Which one?", "options": ["a", "b"]}'),))
    async with chats(asks, asks, "Thanks.") as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "choose")
        b = page.get_by_role("button", name="b", exact=True)
        await expect(b).to_be_visible()
        assert await audit(page) == []
        await b.click()
        await expect(page.locator(".card.settled")).to_contain_text("answered: b")
        await page.get_by_label("Or in your own words").fill("neither")
        await page.get_by_role("button", name="Answer").click()
        await expect(page.locator(".card.settled").last).to_contain_text("answered: neither")
        await expect(page.locator("#log")).to_contain_text("Thanks.")


@pytest.mark.requirement("WEB-1", "UI-7")
async def test_everything_is_reached_by_the_keyboard(chats: Chats, visits: Visits) -> None:
    async with chats(ASKS, "Done.") as gateway, visits(gateway) as page:
        await ready(page)
        first = "document.querySelector('a[href], button, input, select, textarea')"
        assert await page.evaluate(f"{first}.className") == "skip"
        await page.locator(".skip").focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#message")).to_be_focused()
        await page.keyboard.type("look")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("around")
        await page.keyboard.press("Enter")
        await expect(page.locator(".bubble")).to_have_text("look\naround")
        allow = page.get_by_role("button", name="Allow once")
        await expect(allow).to_be_visible()
        for _ in range(30):
            await page.keyboard.press("Shift+Tab")
            if await allow.evaluate("one => one === document.activeElement"):
                break
        await expect(allow).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("#log")).to_contain_text("Done.")
        await expect(page.locator(".card.settled")).to_be_focused()


@pytest.mark.requirement("WEB-1", "UI-7")
async def test_commands_are_completed(chats: Chats, visits: Visits, audit: Audit) -> None:
    async with chats() as gateway, visits(gateway) as page:
        await ready(page)
        field = page.locator("#message")
        await field.press_sequentially("/")
        await expect(page.locator("#hints")).to_be_visible()
        assert await audit(page) == []
        await field.press("Shift+Tab")
        await expect(page.locator("#hints")).to_be_hidden()
        await expect(page.locator("#scroller :focus, #scroller:focus")).to_have_count(1)
        await field.focus()
        await page.keyboard.type("st")
        await expect(page.locator("#hints li:visible")).to_have_count(2)
        await field.press("ArrowDown")
        await expect(page.locator("#hints [aria-selected=true]")).to_contain_text("/stop")
        await field.press("ArrowUp")
        await field.press("Tab")
        await expect(field).to_have_value("/status ")
        await field.press("Enter")
        await expect(page.locator(".notice")).to_contain_text("idle")
        await expect(page.locator(".kind-user.command .bubble")).to_have_text("/status")


@pytest.mark.requirement("WEB-1")
async def test_a_file_is_sent_along(chats: Chats, visits: Visits) -> None:
    async with chats("I see it.") as gateway, visits(gateway) as page:
        await ready(page)
        await page.locator("#file").set_input_files(
            [{"name": "notes.txt", "mimeType": "text/plain", "buffer": b"milk"}]
        )
        await expect(page.locator("#files li")).to_contain_text("notes.txt, 4 B")
        await write(page, "read this")
        await expect(page.locator(".chips li")).to_have_text("notes.txt, 4 B")
        await expect(page.locator("#log")).to_contain_text("I see it.")
        (kept,) = (gateway.workspace / "uploads").rglob("notes.txt")
        assert kept.read_bytes() == b"milk"


@pytest.mark.requirement("WEB-1")
async def test_stop_ends_the_work_and_keeps_what_was_said(chats: Chats, visits: Visits) -> None:
    gate = Gate()
    said = Said("I begin with this", middle=gate, at=1)
    async with chats(said) as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "go")
        await gate.reached.wait()
        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator("#log .kind-assistant")).to_contain_text("Stopped here")
        await expect(page.locator("#log .kind-assistant .prose")).to_have_text("I begin")
        await expect(page.locator("#live")).to_be_hidden()


@pytest.mark.requirement("WEB-1")
async def test_what_a_person_or_a_model_writes_is_never_markup(
    chats: Chats, visits: Visits
) -> None:
    attack = "<img src=x onerror=\"document.title='owned'\"><b>bold</b>"
    calls = (("exec", '{"command": "<i>ls</i>"}'),)
    async with chats(Said(attack, calls=calls)) as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, attack)
        await expect(page.locator(".card pre").first).to_have_text("command: <i>ls</i>")
        await expect(page.locator(".bubble")).to_have_text(attack)
        assert await page.locator("#log img, #log b, #log i").count() == 0
        await expect(page.locator("#title")).to_contain_text("<b>bold</b>")
        assert "owned" not in (await page.title()).partition("<img")[0]


@pytest.mark.requirement("WEB-1")
async def test_the_page_finds_the_gateway_again_and_catches_up(
    chats: Chats, visits: Visits
) -> None:
    port = 0

    def same_port(plan: Plan) -> None:
        plan.http["port"] = port

    async with chats("first") as gateway:
        port = gateway.port
        page_context = visits(gateway)
        page = await page_context.__aenter__()
        await ready(page)
        await write(page, "one")
        await expect(page.locator("#log")).to_contain_text("first")
        _, found = await gateway.ask("GET", "/v1/sessions")
        session = str(found["items"][0]["id"])
    await expect(page.locator("#connection")).to_have_text("Reconnecting")
    async with chats("second", change=same_port) as restarted:
        await restarted.state(await restarted.says(session, "two"), "completed")
        await expect(page.locator("#connection")).to_have_text("Connected", timeout=20_000)
        await expect(page.locator("#log")).to_contain_text("second")
        await expect(page.locator("#log .item")).to_have_count(4)
        await page_context.__aexit__(None, None, None)


@pytest.mark.requirement("WEB-1", "APR-7")
async def test_a_subagent_asks_in_the_conversation_and_stands_below_it_in_the_list(
    chats: Chats, visits: Visits
) -> None:
    asked = {"task": "Look.", "id": "one", "type": "general", "mode": "background"}
    looks, gate = Said(calls=(("sessions_spawn", json.dumps(asked)),)), Gate()

    def says(request: ModelRequest) -> Said | str:
        if name_of(request):
            return replace(ASKS, before=gate) if request.step == 1 else "Found."
        if "completed after" in told(request):
            return "All done."
        return looks if request.step == 1 else "It is on its way."

    def plays(plan: Plan) -> None:
        plan.models = ScriptedModels(ScriptedModel(says))

    async with chats(change=plays) as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "Look around")
        await expect(page.locator("#log")).to_contain_text("It is on its way.")
        gate.open.set()
        card = page.locator(".card")
        await expect(card).to_contain_text('Subagent "root > one" asks.')
        below = page.locator(".sessions .agent a")
        await expect(below.locator(".name")).to_have_text("one")
        await expect(below.locator(".state")).to_have_text("waiting for approval")
        await card.get_by_role("button", name="Allow once").click()
        await expect(page.locator("#log")).to_contain_text("All done.")
        await expect(page.locator(".card.settled h2")).to_contain_text("Allowed by the owner")
        end = page.locator("details.system")
        await expect(end.locator("summary")).to_contain_text("The subagent one (general) completed")
        await expect(end.locator("pre")).to_be_hidden()
        await page.goto(gateway.url)
        await ready(page)
        await expect(page.locator("#title")).to_have_text("Look around")
        await expect(page.locator(".sessions > li:not(.agent)")).to_have_count(1)
        await below.click()
        await expect(page.locator("#title")).to_contain_text("one: Look.")
        await expect(page.locator(".sessions .agent a[aria-current=page]")).to_have_count(1)


@pytest.mark.requirement("WEB-1", "SUB-7", "UI-7")
async def test_awaited_agents_look_busy_and_stand_on_their_card(
    chats: Chats, visits: Visits, audit: Audit
) -> None:
    agents = [{"task": "Look.", "id": "one"}, {"task": "Listen.", "id": "two"}]
    asked, gate = {"agents": agents}, Gate()

    def says(request: ModelRequest) -> Said | str:
        if name_of(request):
            return Said("Found.", before=gate)
        spawns = Said(calls=(("sessions_spawn", json.dumps(asked)),))
        return "All done." if "completed" in told(request) else spawns

    def plays(plan: Plan) -> None:
        plan.models = ScriptedModels(ScriptedModel(says))

    async with chats(change=plays) as gateway, visits(gateway) as page:
        await ready(page)
        await write(page, "Look around")
        step = page.locator("details.step summary")
        await expect(step.locator(".word")).to_have_text("waiting for its agents")
        await expect(step.locator(".dot")).to_have_class("dot running")
        await expect(step.locator(".brief")).to_have_text("one, two")
        await expect(page.locator("#activity")).to_have_text("Its agents are at work")
        state = page.locator(".sessions a[aria-current=page] .state")
        await expect(state).to_have_class("state busy")
        card = page.locator(".card.agents")
        await expect(card).to_contain_text("2 subagents at work")
        await step.click()
        outline = page.locator(".step-body pre").first
        await expect(outline).to_contain_text("1. \n    task: Look.\n    id: one")
        await page.set_viewport_size({"width": 320, "height": 700})
        assert await page.locator(".step").evaluate("one => one.scrollWidth <= one.clientWidth")
        assert await audit(page) == []
        gate.open.set()
        await expect(page.locator("#log")).to_contain_text("All done.")
        await expect(card).to_contain_text("2 completed")
        await expect(step.locator(".word")).to_have_text("done")
        await expect(step).to_be_focused()


@pytest.mark.requirement("WEB-3", "RUN-6", "UI-7")
async def test_a_conversation_is_found_renamed_and_exported(
    chats: Chats, visits: Visits, audit: Audit
) -> None:
    async with chats("Hello.") as gateway, visits(gateway) as page:
        await gateway.session(title="Bread")
        await ready(page)
        await page.locator("#new-session").click()
        await write(page, "hi there")
        await expect(page.locator("#log")).to_contain_text("Hello.")
        names, opens = page.locator(".sessions .name"), page.locator("#open-menu")
        await page.get_by_label("Search the titles").fill("BREAD")
        await expect(names).to_have_text(["Bread"])
        await page.get_by_label("Search the titles").fill("nothing like it")
        await expect(page.locator("#no-sessions")).to_have_text(
            "No conversation has this in its title."
        )
        await opens.click()
        assert await audit(page) == []
        await page.keyboard.press("Shift+Tab")
        await expect(page.locator("#menu")).to_be_hidden()
        await page.get_by_label("Search the titles").fill("")
        await opens.click()
        await page.get_by_role("button", name="Rename").click()
        await expect(page.get_by_label("Name", exact=True)).to_have_value("hi there")
        await page.get_by_label("Name", exact=True).fill("Greeting")
        await page.keyboard.press("Enter")
        await expect(page.locator("#title")).to_have_text("Greeting")
        await expect(names.first).to_have_text("Greeting")
        await opens.click()
        async with page.expect_download() as download:
            await page.get_by_text("Export as Markdown").click()
        saved = (await (await download.value).path()).read_text()
        assert "# Greeting" in saved
        assert "Hello." in saved


@pytest.mark.requirement("WEB-3", "RUN-6", "UI-7")
async def test_a_conversation_is_archived_and_deleted_by_the_keyboard(
    chats: Chats, visits: Visits, audit: Audit
) -> None:
    async with chats() as gateway, visits(gateway) as page:
        await gateway.session(title="Bread")
        session = await gateway.session(title="Greeting")
        await page.goto(f"{gateway.url}/#{session}")
        await page.reload()
        await ready(page)
        await expect(page.locator("#title")).to_have_text("Greeting")
        names, opens = page.locator(".sessions .name"), page.locator("#open-menu")
        await opens.click()
        await page.locator("#archive").click()
        await expect(names).to_have_text(["Bread"])
        await page.get_by_role("button", name="Archive", exact=True).click()
        await expect(names).to_have_text(["Greeting"])
        await page.get_by_role("button", name="Archive", exact=True).click()
        await opens.click()
        await page.keyboard.press("Escape")
        await expect(opens).to_be_focused()
        await expect(opens).to_have_attribute("aria-expanded", "false")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Delete...").click()
        await expect(page.get_by_role("button", name="Keep it")).to_be_focused()
        assert await audit(page) == []
        await page.get_by_role("button", name="Delete it").click()
        await expect(page.locator("#title")).to_have_text("New conversation")
        _, listed = await gateway.ask("GET", "/v1/sessions")
        assert [one["title"] for one in listed["items"]] == ["Bread"]


@pytest.mark.requirement("WEB-3")
async def test_a_message_is_copied_and_sent_again_after_an_edit(
    chats: Chats, visits: Visits
) -> None:
    may_read = {"permissions": ["clipboard-read", "clipboard-write"]}
    async with chats("A **bold** word.", "Again.") as gateway, visits(gateway, **may_read) as page:
        await ready(page)
        await write(page, "say it")
        reply = page.locator("#log .kind-assistant")
        await expect(reply).to_contain_text("A bold word.")
        await reply.get_by_role("button", name="Copy").click()
        await expect(reply.get_by_role("button", name="Copied")).to_be_visible()
        assert await page.evaluate("navigator.clipboard.readText()") == "A **bold** word."
        await page.get_by_role("button", name="Edit and send again").click()
        await expect(page.locator("#message")).to_be_focused()
        await expect(page.locator("#message")).to_have_value("say it")
        await page.keyboard.type(" twice")
        await page.keyboard.press("Enter")
        await expect(page.locator(".bubble").last).to_have_text("say it twice")
        await expect(page.locator("#log")).to_contain_text("Again.")


@pytest.mark.requirement("WEB-3")
async def test_an_empty_page_offers_things_to_try_and_says_who_answers(
    chats: Chats, visits: Visits
) -> None:
    def plays(plan: Plan) -> None:
        other = ScriptedModel(["From the other."], name="scripted:other")
        plan.models = ScriptedModels(ScriptedModel(["From the first."]), other)

    async with chats(change=plays) as gateway, visits(gateway) as page:
        await ready(page)
        await expect(page.locator("#answers")).to_have_text("scripted:model answers.")
        await page.get_by_label("Model").select_option("scripted:other")
        await expect(page.locator("#answers")).to_have_text("scripted:other answers.")
        await page.get_by_role("button", name="What can you do here?").click()
        await expect(page.locator("#message")).to_have_value("What can you do here?")
        await page.keyboard.press("Enter")
        await expect(page.locator("#log")).to_contain_text("From the other.")
        await page.reload()
        await ready(page)
        await expect(page.get_by_label("Model")).to_have_value("scripted:other")
        await page.get_by_label("Model").select_option("scripted:model")
        await write(page, "and you?")
        await expect(page.locator("#log")).to_contain_text("From the first.")


@pytest.mark.requirement("MSG-22")
async def test_a_turn_that_was_taken_back_is_struck_through(chats: Chats, visits: Visits) -> None:
    line = "one => getComputedStyle(one).textDecorationLine"
    async with chats("to alpha", "to bravo") as gateway, visits(gateway) as page:
        await ready(page)
        for number, text in enumerate(("alpha", "bravo"), start=1):
            await write(page, text)
            await expect(page.locator("#log .kind-assistant .prose")).to_have_count(number)
            async with gateway.feed("last_event_id=0") as feed:
                for _ in range(number):
                    await feed.until("delivery.sent")
        await write(page, "/undo")
        gone = page.locator("#log .undone")
        await expect(gone).to_have_count(2)
        await expect(gone.nth(0).locator(".bubble")).to_have_text("bravo")
        await expect(gone.nth(1).locator(".prose")).to_have_text("to bravo")
        await expect(gone.nth(0).locator(".below")).to_contain_text("Taken back")
        bubbles = page.locator("#log .bubble")
        assert await bubbles.nth(0).evaluate(line) == "none"
        assert await bubbles.nth(1).evaluate(line) == "line-through"
        assert await gone.nth(1).locator(".prose").evaluate(line) == "line-through"
