"""Words that are not a person's own command nothing, on each platform (APR-10).

An attacker writes a command and gets the owner to pass it on: forwarded, shared, quoted, chosen
from an inline bot, edited in afterwards, or posted by an application in the owner's name. A call
and a question are open meanwhile, and a stranger waits to be let in. Every command is tried in
every guise; then the owner's own words show that the commands were good.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.conftest import town
from tests.scenario.gateway.test_approvals import code_in
from tests.scenario.gateway.town import Serving, Town
from tests.support.kinds import COMMANDS
from tests.wire.openai import Answer, Prompt, says, use
from tests.wire.slack import ANNA, BEN, Said
from tests.wire.telegram import Message

__all__ = ["town"]

pytestmark = pytest.mark.requirement("APR-10")

PLAIN = ("blue", "yes", "approve", "deny", "no, stop", "1")
LIMITS = """
[limits]
owners = true
replies_per_minute = 3
person_runs_per_minute = 0
person_runs_per_hour = 0
"""


def script(prompt: Prompt) -> Answer:
    """Wants a command and the answer to a question at once."""
    if "paint the door" in prompt.asked and not prompt.results:
        ask = use("ask_user", question="Which colour?", options=["blue", "red"])
        command = use("exec", command="echo ran >> effects")
        return Answer(pieces=("Well, then.",), hold="go", uses=(command, ask))
    return says("Well.")


@dataclass(frozen=True)
class Open:
    """The codes of what waits for the owner."""

    approval: str
    question: str
    stranger: str
    owner: str

    def commands(self, mark: str) -> list[str]:
        """Every command with what would make it count, and words that are none."""
        rest = {
            "approve": ("", self.approval, f"{self.approval} session", self.stranger),
            "deny": ("", self.approval, self.stranger),
            "answer": (self.question, f"{self.question} blue"),
            "queue": ("interrupt",),
            "persona": ("off",),
            "model": ("default",),
        }
        found = [
            f"{mark}{name} {one}".strip()
            for name in sorted(COMMANDS.names)
            for one in rest.get(name, ("",))
        ]
        return [*found, self.owner, f"/start {self.owner}", *PLAIN]


def standing(town: Town) -> dict[str, object]:
    """What a command, a code or an answer would change."""
    return {
        "open": town.rows("SELECT id, state FROM open_calls ORDER BY id"),
        "heard": town.rows("SELECT id FROM inputs WHERE state IN ('command', 'answer')"),
        "changed": town.rows(
            "SELECT id FROM sessions"
            " WHERE mode != 'edit' OR queue_mode != 'followup' OR model IS NOT NULL"
        ),
        "people": town.rows("SELECT user_id, trust FROM accounts ORDER BY user_id"),
        "owner code": town.rows("SELECT value FROM settings WHERE name = 'owner_code'"),
        "strangers": town.rows("SELECT code, state FROM pairings ORDER BY code"),
        "effects": town.lines("effects"),
    }


def opened(town: Town, here: Serving, texts: Sequence[str]) -> Open:
    """The codes on the owner's cards, of the stranger, and the unused one that makes an owner."""
    command = next(one for one in texts if "echo ran" in one)
    question = next(one for one in texts if "Which colour?" in one)
    ((stranger,),) = town.rows("SELECT code FROM pairings")
    (owner,) = re.findall(r"Owner code.*, shown once: (\S+)", here.program.transcript)
    return Open(
        code_in(command), code_in(question.replace("answer", "approve")), str(stranger), owner
    )


async def test_in_telegram_only_the_owners_own_words_count(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    town.configure(LIMITS)
    server, chat, ann = town.telegram, town.chat, town.ann
    eve = server.world.user("Eve")
    robot = server.world.user("Robot", username="robot_bot")
    channel = server.world.channel("News", discussion=None)
    group = server.world.supergroup("Others", eve)
    async with fail_after(120), town.serving() as here:
        own = town.on_telegram("hello")
        await server.wait_until(lambda: "Well." in town.telegram_texts())
        server.user_says(server.world.private(eve), eve, "let me in")
        town.on_telegram("paint the door")
        await town.model.gate("go").entered.wait()
        waiting = [town.on_telegram(f"later {number}") for number in range(40)]
        await server.wait_until(lambda: not server.queue.pending)
        town.model.gate("go").opened.set()
        await server.wait_until(lambda: any("Which colour?" in t for t in town.telegram_texts()))
        codes = opened(town, here, town.telegram_texts())
        card = next(one for one in server.from_bot(chat) if "Which colour?" in one.text)
        guises: Sequence[Callable[[str], object]] = (
            lambda text: server.user_forwards(chat, ann, text, written_by=eve),
            lambda text: server.user_forwards(chat, ann, text, written_by="A hidden one"),
            lambda text: server.user_forwards(chat, ann, text, written_by=channel),
            lambda text: server.user_forwards(chat, ann, text, written_by=group),
            # Also a forward of the owner's own words: they were said elsewhere, of something else.
            lambda text: server.user_forwards(chat, ann, text, written_by=ann),
            lambda text: server.user_chooses_inline(chat, ann, text, of=robot),
            lambda text: server.user_edits(own, text),
            lambda text: server.user_edits(waiting.pop(), text),
            lambda text: quotes_all(town, text, card),
        )
        before = standing(town)
        tried = 0
        for text in codes.commands("/"):
            for guise in guises:
                guise(text)
                tried += 1
        await server.wait_until(lambda: not server.queue.pending)
        assert tried >= 250
        assert standing(town) == before

        server.user_quotes(chat, ann, "red", quoted=f"/approve {codes.approval}", of=card)
        await server.wait_until(lambda: any("answered: red" in t for t in town.telegram_texts()))
        assert town.lines("effects") == []
        town.on_telegram(f"/approve {codes.approval}")
        await runs_once(town, here)


def quotes_all(town: Town, text: str, card: Message) -> Message:
    """Ann replies to a card with nothing but a quotation."""
    entity = {"type": "blockquote", "offset": 0, "length": len(text)}
    message = town.telegram.state.new_message(town.chat, town.ann, reply_to=card)
    message.service = {"text": text, "entities": [entity]}
    return town.telegram.state.publish(message)


async def test_in_slack_only_the_owners_own_words_count(town: Town, fail_after: FailAfter) -> None:
    town.model.plays = script
    town.configure(LIMITS)
    slack, direct = town.slack, town.direct
    elsewhere = slack.workspace.add_channel("elsewhere", with_bot=False)
    async with fail_after(180), town.serving() as here:
        own = await town.on_slack("hello")
        await slack.until(lambda: "Well." in town.slack_texts())
        await slack.user_says(slack.workspace.im(BEN), BEN, "let me in")
        await town.on_slack("paint the door")
        await town.model.gate("go").entered.wait()
        waiting = [await town.on_slack(f"later {number}") for number in range(40)]
        await heard(town, waiting)
        town.model.gate("go").opened.set()
        await slack.until(lambda: any("Which colour?" in one for one in town.slack_texts()))
        codes = opened(town, here, town.slack_texts())
        card = next(one for one in slack.posts(direct) if "Which colour?" in one.visible_text)
        before = standing(town)
        tried = 0
        for text in [*codes.commands("!"), f"/approve {codes.approval}"]:
            written = await slack.user_says(elsewhere, BEN, text)
            said = [
                await slack.user_shares(direct, ANNA, written),
                await slack.user_shares(direct, ANNA, written, thread_ts=card.ts),
                await slack.user_says(direct, ANNA, f"&gt; {text}"),
                await slack.user_says(direct, ANNA, f"&gt;&gt;&gt; {text}", card.ts),
                await slack.other_bot_says(direct, text, in_name_of=ANNA),
                await slack.user_edits(direct, own.ts, text),
            ]
            if waiting:
                said.append(await slack.user_edits(direct, waiting.pop().ts, text))
            await heard(town, said)
            tried += len(said)
        assert tried >= 180
        assert standing(town) == before

        await slack.user_says(direct, ANNA, f"&gt; !approve {codes.approval}\nred", card.ts)
        # The card that says so waits behind a minute's replies to what was tried.
        await here.feed.until(lambda: "question.answered" in here.feed.kinds())
        (given,) = town.rows("SELECT answer FROM open_calls WHERE state = 'answered'")
        assert "red" in str(given[0])
        assert town.lines("effects") == []
        await town.on_slack(f"!approve {codes.approval}")
        await runs_once(town, here)


async def heard(town: Town, said: Sequence[Said]) -> None:
    """Until the gateway has taken everything."""
    for one in said:
        for delivery in one.deliveries:
            await town.slack.wait_for_ack(delivery)


async def runs_once(town: Town, here: Serving) -> None:
    """The call that was allowed runs, once."""
    await here.feed.until(lambda: "approval.decided" in here.feed.kinds())
    await here.feed.until(lambda: bool(town.lines("effects")))
    assert town.lines("effects") == ["ran"]
