"""The application manifest: for a socket, for an address, and what an installation lacks."""

import pytest
import yaml

from adapters.slack.manifest import EVENTS, SCOPES, hook_address, manifest, missing
from runtime.domain.errors import InvalidInput

URL = "https://bot.example.org/hooks/slack"


@pytest.mark.requirement("SLK-6")
def test_for_a_socket_no_address_is_named() -> None:
    text = manifest()
    application = yaml.safe_load(text)
    assert application["settings"]["socket_mode_enabled"] is True
    assert application["settings"]["interactivity"] == {"is_enabled": True}
    assert "url" not in text


@pytest.mark.requirement("SLK-6")
def test_for_http_everything_goes_to_the_one_address() -> None:
    application = yaml.safe_load(manifest("https://bot.example.org"))
    settings = application["settings"]
    assert settings["socket_mode_enabled"] is False
    assert settings["interactivity"]["request_url"] == URL
    assert settings["event_subscriptions"]["request_url"] == URL
    assert application["features"]["slash_commands"][0]["url"] == URL


@pytest.mark.requirement("SLK-6")
def test_both_ways_ask_for_the_same_scopes_and_events() -> None:
    for application in (yaml.safe_load(manifest()), yaml.safe_load(manifest(URL))):
        assert application["oauth_config"]["scopes"] == {"bot": sorted(SCOPES)}
        assert application["settings"]["event_subscriptions"]["bot_events"] == sorted(EVENTS)


@pytest.mark.requirement("SLK-6")
@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("https://bot.example.org", URL),
        (" https://bot.example.org/ ", URL),
        ("https://example.org/bot", "https://example.org/bot/hooks/slack"),
        ("https://bot.example.org/hooks/slack/acme", "https://bot.example.org/hooks/slack/acme"),
    ],
)
def test_the_public_address_is_enough(given: str, address: str) -> None:
    assert hook_address(given) == address


@pytest.mark.requirement("SLK-6")
@pytest.mark.parametrize(
    "given",
    ["", "bot.example.org", "http://bot.example.org", "https://", "https://[", "https://a?b"],
)
def test_slack_calls_https_addresses_only(given: str) -> None:
    with pytest.raises(InvalidInput, match="--http: must be an https address"):
        manifest(given)


@pytest.mark.requirement("SLK-6")
def test_what_an_older_installation_lacks_is_named() -> None:
    assert missing(SCOPES) == ()
    assert missing([*SCOPES, "chat:write.public"]) == ()
    assert missing(set(SCOPES) - {"files:read", "assistant:write"}) == (
        "assistant:write",
        "files:read",
    )
