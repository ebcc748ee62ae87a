"""Reminders in plain sentences to the offline model, and what is answered to a time that is wrong.

Everything is real but the platform and the clock: the sentence, the tool, the reader, the answer.
"""

import re
from dataclasses import replace
from typing import Final

import pytest

from adapters.models.offline import OfflineModel
from runtime.domain.messages import ApprovalPart
from runtime.features.schedules.buttons import OVER
from runtime.features.schedules.commands import (
    HOW_TO_CHANGE,
    NOT_YET,
    TAINTED,
    USAGE_OF_SCHEDULES,
    ZONE_FIRST,
)
from runtime.features.tasks.commands import USAGE as USAGE_OF_TASKS
from tests.fakes.sandbox import FakeSandbox
from tests.scenario.cards import card
from tests.scenario.engine import Setup, World
from tests.scenario.schedules.test_gates import printing
from tests.scenario.schedules.test_reminders import (
    HERE,
    House,
    code_in,
    goes_on,
    hears,
    house,
    reminded,
)
from tests.scenario.schedules.test_tools import how_many

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-8")
TOMORROW: Final = "Saturday 16 January 2027, 09:00 (Europe/Berlin)"
MONDAY: Final = "Monday 18 January 2027, 09:00 (Europe/Berlin)"
EXAMPLE: Final = 'say for example "tomorrow at 9: stand-up".'
NEEDED: Final = "I need a time that is yet to come, and"


async def in_berlin(at: World) -> None:
    said = await hears(at, "/timezone Europe/Berlin")
    assert said.startswith("It is Friday 15 January 2027, 09:00"), "a morning of the tests"


@pytest.mark.requirement("OPS-4", "SCH-9")
async def test_tomorrow_at_9_is_scheduled_and_told(house: House) -> None:
    async with house.begins(OfflineModel()) as at:
        await in_berlin(at)
        answer = await hears(at, "remind me tomorrow at 9 to call Ann")
        assert answer.startswith("It is scheduled.")
        assert "says: call Ann\n" in answer
        assert re.findall(r"^- (.+)$", answer, re.MULTILINE) == [TOMORROW]
        assert f"{TOMORROW}: call Ann\n" in await hears(at, "/schedules")


SAID: Final = {
    "remind me tomorrow at 09:00 to call Ann": ("says: call Ann", TOMORROW),
    "remind me tomorrow at 9am to call Ann": ("says: call Ann", TOMORROW),
    "remind me to call Ann tomorrow at 9": ("says: call Ann", TOMORROW),
    "tomorrow at 9 remind me to call Ann": ("says: call Ann", TOMORROW),
    "remind me on Monday at 9 to call Ann": ("says: call Ann", MONDAY),
    "remind me on 1 December at 17:30 to pay rent": (
        "says: pay rent",
        "Wednesday 1 December 2027, 17:30 (Europe/Berlin)",
    ),
    "remind me at 8 to call Ann": (
        "says: call Ann",
        "Saturday 16 January 2027, 08:00 (Europe/Berlin)",
    ),
    "remind me to stretch in 10 minutes": (
        "says: stretch",
        "Friday 15 January 2027, 09:10 (Europe/Berlin)",
    ),
    "remind us every weekday at 9: standup": ("says: standup", MONDAY),
    "every weekday at 9: post the numbers": ("asks the agent: post the numbers", MONDAY),
    "run the tests every weekday at 9": ("asks the agent: run the tests", MONDAY),
    "run `make test` tomorrow at 9": ("asks the agent: run `make test`", TOMORROW),
}


@pytest.mark.requirement("OPS-4")
async def test_each_sentence_is_read_as_remind_reads_it(house: House) -> None:
    async with house.begins(OfflineModel()) as at:
        await in_berlin(at)
        for total, (sentence, (words, first)) in enumerate(SAID.items(), 1):
            answer = await hears(at, sentence)
            assert f"{words}\n" in answer, sentence
            assert re.findall(r"^- (.+)$", answer, re.MULTILINE)[:1] == [first], sentence
            assert await how_many(at) == total


@pytest.mark.requirement("OPS-4")
async def test_minutes_and_seconds_are_both_counted(house: House) -> None:
    async with house.begins(OfflineModel()) as at:
        assert "says: rest\n" in await hears(at, "remind me in 5 minutes and 10 seconds to rest")
        await goes_on(at, 309)
        assert reminded(at) == []
        await goes_on(at, 1)
        assert reminded(at) == ["Reminder: rest"]


DOUBT: Final = (
    "I do not know whether 'or' belongs to the time, so put the time first and a colon behind it; "
    f"{EXAMPLE}"
)
MORE: Final = "I find no time that I understand in 'run the tests every day at 9 and list files'; "
WRONG: Final = {
    "remind me in 5 minutes or 10 to rest": DOUBT,
    "remind me yesterday to rest": f"The time 'yesterday' lies in the past; {EXAMPLE}",
    "remind me on the 31st of February to rest": (
        'No such day comes in the next 5 years; say for example "on 1 December at 9: pay rent".'
    ),
    "remind me at 25:00 to rest": f"There is no time of day in 'at 25:00'; {EXAMPLE}",
    "remind me in 0 minutes to rest": f"{NEEDED} 'in 0 minutes' is now; {EXAMPLE}",
    "remind me tomorrow to rest": f"I need a time of day for 'tomorrow'; {EXAMPLE}",
    "remind me to rest": f"I find no time that I understand in 'to rest'; {EXAMPLE}",
    "every day at 25:00 look around": (
        f"There is no time of day in 'every day at 25:00'; {EXAMPLE}"
    ),
    "every day remind me to rest": (
        "I need a time of day for 'every day'; "
        'say for example "every weekday at 9: post the numbers".'
    ),
    "in 10 minutes rest remind me to rest": (
        "'in 10 minutes rest' holds more than a time; say for example \"tomorrow at 9\"."
    ),
    "run the tests every day at 9 and list files": f"{MORE}{EXAMPLE}",
}


@pytest.mark.requirement("OPS-4")
async def test_a_person_reads_what_is_wrong_with_the_time_and_nothing_else(house: House) -> None:
    async with house.begins(OfflineModel()) as at:
        await in_berlin(at)
        for sentence, answer in WRONG.items():
            assert await hears(at, sentence) == answer
        code = code_in(await hears(at, "/remind in 1 hour: tea"))
        moved = await hears(at, f"move schedule {code} to yesterday")
        assert moved == f"The time 'yesterday' lies in the past; {EXAMPLE}"
        assert await how_many(at) == 1


@pytest.mark.requirement("OPS-4")
async def test_a_person_is_asked_for_the_zone_in_words_that_are_meant_for_them(
    house: House,
) -> None:
    async with house.begins(OfflineModel()) as at:
        assert await hears(at, "remind me tomorrow at 9 to call Ann") == ZONE_FIRST
        assert await how_many(at) == 0
    assert "in these words: This conversation contains text" in TAINTED


@pytest.mark.requirement("OPS-4", "SCH-9")
async def test_a_command_in_a_sentence_decides_whether_there_is_news(house: House) -> None:
    gate = printing("2 orders")

    def change(setup: Setup) -> Setup:
        programs = {"sh new-orders.sh": gate}
        return replace(setup, sandbox=FakeSandbox(setup.clock, programs))

    async with house.begins(OfflineModel(), change=change) as at:
        (at.workspace / "new-orders.sh").write_text("echo 2 orders\n")
        await at.says("Every 10 minutes run new-orders.sh, and tell me about new orders")
        asks = "asks the agent: tell me about new orders\n"
        # The card of its gate may come before the answer.
        await at.chat.until(lambda: any(asks in text for text in at.chat.texts(HERE)))
        (answer,) = (text for text in at.chat.texts(HERE) if asks in text)
        assert "only if its gate prints news (waiting for approval): sh new-orders.sh" in answer
        await goes_on(at, 1)
        shown = await card(at)
        assert isinstance(shown, ApprovalPart)
        await at.presses(shown.open_call_id, "approve")
        before = len(at.chat.texts(HERE))
        await goes_on(at, 600)
        assert "2 orders" in (await at.sees(before + 1, HERE))[-1]
        assert gate.ran == 1


async def test_remind_says_what_is_wrong_with_the_time(house: House) -> None:
    async with house.begins() as at:
        await in_berlin(at)
        for words, answer in {
            "yesterday: tea": "The time 'yesterday' lies in the past;",
            "on 31 February: tea": "No such day comes in the next 5 years;",
            "in 0 minutes: tea": f"{NEEDED} 'in 0 minutes' is now;",
            "tomorrow: tea": "I need a time of day for 'tomorrow';",
        }.items():
            assert (await hears(at, f"/remind {words}")).startswith(answer)


async def test_a_change_quotes_only_what_was_written(house: House) -> None:
    async with house.begins() as at:
        await in_berlin(at)
        code = code_in(await hears(at, "/remind in 1 hour: tea"))
        change = f"/schedules change {code}"
        assert await hears(at, f"{change} yesterday") == (
            f"The time 'yesterday' lies in the past; {EXAMPLE}"
        )
        assert await hears(at, f"{change} soon") == (
            f"I find no time that I understand in 'soon'; {EXAMPLE}"
        )
        assert "- says: tea\n" in await hears(at, f"{change} tomorrow at 9")
        shown = await hears(at, f"{change} every weekday at 9: cake")
        assert "- says: cake\n" in shown
        assert MONDAY in shown


async def test_one_that_is_over_is_called_over_and_shown(house: House) -> None:
    async with house.begins() as at:
        came = code_in(await hears(at, "/remind in 5 minutes: tea"))
        gone = code_in(await hears(at, "/remind in 1 hour: cake"))
        assert await hears(at, f"/schedules snooze {gone}") == NOT_YET
        await hears(at, f"/schedules cancel {gone}")
        await goes_on(at, 300)
        assert reminded(at) == ["Reminder: tea"]
        for code, status in ((came, "completed"), (gone, "cancelled")):
            for word in ("cancel", "pause", "resume", "trigger", "change"):
                assert await hears(at, f"/schedules {word} {code}") == OVER
            assert f"status: {status}" in await hears(at, f"/schedules show {code}")
        assert await hears(at, f"/schedules snooze {gone}") == OVER
        assert (await hears(at, f"/schedules snooze {came}")).startswith("It comes again on")
        for code in ("nobody", came[1:], f"_{came}"):
            said = await hears(at, f"/schedules cancel {code}")
            assert said == f"There is no reminder `{code}` here. `/schedules` lists them."


async def test_a_word_that_is_not_known_is_named_and_list_lists(house: House) -> None:
    async with house.begins() as at:
        assert await hears(at, "/schedules bogus") == (
            f"I do not know `bogus` here. {USAGE_OF_SCHEDULES}"
        )
        assert await hears(at, "/schedules cancel") == USAGE_OF_SCHEDULES
        assert await hears(at, "/tasks foo") == f"I do not know `foo` here. {USAGE_OF_TASKS}"
        assert await hears(at, "/tasks stop") == USAGE_OF_TASKS
        assert await hears(at, "/tasks list") == await hears(at, "/tasks")
        await hears(at, "/remind in 1 hour: cake")
        listed = await hears(at, "/schedules list")
        assert listed == await hears(at, "/schedules")
        assert ": cake\n" in listed
        assert listed.endswith(HOW_TO_CHANGE)
