"""`gatehouse slack manifest`, as a person types it."""

import pytest
import yaml
from typer.testing import CliRunner

from gateway.cli.slack import app
from tests.wire.slack.manifests import faults_of


@pytest.mark.requirement("SLK-6")
def test_the_manifest_is_printed_for_both_ways_in() -> None:
    socket = CliRunner().invoke(app, ["manifest"])
    http = CliRunner().invoke(app, ["manifest", "--http", "https://bot.example.org"])
    assert socket.exit_code == http.exit_code == 0
    assert yaml.safe_load(socket.stdout)["settings"]["socket_mode_enabled"] is True
    settings = yaml.safe_load(http.stdout)["settings"]
    assert settings["socket_mode_enabled"] is False
    assert settings["interactivity"]["request_url"] == "https://bot.example.org/hooks/slack"


@pytest.mark.requirement("SLK-6")
def test_an_address_that_slack_would_not_call_is_refused_in_one_sentence() -> None:
    refused = CliRunner().invoke(app, ["manifest", "--http", "http://bot.example.org"])
    assert refused.exit_code == 2
    assert "must be an https address" in refused.output


@pytest.mark.requirement("SLK-9")
def test_the_old_view_is_printed_on_request_and_says_until_when_it_lives() -> None:
    new = CliRunner().invoke(app, ["manifest"])
    old = CliRunner().invoke(app, ["manifest", "--assistant-view"])
    assert new.exit_code == old.exit_code == 0
    assert not new.stderr
    assert "agent_view" in yaml.safe_load(new.stdout)["features"]
    features = yaml.safe_load(old.stdout)["features"]
    assert "assistant_view" in features
    assert "agent_view" not in features
    assert "February 2027" in old.stderr
    assert "cannot be undone" in old.stderr


@pytest.mark.requirement("SLK-9")
@pytest.mark.parametrize("view", [[], ["--assistant-view"]], ids=["agent", "assistant"])
@pytest.mark.parametrize(
    "way",
    [
        [],
        ["--socket"],
        ["--http", "https://bot.example.org"],
        ["--http", "https://bot.example.org/hooks/slack/acme"],
    ],
    ids=["default", "socket", "http", "workspace"],
)
def test_slack_takes_what_is_printed_for_every_combination_of_flags(
    way: list[str], view: list[str]
) -> None:
    printed = CliRunner().invoke(app, ["manifest", *way, *view])
    assert printed.exit_code == 0
    application = yaml.safe_load(printed.stdout)
    assert faults_of(application, is_new=not view) == []
    assert ("assistant_view" in application["features"]) == bool(view)
    assert ("agent_view" in application["features"]) != bool(view)
    assert application["settings"]["socket_mode_enabled"] == ("--http" not in way)
    # Slack would not take the old view for a new application.
    assert bool(faults_of(application)) == bool(view)


@pytest.mark.requirement("SLK-9")
@pytest.mark.parametrize(
    "flags",
    [
        ["--socket", "--http", "https://bot.example.org"],
        ["--http", "https://bot.example.org", "--assistant-view", "--socket"],
    ],
)
def test_flags_that_contradict_each_other_are_refused_and_nothing_is_printed(
    flags: list[str],
) -> None:
    refused = CliRunner().invoke(app, ["manifest", *flags])
    assert refused.exit_code == 2
    assert not refused.stdout
    assert "--socket and --http exclude each other" in refused.stderr
    assert "Leave one of them out" in refused.stderr
