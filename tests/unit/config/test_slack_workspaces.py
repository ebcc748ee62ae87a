"""Several workspaces of Slack in one configuration, and what their credentials choose."""

import pytest

from adapters.slack.adapter import SlackAdapter
from gateway.config import ConfigError, secrets_of
from gateway.wiring import called
from gateway.wiring_chats import missing_scopes, slack_adapters
from tests.fakes.clock import FakeClock
from tests.unit.config.support import Read

BOTH = """
[slack]
bot_token = "xoxb-made-up-1"
app_token = "xapp-made-up-1"
[slack.workspaces.acme]
bot_token = "xoxb-made-up-2"
signing_secret = "made-up-signing-secret"
[slack.workspaces.umbrella]
bot_token = "xoxb-made-up-3"
app_token = "xapp-made-up-3"
"""


@pytest.mark.requirement("SLK-7", "SLK-1")
def test_each_workspace_is_an_account_of_its_own(read: Read) -> None:
    made = slack_adapters(read(BOTH).settings.slack, FakeClock())
    paths = [None if one.webhook is None else one.webhook.path for one in made]
    assert paths == [None, "slack/acme", None]
    assert all(isinstance(one, SlackAdapter) for one in made)


@pytest.mark.requirement("SLK-1")
def test_the_credentials_choose_the_way_in(read: Read) -> None:
    by_http = read('[slack]\nbot_token = "xoxb-1"\nsigning_secret = "made-up-secret"\n')
    (made,) = slack_adapters(by_http.settings.slack, FakeClock())
    assert made.webhook is not None
    assert made.webhook.path == "slack"
    assert slack_adapters(read('[slack]\nbot_token = "xoxb-1"\n').settings.slack, FakeClock()) == []
    assert slack_adapters(read().settings.slack, FakeClock()) == []


@pytest.mark.requirement("SLK-7")
def test_the_signing_secret_has_a_variable_that_other_tools_know(read: Read) -> None:
    found = read("", {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "made-up-secret"})
    (made,) = slack_adapters(found.settings.slack, FakeClock())
    assert made.webhook is not None


@pytest.mark.requirement("SLK-7")
def test_the_secrets_of_every_workspace_are_masked(read: Read) -> None:
    masked = secrets_of(read(BOTH))
    for secret in ("xoxb-made-up-1", "xoxb-made-up-2", "xapp-made-up-3", "made-up-signing-secret"):
        assert secret in masked


@pytest.mark.requirement("SLK-7")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[slack.workspaces.acme]\nbot_token = "xoxb-1"\n', "needs an app_token"),
        ('[slack.workspaces."a b"]\nbot_token = "x"\napp_token = "y"\n', "small letters"),
        ('[slack.workspaces.acme]\napp_token = "xapp-1"\n', "slack.workspaces.acme.bot_token"),
        ('[slack.workspaces.acme]\nbot_tokn = "x"\n', "slack.workspaces.acme.bot_tokn"),
        ("[slack]\nworkspaces = 3\n", "slack.workspaces"),
    ],
)
def test_what_is_wrong_with_a_workspace_is_said_without_its_secrets(
    read: Read, text: str, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert told in str(caught.value)
    assert "xoxb-1" not in str(caught.value)


@pytest.mark.requirement("SLK-6")
def test_without_an_answer_of_slack_nobody_knows_what_is_missing(read: Read) -> None:
    (made,) = slack_adapters(
        read('[slack]\nbot_token = "xoxb-1"\nsigning_secret = "made-up-secret"\n').settings.slack,
        FakeClock(),
    )
    assert missing_scopes(made) is None


@pytest.mark.requirement("SLK-1")
@pytest.mark.parametrize(
    ("roles", "paths"),
    [('["http"]', ["slack/acme"]), ('["workers"]', []), ('["http", "adapters"]', [])],
)
def test_a_process_that_only_serves_http_answers_slack_too(
    read: Read, roles: str, paths: list[str]
) -> None:
    """With the role `adapters` it is the account's own adapter that answers."""
    shared = '[database]\nurl = "postgresql+asyncpg://db/gate"\n'
    made = called(read(f"roles = {roles}\n{shared}{BOTH}"), FakeClock())
    assert [one.webhook.path for one in made if one.webhook is not None] == paths
