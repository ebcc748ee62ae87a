"""Keys, tokens and addresses as people paste them (MDL-8): trimmed, or named without the secret."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import SecretStr

from gateway.config import PLAIN, Config, ConfigError, client, load, read_tokens
from gateway.config_keys import Path as Key
from gateway.config_keys import camel, leaves
from gateway.config_text import address_problem, header_problem, trim
from tests.unit.config.support import Read, problems

pytestmark = pytest.mark.requirement("MDL-8")

SECRET = "made-up-secret-0001"
ENDS = (" ", "\r", "\n", "\r\n", "\t", "\ufeff", "\u00a0", "\u200b", " \n\ufeff\u00a0\t")
ADDRESSES = {
    ("models", "openai_base_url"): "https://models.example.org/v1",
    ("models", "anthropic_base_url"): "https://models.example.org",
    ("models", "gemini_base_url"): "https://models.example.org",
    ("models", "ollama_url"): "http://127.0.0.1:11434",
    ("slack", "api_url"): "https://slack.example.org/api/",
    ("telegram", "api_url"): "https://telegram.example.org",
    ("telegram", "webhook_url"): "https://gatehouse.example.org/hooks/telegram",
    ("transcription", "url"): "https://speech.example.org/v1",
    ("observability", "otlp_endpoint"): "http://127.0.0.1:4318",
    ("http", "public_url"): "https://gatehouse.example.org",
    ("database", "url"): "postgresql+asyncpg://db.example.org/gatehouse",
    ("bus", "url"): "nats://127.0.0.1:4222",
}
SECRETS = [path for path, info in leaves() if "SecretStr" in str(info.annotation)]
WEB = [path for path in ADDRESSES if path[0] not in ("database", "bus")]


def _value(config: Config, path: Key) -> str:
    value: object = config.settings
    for name in path:
        value = getattr(value, name)
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


def _variables(path: Key, text: str) -> Mapping[str, str]:
    further = {"GATEHOUSE_TELEGRAM__WEBHOOK_SECRET": SECRET} if path[-1] == "webhook_url" else {}
    return {f"GATEHOUSE_{'__'.join(path).upper()}": text, **further}


def test_every_setting_that_is_an_address_is_played() -> None:
    named = {path for path, _ in leaves() if path[-1].endswith(("url", "endpoint"))}
    assert named == set(ADDRESSES)
    assert len(SECRETS) >= 10


@pytest.mark.parametrize("path", [*SECRETS, *ADDRESSES], ids=".".join)
def test_white_space_at_the_ends_is_taken_off_whatever_it_is(read: Read, path: Key) -> None:
    text = ADDRESSES.get(path, SECRET)
    for end in ENDS:
        assert _value(read("", _variables(path, f"{end}{text}{end}")), path) == text


@pytest.mark.parametrize("name", PLAIN)
def test_the_variables_of_other_tools_are_trimmed_too(read: Read, name: str) -> None:
    text = ADDRESSES.get(PLAIN[name], SECRET)
    assert _value(read("", {name: f"\ufeff{text}\r\n"}), PLAIN[name]) == text
    assert read("", {name: " \r\n"}).origin(PLAIN[name]) == "default"


def test_the_file_of_secrets_may_begin_with_a_mark_and_hold_blanks(read: Read, home: Path) -> None:
    home.mkdir()
    secrets = home / "secrets.toml"
    text = f'[slack.workspaces.two]\nbot_token = " {SECRET}\\n"\nsigning_secret = "{SECRET}\\t"\n'
    secrets.write_text(f"\ufeff{text}", encoding="utf-8")
    secrets.chmod(0o600)
    workspace = read().settings.slack.workspaces["two"]
    assert workspace.bot_token.get_secret_value() == SECRET
    assert workspace.signing_secret is not None
    assert workspace.signing_secret.get_secret_value() == SECRET


@pytest.mark.parametrize("path", SECRETS, ids=".".join)
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"\u201c{SECRET}\u201d", "quotation marks; take them off"),
        (f'"{SECRET}"', "quotation marks; take them off"),
        (f"{SECRET}\u2019", f"a quotation mark at character {len(SECRET) + 1}"),
        (f"{SECRET}\n{SECRET}", f"a line break at character {len(SECRET) + 1}"),
        (f"{SECRET}\x00", "U+0000"),
        (f"{SECRET}\u00a0x", "white space at character"),
        (f"\u043a{SECRET}", "U+043A at character 1"),
    ],
)
def test_what_no_header_can_hold_is_named_without_the_secret(
    read: Read, path: Key, text: str, said: str
) -> None:
    written = f"[{path[0]}]\n{camel(path[1])} = {json.dumps(text)}\n"
    (found,) = problems(read, written)
    assert found.startswith(".".join(path))
    assert said in found
    assert SECRET not in found


@pytest.mark.parametrize("path", WEB, ids=".".join)
@pytest.mark.parametrize(
    "text",
    [
        "http//127.0.0.1:8000/v1",
        "127.0.0.1:8000/v1",
        "https://",
        "htps://a.example",
        "https://a.example:99999999",
        "https://a.example\n/v1",
        "\u201chttps://a.example\u201d",
        "https://a.example\u201d",
        "https://a .example",
        "https://[::1",
        f"ftp://user:{SECRET}@a.example",
    ],
)
def test_what_is_no_address_is_named_by_its_setting(read: Read, path: Key, text: str) -> None:
    found = problems(read, "", _variables(path, text))
    assert len(found) == 1
    assert found[0].startswith((".".join(path), f"{path[0]}:"))
    assert "must be" in found[0]
    assert SECRET not in found[0]


@pytest.mark.parametrize("name", ["OPENAI_API_KEY", "GATEHOUSE_SLACK__BOT_TOKEN"])
def test_a_variable_that_is_not_utf8_is_named(read: Read, name: str) -> None:
    (found,) = problems(read, "", {name: f"{SECRET}\udcff"})
    assert name in found
    assert f"is not UTF-8 text, at character {len(SECRET) + 1}" in found
    assert SECRET not in found


def test_an_empty_key_in_a_file_is_named(read: Read) -> None:
    (found,) = problems(read, '[models]\nopenai_api_key = " \\n"\n')
    assert "models.openai_api_key: must not be empty" in found


def test_tokens_of_a_file_are_trimmed_and_checked(read: Read, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    setting = f'[http]\nadmin_token_file = "{file}"\n'
    file.write_text(f"\ufeff# for the page\n{SECRET}\u00a0\r\n", encoding="utf-8")
    assert read_tokens(file) == (SECRET,)
    assert problems(read, setting) == []
    file.write_text(f"{SECRET}\n\u201c{SECRET}x\u201d\n", encoding="utf-8")
    (found,) = problems(read, setting)
    assert found.startswith(f"{file}: its token number 2 must not stand in quotation marks")
    assert SECRET not in found
    file.write_bytes(SECRET.encode("utf-16"))
    (found,) = problems(read, setting)
    assert "is not UTF-8 text, at byte 0" in found


def test_the_address_and_token_of_the_command_line_are_trimmed(read: Read) -> None:
    variables = {"GATEHOUSE_URL": " http://127.0.0.1:8080/\n", "GATEHOUSE_TOKEN": f"{SECRET}\r\n"}
    place = client(read(), environment=variables)
    assert place.url == "http://127.0.0.1:8080"
    assert place.token is not None
    assert place.token.get_secret_value() == SECRET


def test_an_address_may_name_a_host_in_any_script_and_six_bytes() -> None:
    for text in ("http://b\u00fccher.example/v1", "http://[::1]:8000", "https://u:p@a.example/x"):
        assert address_problem(text) == ""
    assert header_problem("sk-made-up two") == ""
    assert trim("\ufeff \n") == ""


def test_nothing_is_configured_by_blanks(home: Path) -> None:
    config = load(environment={"GATEHOUSE_HOME": str(home), "GATEHOUSE_BUS__URL": " \n"})
    assert config.settings.bus.url is None


def test_a_user_without_a_home_folder_is_told_what_to_name(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    for named in ({}, {"GATEHOUSE_HOME": "~/gatehouse"}):
        with pytest.raises(ConfigError) as caught:
            load(environment=named)
        (found,) = caught.value.problems
        assert found.where == "GATEHOUSE_HOME"
        assert "name a folder that it may write to" in found.what
    assert load(environment={"GATEHOUSE_HOME": str(home)}).home == home


def test_a_path_below_an_unknown_home_is_named(home: Path, read: Read) -> None:
    (found,) = problems(read, '[workspace]\npath = "~nobody-of-this-name/x"\n')
    assert "write the whole path" in found
    assert "gatehouse.toml" in found
    (found,) = problems(read, "", {"GATEHOUSE_CONFIG": "~nobody-of-this-name/x"})
    assert "GATEHOUSE_CONFIG" in found
