"""A file that the agent sends, through the real program to Slack and Telegram, over a kill too."""

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.town import Town
from tests.wire.openai import Answer, Prompt, calls, says, use
from tests.wire.slack.state import texts_in

NAME, CAPTION = "plan.md", "<!channel> @everyone the **plan**"


def script(prompt: Prompt) -> Answer:
    """Sends the file, then says so."""
    if not prompt.results:
        return calls(use("send_file", path=NAME, caption=CAPTION))
    return says("There it is.")


def slack_files(town: Town) -> list[tuple[str, bytes | None]]:
    """The files that Anna has from the bot."""
    return [
        (one.title, one.content) for post in town.slack.posts(town.direct) for one in post.files
    ]


@pytest.mark.requirement("MSG-19", "SLK-5", "TEL-4")
async def test_a_file_reaches_slack_and_telegram_in_front_of_the_reply(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    async with fail_after(90), town.serving() as here:
        (town.place.workspace / "files" / NAME).write_text("# Plan\n")
        await town.on_slack("send me the plan")
        await town.slack.until(lambda: len(town.slack.posts(town.direct)) == 3)
        caption, file, reply = town.slack.posts(town.direct)
        assert slack_files(town) == [(NAME, b"# Plan\n")]
        assert "<!channel>" not in "".join([caption.text, *texts_in(caption.blocks), file.text])
        assert reply.visible_text == "There it is."
        town.on_telegram("send me the plan")
        await town.telegram.wait_until(lambda: len(town.telegram_texts()) == 2)
        sent, said = town.telegram.from_bot(town.chat)
        document = sent.media["document"]
        assert isinstance(document, dict)
        stored = town.telegram.state.files.find(str(document["file_id"]))
        assert (document["file_name"], stored.attachment.content) == (NAME, b"# Plan\n")
        assert "the plan" in sent.text
        assert said.text == "There it is."
        await here.feed.until(lambda: here.feed.kinds().count("delivery.sent") == 4)
    kinds = town.rows("SELECT kind, state FROM outbox ORDER BY position")
    assert kinds == [("file", "sent"), ("final", "sent")] * 2


@pytest.mark.requirement("MSG-11", "MSG-19", "SLK-5")
async def test_a_kill_between_the_share_and_its_receipt_sends_nothing_twice(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    async with fail_after(120):
        async with town.serving() as here:
            (town.place.workspace / "files" / NAME).write_text("# Plan\n")
            town.slack.hang("files.completeUploadExternal")
            await town.on_slack("send me the plan")
            await town.slack.until(lambda: bool(slack_files(town)))
            (town.place.workspace / "files" / NAME).write_text("# Another\n")
            await here.killed()
        async with town.serving() as here:
            await town.slack.until(lambda: len(town.slack.posts(town.direct)) == 3)
            await here.feed.settled(1)
        assert slack_files(town) == [(NAME, b"# Plan\n")]
        assert town.slack_texts()[-1] == "There it is."
        assert len(town.slack.posts(town.direct)) == 3


@pytest.mark.requirement("MSG-11", "MSG-19", "TEL-4")
async def test_a_kill_in_the_middle_of_an_upload_to_telegram_is_unknown_and_not_repeated(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = script
    async with fail_after(120):
        async with town.serving() as here:
            (town.place.workspace / "files" / NAME).write_text("# Plan\n")
            town.telegram.hang("sendDocument")
            town.on_telegram("send me the plan")
            await town.telegram.wait_until(lambda: bool(town.telegram.calls_to("sendDocument")))
            await here.killed()
        async with town.serving() as here:
            # That the file's outcome is unknown is told before the reply is sent.
            await here.feed.until(lambda: "delivery.sent" in here.feed.kinds())
        assert len(town.telegram.calls_to("sendDocument")) == 1
        # The upload that was cut off may be kept before the reply or after it.
        assert "There it is." in town.telegram_texts()
        kinds = town.rows("SELECT kind, state FROM outbox ORDER BY position")
        assert kinds == [("file", "unknown"), ("final", "sent")]
