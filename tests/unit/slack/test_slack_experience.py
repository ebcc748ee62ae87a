"""Which of Slack's views an event proves (SLK-9)."""

import pytest

from adapters.slack.experience import experience_of
from runtime.domain.value import JsonObject

pytestmark = pytest.mark.requirement("SLK-9")


@pytest.mark.parametrize(
    ("event", "view"),
    [
        ({"type": "app_context_changed"}, "agent"),
        ({"type": "agent_session_stopped"}, "agent"),
        ({"type": "agent_session_title_changed"}, "agent"),
        ({"type": "message", "app_context": {}}, "agent"),
        ({"type": "app_home_opened", "tab": "messages", "context": {"entities": []}}, "agent"),
        ({"type": "assistant_thread_started"}, "assistant"),
        ({"type": "assistant_thread_context_changed"}, "assistant"),
        ({"type": "message"}, None),
        ({"type": "message", "app_context": "agent"}, None),
        ({"type": "app_home_opened", "tab": "home"}, None),
        ({"type": "app_mention", "app_context": {}}, None),
        ({}, None),
    ],
)
def test_an_event_proves_what_slack_sends_in_one_view_alone(
    event: JsonObject, view: str | None
) -> None:
    assert experience_of(event) == view
