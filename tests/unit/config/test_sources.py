"""Where settings come from, and which source wins."""

from pathlib import Path

import pytest

from gateway.config import Client, ConfigError, client, load, secrets_of, tokens_of
from runtime.domain.decisions import PermissionMode
from tests.unit.config.support import Read, problems

pytestmark = pytest.mark.requirement("OPS-1")


def test_nothing_configured_is_a_configuration(home: Path, read: Read) -> None:
    config = load(environment={"GATEHOUSE_HOME": str(home)})
    assert (config.settings.http.host, config.settings.http.port) == ("127.0.0.1", 8080)
    assert config.settings.agents.max_steps == 40
    assert config.settings.workers.turns == 200
    assert config.settings.queue.debounce_ms == 700
    assert config.database_url == f"sqlite+aiosqlite:///{home}/gatehouse.db"
    assert config.workspace == home / "workspace"
    assert config.file is None


def test_the_environment_wins_over_the_file_and_the_origin_is_kept(read: Read) -> None:
    text = '[http]\nport = 1\nhost = "::1"\n'
    config = read(text, {"GATEHOUSE_HTTP__PORT": "2"})
    assert (config.settings.http.port, config.settings.http.host) == (2, "::1")
    assert config.origin(("http", "port")) == "environment variable GATEHOUSE_HTTP__PORT"
    assert config.origin(("http", "host")).endswith("gatehouse.toml, [http]")
    assert config.origin(("log", "level")) == "default"


def test_camel_case_is_accepted_in_the_file_and_in_the_environment(read: Read) -> None:
    config = read("[agents]\nmaxSteps = 3\n", {"GATEHOUSE_AGENTS__MAXOUTPUTTOKENS": "100"})
    assert config.settings.agents.max_steps == 3
    assert config.settings.agents.max_output_tokens == 100


def test_a_key_in_both_spellings_is_an_error(read: Read) -> None:
    (said,) = problems(read, "[agents]\nmax_steps = 3\nmaxSteps = 4\n")
    assert "agents.maxSteps: is set twice, as max_steps too" in said


@pytest.mark.parametrize(
    ("variable", "text", "path", "value"),
    [
        ("POLICY__ALLOW", "read_file, exec(git status:*)", "policy.allow", None),
        ("POLICY__ALLOW", '["read_file", "exec(git status:*)"]', "policy.allow", None),
        ("TOOLS__EXEC__NETWORK", "yes", "tools.exec.network", True),
        ("TOOLS__EXEC__ENV", '{"LANG": "C"}', "tools.exec.env", {"LANG": "C"}),
        ("SHUTDOWN_GRACE_S", "1.5", "shutdown_grace_s", 1.5),
        ("POLICY__MODE", "acceptEdits", "policy.mode", PermissionMode.ACCEPT_EDITS),
        ("TIMEZONE", "Europe/Berlin", "timezone", "Europe/Berlin"),
    ],
)
def test_variables_take_the_type_of_their_key(
    read: Read, variable: str, text: str, path: str, value: object
) -> None:
    found: object = read("", {f"GATEHOUSE_{variable}": text}).settings
    for name in path.split("."):
        found = getattr(found, name)
    assert found == (("read_file", "exec(git status:*)") if value is None else value)


def test_the_variables_of_other_tools_are_read_and_ours_win(read: Read) -> None:
    variables = {"OPENAI_API_KEY": "sk-theirs-000000", "SLACK_BOT_TOKEN": "xoxb-test-token"}
    config = read("", variables)
    assert config.settings.models.openai_api_key is not None
    assert config.settings.models.openai_api_key.get_secret_value() == "sk-theirs-000000"
    assert config.origin(("slack", "bot_token")) == "environment variable SLACK_BOT_TOKEN"
    ours = read("", {**variables, "GATEHOUSE_MODELS__OPENAI_API_KEY": "sk-ours-000000"})
    assert ours.settings.models.openai_api_key is not None
    assert ours.settings.models.openai_api_key.get_secret_value() == "sk-ours-000000"


def test_an_empty_variable_counts_as_not_set(read: Read) -> None:
    config = read("", {"SLACK_BOT_TOKEN": "", "GATEHOUSE_HTTP__PORT": ""})
    assert config.settings.slack.bot_token is None
    assert config.settings.http.port == 8080


def test_what_kubernetes_sets_beside_a_service_of_this_name_is_no_setting(read: Read) -> None:
    variables = {
        "GATEHOUSE_PORT": "tcp://10.0.0.1:8080",
        "GATEHOUSE_SERVICE_HOST": "10.0.0.1",
        "GATEHOUSE_SERVICE_PORT_HTTP": "8080",
        "GATEHOUSE_PORT_8080_TCP_ADDR": "10.0.0.1",
    }
    assert read("", variables).settings.http.port == 8080


def test_the_file_here_wins_over_the_one_at_home(home: Path, read: Read) -> None:
    Path("gatehouse.toml").write_text("[http]\nport = 5\n")
    config = read("[http]\nport = 6\n")
    assert config.settings.http.port == 5
    assert config.file == Path("gatehouse.toml").absolute()


def test_the_named_file_wins_and_must_exist(home: Path, tmp_path: Path) -> None:
    named = tmp_path / "named.toml"
    named.write_text("[http]\nport = 7\n")
    environment = {"GATEHOUSE_HOME": str(home), "GATEHOUSE_CONFIG": str(named)}
    assert load(environment=environment).settings.http.port == 7
    other = tmp_path / "other.toml"
    other.write_text("[http]\nport = 8\n")
    assert load(other, environment=environment).settings.http.port == 8
    with pytest.raises(ConfigError, match="--config names it"):
        load(tmp_path / "absent.toml", environment=environment)


def test_relative_paths_are_meant_from_the_file_or_from_here(home: Path, read: Read) -> None:
    text = '[workspace]\npath = "agent"\n[tools]\nroots = ["../code"]\n'
    config = read(text)
    assert config.workspace == home / "agent"
    assert config.settings.tools.roots == (home / "../code",)
    here = read(text, {"GATEHOUSE_WORKSPACE__PATH": "agent"})
    assert here.workspace == Path.cwd() / "agent"


@pytest.mark.requirement("POL-7")
def test_a_secrets_file_is_read_only_while_nobody_else_can(home: Path, read: Read) -> None:
    home.mkdir()
    secrets = home / "secrets.toml"
    secrets.write_text('[slack]\nbot_token = "xoxb-test-token"\n')
    secrets.chmod(0o640)
    (said,) = problems(read)
    assert f"chmod 600 {secrets}" in said
    secrets.chmod(0o600)
    config = read("")
    assert config.settings.slack.bot_token is not None
    assert secrets in config.sources
    assert "xoxb-test-token" in secrets_of(config)


@pytest.mark.requirement("OPS-12")
def test_the_client_goes_to_its_home_or_to_an_address_with_the_token_given_with_it(
    home: Path, read: Read
) -> None:
    home.mkdir()
    (home / "token").write_text("token-of-the-home\n")
    (home / "token").chmod(0o600)
    settings = read('[http]\nport = 81\nadmin_token = "of-the-settings"\n')
    own = client(settings, environment={})
    assert (own.url, own.home, secret(own)) == ("", home, "token-of-the-home")
    url = {"GATEHOUSE_URL": "http://there:1/"}
    bare = client(settings, environment=url)
    assert (bare.url, secret(bare)) == ("http://there:1", None)
    told = client(settings, environment={**url, "GATEHOUSE_TOKEN": "t"})
    assert (told.url, secret(told)) == ("http://there:1", "t")
    other = client(settings, environment={"GATEHOUSE_TOKEN": "t"})
    assert (other.url, secret(other)) == ("", "t")


def secret(found: Client) -> str | None:
    return None if found.token is None else found.token.get_secret_value()


@pytest.mark.requirement("WEB-2")
def test_the_homes_token_is_the_owners_and_is_read_only_while_nobody_else_can(
    home: Path, read: Read
) -> None:
    home.mkdir()
    token = home / "token"
    token.write_text("token-of-the-home\n")
    token.chmod(0o640)
    (said,) = problems(read)
    assert f"chmod 600 {token}" in said
    token.chmod(0o600)
    config = read("")
    assert tokens_of(config).admin == ("token-of-the-home",)
    assert token in config.sources
    assert "token-of-the-home" in secrets_of(config)


@pytest.mark.requirement("WEB-2")
@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("https://Chat.Example/", "https://chat.example"),
        ("https://chat.example:443", "https://chat.example"),
        ("http://10.0.0.7:8080", "http://10.0.0.7:8080"),
        ("http://[::1]:8080", "http://[::1]:8080"),
    ],
)
def test_a_public_address_is_kept_as_browsers_write_an_origin(
    said: str, kept: str, read: Read
) -> None:
    assert read(f'[http]\npublic_url = "{said}"\n').settings.http.public_url == kept


@pytest.mark.parametrize("said", ["chat.example", "https://chat.example/path", "https://a@b", ""])
def test_what_is_no_public_address_is_refused(said: str, read: Read) -> None:
    with pytest.raises(ConfigError, match=r"http\.public_url"):
        read(f'[http]\npublic_url = "{said}"\n')
