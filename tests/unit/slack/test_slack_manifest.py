"""The application manifest: for a socket, for an address, and what an installation lacks."""

import pytest
import yaml

from adapters.slack.manifest import (
    EVENTS,
    SCOPES,
    Experience,
    events_of,
    hook_address,
    manifest,
    missing,
)
from runtime.domain.errors import InvalidInput
from tests.wire.slack.manifests import ManifestRefused, faults_of, install_of

URL = "https://bot.example.org/hooks/slack"


@pytest.mark.requirement("SLK-6")
def test_for_a_socket_no_address_is_named() -> None:
    text = manifest()
    application = yaml.safe_load(text)
    assert application["settings"]["socket_mode_enabled"] is True
    assert application["settings"]["interactivity"] == {"is_enabled": True}
    assert "url" not in text


@pytest.mark.requirement("SLK-9", "SLK-6")
@pytest.mark.parametrize("url", [None, URL, "https://example.org/hooks/slack/acme"])
@pytest.mark.parametrize("view", ["agent", "assistant"])
def test_slack_takes_the_manifest_of_every_way_in_and_view(
    url: str | None, view: Experience
) -> None:
    application = yaml.safe_load(manifest(url, view=view))
    installed = install_of(application, is_new=view == "agent")
    assert installed.experience == view
    assert installed.scopes == frozenset(SCOPES)
    assert installed.events == events_of(view)


@pytest.mark.requirement("SLK-9")
def test_a_new_app_gets_the_agent_view_and_none_of_the_assistants_events() -> None:
    application = yaml.safe_load(manifest())
    assert "assistant_view" not in application["features"]
    view = application["features"]["agent_view"]
    assert set(view) == {"agent_description", "suggested_prompts"}
    events = application["settings"]["event_subscriptions"]["bot_events"]
    assert {"app_home_opened", "app_context_changed", "message.im"} <= set(events)
    assert not [event for event in events if event.startswith("assistant_")]


@pytest.mark.requirement("SLK-9")
def test_the_assistant_view_is_for_apps_that_have_it_alone() -> None:
    application = yaml.safe_load(manifest(view="assistant"))
    assert "agent_view" not in application["features"]
    assert "app_context_changed" not in EVENTS
    with pytest.raises(ManifestRefused, match="not for new apps"):
        install_of(application)


def changed(path: str, value: object) -> dict[str, object]:
    """Our manifest with one field, named by its dotted path, set otherwise."""
    application = yaml.safe_load(manifest())
    place = application
    *way, last = path.split(".")
    for name in way:
        place = place[name]
    place[last] = value
    assert isinstance(application, dict)
    return application


@pytest.mark.requirement("SLK-9")
@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("features.assistant_view", {"assistant_description": "x"}, "exclude each other"),
        ("features.agent_view.assistant_description", "x", "assistant_description"),
        ("features.agent_view.agent_description", "x" * 301, "300"),
        ("features.agent_view.suggested_prompts", [{"title": "x"}], "message"),
        ("features.agent_view.suggested_prompts", [{"title": "x", "message": "y"}] * 5, "4"),
        ("features.surprise", {}, "surprise"),
        ("display_information.name", "x" * 36, "35"),
        ("display_information", {}, "name"),
        ("settings.event_subscriptions.bot_events", ["assistant_thread_started"], "needs feat"),
        ("settings.event_subscriptions.bot_events", ["app_context_change"], "no event"),
        ("oauth_config.scopes.bot", ["chat:write"], "needs the scope"),
        ("settings.socket_mode_enabled", False, "required without Socket Mode"),
    ],
)
def test_the_stand_in_refuses_what_slack_would_refuse(path: str, value: object, why: str) -> None:
    faults = faults_of(changed(path, value))
    assert faults
    assert any(why in fault for fault in faults), faults


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
        told = application["settings"]["event_subscriptions"]["bot_events"]
        assert told == sorted(events_of("agent"))


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
