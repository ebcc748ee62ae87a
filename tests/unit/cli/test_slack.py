"""`gatehouse slack manifest`, as a person types it."""

import pytest
import yaml
from typer.testing import CliRunner

from gateway.cli.slack import app


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
