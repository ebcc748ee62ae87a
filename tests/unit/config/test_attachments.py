"""Settings about files: how much is taken, who fetches, who writes speech down (MSG-19, TEL-4)."""

import pytest

from gateway.config import ConfigError, secrets_of
from gateway.config_engine import attachment_settings
from gateway.wiring_chats import fetching_adapters, transcriber_of
from runtime.agent.settings import AttachmentSettings
from tests.fakes.clock import FakeClock
from tests.unit.config.support import Read

PLATFORM = '[telegram]\ntoken = "1:made-up-token"\n'
SPEECH = '[models]\nopenai_api_key = "sk-of-openai"\n[transcription]\nmodel = "whisper-1"\n'


@pytest.mark.requirement("MSG-19")
def test_the_limits_reach_the_engine_in_bytes(read: Read) -> None:
    assert attachment_settings(read().settings) == AttachmentSettings()
    text = (
        "[attachments]\nfile_mb = 1\nmessage_files = 2\nmessage_mb = 3\nsession_mb = 4\n"
        "shown = 5\ntimeout_s = 6\n"
    )
    assert attachment_settings(read(text).settings) == AttachmentSettings(
        file_bytes=1024**2,
        files=2,
        message_bytes=3 * 1024**2,
        session_bytes=4 * 1024**2,
        shown=5,
        timeout_s=6,
    )
    with pytest.raises(ConfigError, match=r"attachments\.file_mb"):
        read("[attachments]\nfile_mb = 0\n")


@pytest.mark.requirement("MSG-19")
@pytest.mark.parametrize(
    ("roles", "fetches"),
    [
        ('["workers"]', True),
        ('["workers", "http"]', True),
        ('["adapters", "workers"]', False),
        ('["timers"]', False),
    ],
)
def test_a_process_that_works_and_does_not_listen_has_adapters_to_fetch_with(
    read: Read, roles: str, fetches: bool
) -> None:
    config = read(f"roles = {roles}\n{PLATFORM}")
    found = [one.channel for one in fetching_adapters(config, FakeClock())]
    assert found == (["telegram"] if fetches else [])


@pytest.mark.requirement("TEL-4")
def test_speech_is_written_down_where_a_model_is_set(read: Read) -> None:
    assert transcriber_of(read('[models]\nopenai_api_key = "sk-of-openai"\n')) is None
    assert transcriber_of(read(SPEECH)) is not None
    own = f'{SPEECH}key = "key-of-the-server"\n'
    assert {"sk-of-openai", "key-of-the-server"} <= set(secrets_of(read(own)))


@pytest.mark.requirement("TEL-4")
@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("", "sk-of-openai"),
        ('url = "https://speech.example/v1"\n', None),
        ('url = "https://speech.example/v1"\nkey = "key-of-the-server"\n', "key-of-the-server"),
    ],
)
def test_the_key_of_openai_goes_to_openai_only(read: Read, more: str, key: str | None) -> None:
    made = transcriber_of(read(SPEECH + more))
    assert made is not None
    found = made.settings.key
    assert (None if found is None else found.get_secret_value()) == key
