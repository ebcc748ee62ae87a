"""Files that people send to the real program in Slack and Telegram, and what the model gets."""

import base64
import hashlib

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.town import ALLOWED, Town
from tests.support.files import jpeg, png
from tests.wire.openai import Answer, Prompt, calls, says, use
from tests.wire.slack import ANNA, Upload
from tests.wire.telegram import Attachment
from tests.wire.transcription import TranscriptionServer

PHOTO = jpeg(800, 533)


def pictures(prompt: Prompt) -> list[bytes]:
    """The pictures that a request carries."""
    found = []
    for message in prompt.body["messages"]:
        content = message["content"]
        for part in content if isinstance(content, list) else []:
            if part["type"] == "image_url":
                found.append(base64.b64decode(part["image_url"]["url"].partition(",")[2]))
    return found


def kept(town: Town, name: str) -> list[bytes]:
    """The files of that name in the workspace."""
    return [path.read_bytes() for path in (town.place.workspace / "uploads").rglob(name)]


@pytest.mark.requirement("MSG-19", "TEL-4", "MSG-8")
async def test_a_photo_in_telegram_reaches_the_model_once_through_a_kill(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says("It is a ", hold="thinking", ending="garden.")
    async with fail_after(90):
        async with town.serving() as here:
            town.telegram.user_sends_photo(town.chat, town.ann, PHOTO, caption="what is it?")
            await town.model.gate("thinking").entered.wait()
            await here.killed()
        assert len(town.telegram.calls_to("getFile")) == 1
        town.model.gate("thinking").opened.set()
        async with town.serving():
            await town.telegram.wait_until(lambda: town.telegram_texts() == ["It is a garden."])
    assert len(town.telegram.calls_to("getFile")) == 1, "what is there is not fetched again"
    assert [pictures(prompt) for prompt in town.model.prompts] == [[PHOTO], [PHOTO]]
    (path,) = (town.place.workspace / "uploads").rglob("*.jpg")
    assert path.read_bytes() == PHOTO
    assert path.parent.name == hashlib.sha256(PHOTO).hexdigest()[:16]


@pytest.mark.requirement("MSG-19", "TEL-2", "TEL-4")
async def test_an_album_is_one_question_and_a_reply_to_a_photo_asks_about_it(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says(f"{len(pictures(prompt))} pictures")
    views = [jpeg(100 + n, 100) for n in range(3)]
    async with fail_after(60), town.serving():
        album = [Attachment(view, f"{n}.jpg", "photo") for n, view in enumerate(views)]
        town.telegram.user_sends(town.chat, town.ann, album, caption="our garden")
        await town.telegram.wait_until(lambda: town.telegram_texts() == ["3 pictures"])
        group = town.telegram.world.group("Friends")
        bob = town.telegram.world.user("Bob")
        shown = town.telegram.user_sends_photo(group, bob, PHOTO)
        assert len(town.model.prompts) == 1
        town.telegram.user_says(group, town.ann, "@gatehouse_bot and this?", reply_to=shown)
        await town.telegram.wait_until(lambda: len(town.model.prompts) == 2)
    assert pictures(town.model.prompts[0]) == views
    assert pictures(town.model.prompts[1]) == [PHOTO]


@pytest.mark.requirement("TEL-4")
async def test_a_voice_message_is_what_it_says(town: Town, fail_after: FailAfter) -> None:
    town.model.plays = lambda prompt: says("The plants." if "water the" in prompt.text else "What?")
    async with fail_after(60), TranscriptionServer().running() as server:
        town.configure(f'[transcription]\nmodel = "whisper-1"\nurl = "{server.url}"\n')
        async with town.serving():
            town.telegram.user_sends_voice(town.chat, town.ann, b"OggS" + b"\0" * 50, duration=7)
            await town.telegram.wait_until(lambda: town.telegram_texts() == ["The plants."])
    (recording,) = server.heard
    assert recording.content == b"OggS" + b"\0" * 50
    assert recording.authorization == "", "the key of the models' provider stays there"


@pytest.mark.requirement("TEL-4", "TOOL-11")
async def test_a_strangers_voice_is_not_the_word_of_who_asks_about_it(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says("Plants.")
    async with fail_after(60), TranscriptionServer().running() as server:
        town.configure(f'[transcription]\nmodel = "whisper-1"\nurl = "{server.url}"\n')
        async with town.serving():
            group = town.telegram.world.group("Friends")
            mallory = town.telegram.world.user("Mallory")
            voice = town.telegram.user_sends_voice(group, mallory, b"OggS" + b"\0" * 50, duration=7)
            town.telegram.user_says(
                group, town.ann, "@gatehouse_bot what does he want?", reply_to=voice
            )
            await town.telegram.wait_until(lambda: len(town.model.prompts) == 1)
    said = town.model.prompts[0].text
    assert "They spoke it as their message" not in said
    assert said.index("<untrusted") < said.index("water the plants") < said.index("</untrusted")


@pytest.mark.requirement("MSG-19", "SLK-5")
async def test_files_in_slack_are_shown_read_and_refused(town: Town, fail_after: FailAfter) -> None:
    picture, notes = png(30, 20), b"milk and honey"

    def script(prompt: Prompt) -> Answer:
        if not prompt.results:
            path = next(
                word.rstrip(".")
                for word in prompt.text.replace("\\n", " ").split()
                if word.startswith("uploads/") and "long.txt" in word
            )
            return calls(use("read_file", path=path, limit=1))
        return says("I read it." if "line after line" in prompt.results[-1] else "no")

    town.model.plays = script
    town.configure(f"{ALLOWED}[attachments]\nfile_mb = 0.2\n")
    async with fail_after(60), town.serving():
        await town.slack.user_says(
            town.direct,
            ANNA,
            "have a look",
            files=[
                Upload("view.png", picture),
                Upload("notes.txt", notes),
                Upload("long.txt", b"line after line\n" * 2_000),
                Upload("film.mp4", b"\0" * 300_000),
            ],
        )
        await town.slack.until(lambda: any("film.mp4" in one for one in town.slack_texts()))
        (reply,) = town.slack_texts()
    assert reply.startswith("I read it.")
    assert "I did not take film.mp4: a file may have at most" in reply.replace("`", "")
    assert pictures(town.model.prompts[0]) == [picture]
    assert "milk and honey" in town.model.prompts[0].text
    assert (kept(town, "view.png"), kept(town, "notes.txt")) == ([picture], [notes])
    assert kept(town, "film.mp4") == []


@pytest.mark.requirement("MSG-19", "SLK-5")
async def test_slack_that_does_not_give_a_file_is_said_in_the_reply(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: says("I have nothing to look at.")
    async with fail_after(60), town.serving():
        town.slack.redirect_files("http://127.0.0.1:9/elsewhere")
        await town.slack.user_says(town.direct, ANNA, "look", files=[Upload("a.png", png())])
        await town.slack.until(lambda: any("a.png" in one for one in town.slack_texts()))
        (reply,) = town.slack_texts()
    assert "I could not fetch a.png: The file is not at an address of" in reply.replace("`", "")


@pytest.mark.requirement("MSG-19")
async def test_a_provider_that_takes_no_pictures_still_answers(
    town: Town, fail_after: FailAfter
) -> None:
    town.model.plays = lambda prompt: (
        Answer(status=400) if pictures(prompt) else says("I cannot see it.")
    )
    async with fail_after(60), town.serving():
        town.telegram.user_sends_photo(town.chat, town.ann, PHOTO, caption="look")
        await town.telegram.wait_until(lambda: town.telegram_texts() == ["I cannot see it."])
    assert "It is not shown to you here" in town.model.prompts[1].text
