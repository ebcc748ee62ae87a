"""What is said about a wrong configuration: all of it at once, with the place and the rule."""

import pytest

from tests.unit.config.support import Read, problems

pytestmark = pytest.mark.requirement("OPS-1")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[agents]\nmax_step = 1\n",
            "agents.max_step: is not a setting; did you mean agents.max_steps",
        ),
        ("[agent]\nmax_steps = 1\n", "agent: is not a setting; did you mean agents?"),
        ("max_steps = 1\n", "max_steps: is not a setting; did you mean agents.max_steps?"),
        ("[http]\nprot = 1\n", "http.prot: is not a setting; did you mean http.port?"),
        ('[http]\nport = "80"\n', 'http.port: must be a whole number, not "80"'),
        ("[http]\nport = 1.5\n", "http.port: must be a whole number, not 1.5"),
        ("[http]\nport = true\n", "http.port: must be a whole number, not true"),
        ("[http]\nport = 70000\n", "http.port: must be less than or equal to 65535"),
        ("[http]\nhost = 1\n", "http.host: must be a text in quotes, not 1"),
        ('[tools.exec]\nnetwork = "no"\n', 'network: must be true or false, not "no"'),
        ('[policy]\nallow = "exec"\n', "policy.allow: must be a list in square brackets"),
        ('[policy]\nallow = ["exec(", "ok"]\n', "must look like tool or tool(pattern)"),
        ('[policy]\nmode = "yolo"\n', "policy.mode: must be 'bypassPermissions', 'acceptEdits'"),
        ("http = 1\n", "http: must be a table, written [http]"),
        ('timezone = "Mars/Base"\n', "timezone: must be a time zone such as Europe/Berlin"),
        ('timezone = "Berlin"\n', "such as Europe/Berlin; did you mean Europe/Berlin?"),
        ('timezone = "europe/paris"\n', "did you mean Europe/Paris?"),
        ('timezone = "New York"\n', "did you mean America/New_York?"),
        ('[approvals]\napprovers = ["ann"]\n', "must look like channel:account:user"),
        ('[tools.exec.env]\n"A B" = "x"\n', "must be names of environment variables"),
        (
            '[models]\nopenai_base_url = "127.0.0.1:8000/v1"\n',
            "models.openai_base_url: must be an address that begins with http:// or https://",
        ),
        ("[queue]\nmode = 'stack'\n", "queue.mode: must be 'collect', 'followup', 'steer'"),
    ],
)
def test_each_error_names_the_key_the_rule_and_the_place(read: Read, text: str, said: str) -> None:
    (found,) = problems(read, text)
    assert said in found
    assert "gatehouse.toml" in found


def test_broken_toml_names_line_and_column(read: Read) -> None:
    (found,) = problems(read, "[http]\nport = \n")
    assert "is not valid TOML" in found
    assert "line 2, column 8" in found


def test_all_problems_come_at_once(read: Read) -> None:
    text = '[http]\nport = "x"\nhots = "y"\n[log]\nlevel = "loud"\n'
    found = problems(read, text, {"GATEHOUSE_AGENTS__MAXSTEP": "1"})
    assert len(found) == 4
    assert any(
        "GATEHOUSE_AGENTS__MAXSTEP: is not a setting; did you mean GATEHOUSE_AGENTS__MAX_STEPS?"
        in one
        for one in found
    )


def test_a_wrong_variable_is_named(read: Read) -> None:
    (found,) = problems(read, "", {"GATEHOUSE_HTTP__PORT": "eighty"})
    assert "http.port: must be a whole number" in found
    assert "environment variable GATEHOUSE_HTTP__PORT" in found


@pytest.mark.requirement("POL-7")
@pytest.mark.parametrize(
    "text",
    [
        "[slack]\nbot_token = 123456789012\n",
        '[http]\nadmin_token = ["very-secret-0001"]\n',
        '[models]\nopenai_api_key = {key = "very-secret-0001"}\n',
    ],
)
def test_a_secret_is_never_repeated(read: Read, text: str) -> None:
    found = problems(read, text)
    assert found
    assert "very-secret-0001" not in str(found)
    assert "123456789012" not in str(found)
