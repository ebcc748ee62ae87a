"""Several bots in one configuration, and what chooses their way in."""

import pytest

from adapters.telegram.adapter import TelegramAdapter
from gateway.config import ConfigError, secrets_of
from gateway.wiring_chats import telegram_adapters
from tests.fakes.clock import FakeClock
from tests.unit.config.support import Read

BOTH = """
[telegram]
token = "1:made-up-token"
[telegram.bots.support]
token = "2:made-up-token"
webhook_url = "https://gatehouse.example/hooks/telegram/support"
webhook_secret = "made-up-secret-2"
"""


@pytest.mark.requirement("TEL-1")
def test_each_bot_is_an_account_with_a_way_in_of_its_own(read: Read) -> None:
    made = telegram_adapters(read(BOTH).settings.telegram, FakeClock())
    paths = [None if one.webhook is None else one.webhook.path for one in made]
    assert paths == [None, "telegram/support"]
    assert all(isinstance(one, TelegramAdapter) for one in made)
    assert telegram_adapters(read().settings.telegram, FakeClock()) == []


@pytest.mark.requirement("TEL-1")
def test_the_secrets_of_every_bot_are_masked(read: Read) -> None:
    masked = secrets_of(read(BOTH))
    for secret in ("1:made-up-token", "2:made-up-token", "made-up-secret-2"):
        assert secret in masked


@pytest.mark.requirement("TEL-1")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[telegram]\nwebhook_url = "https://a.example"\n', "needs a webhook_secret"),
        (
            '[telegram]\nwebhook_url = "https://a.example"\nwebhook_secret = "short-1"\n',
            "16 to 256",
        ),
        ('[telegram]\nwebhook_url = "http://a.example"\n', "must begin with https://"),
        ('[telegram.bots."a b"]\ntoken = "1:x"\n', "small letters"),
        ('[telegram.bots.a]\nwebhook_url = ""\n', "telegram.bots.a.token"),
        ('[telegram.bots.a]\ntoken = "1:x"\nwebhook_url = "https://a"\n', "webhook_secret"),
    ],
)
def test_what_is_wrong_with_a_bot_is_said_without_its_secrets(
    read: Read, text: str, told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert told in str(caught.value)
    assert "short-1" not in str(caught.value)
