"""A conversation as the terminal is given it."""

from collections.abc import Mapping

import pytest

from gateway.cli.client import GatewayClient, JsonObject
from gateway.cli.conversation import Conversation


class Kept(GatewayClient):
    """A gateway that keeps these messages."""

    def __init__(self, *messages: JsonObject) -> None:
        super().__init__("http://127.0.0.1:1", None)
        self.messages = messages

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> JsonObject:
        assert path == "/v1/sessions/ses_1/messages"
        return {"items": list(self.messages)}


def button(label: str, command: str, about: str) -> JsonObject:
    return {"label": label, "command": command, "about": about}


@pytest.mark.requirement("TTY-1", "SCH-8")
async def test_a_reminder_says_what_to_write_to_have_it_come_again() -> None:
    snooze = "/schedules snooze 4sgdn3"
    reminder: JsonObject = {
        "key": "out_1",
        "kind": "notice",
        "text": "Reminder: stretch",
        "buttons": [
            button("Snooze 10 min", f"{snooze} 10 min", "sch_1"),
            button("Snooze 1 h", f"{snooze} 1 h", "sch_1"),
        ],
    }
    several: JsonObject = {
        "key": "out_2",
        "kind": "notice",
        "text": "A list",
        "buttons": [
            button("Cancel 4sgdn3", "/schedules cancel 4sgdn3", "sch_1"),
            button("Cancel 5sg6en", "/schedules cancel 5sg6en", "sch_2"),
        ],
    }
    talk = Conversation(Kept(reminder, several), {"id": "ses_1", "key": "terminal:main"})
    await talk.refresh()
    assert [one.text for one in talk.entries] == [
        "Reminder: stretch\n\n"
        "Snooze 10 min: `/schedules snooze 4sgdn3 10 min`\n\n"
        "Snooze 1 h: `/schedules snooze 4sgdn3 1 h`",
        "A list",
    ]
