"""What `config show` and `config schema` say, and that the guide knows every key."""

import json
import re
from pathlib import Path

import pytest

from gateway.addresses import is_loopback
from gateway.config_engine import needs_restart
from gateway.config_keys import leaves
from gateway.config_report import MASK, masked_url, rows, schema
from tests.unit.config.support import Read

GUIDE = Path(__file__).parents[3] / "docs" / "configuration.md"


@pytest.mark.requirement("OPS-1", "POL-7")
def test_secrets_are_masked_and_origins_shown(read: Read) -> None:
    text = (
        '[database]\nurl = "postgresql+asyncpg://me:hush-hush@db/gate"\n'
        '[http]\nadmin_token = "very-secret-0001"\n'
        '[tools.exec.env]\nKEY = "very-secret-0002"\n'
    )
    shown = {row.key: row for row in rows(read(text, {"OPENAI_API_KEY": "sk-secret-0003"}))}
    assert shown["http.admin_token"].value == MASK
    assert shown["models.openai_api_key"].value == MASK
    assert shown["models.openai_api_key"].origin == "environment variable OPENAI_API_KEY"
    assert shown["tools.exec.env"].value == {"KEY": MASK}
    assert shown["models.anthropic_api_key"].shown == "(unset)"
    told = " ".join(row.shown for row in shown.values())
    assert "very-secret" not in told
    assert "sk-secret" not in told
    assert "hush-hush" not in told
    assert "me:" in str(shown["database.url"].value)


def test_an_address_keeps_all_but_its_password() -> None:
    assert masked_url("postgresql://u:p@h:1/d") == f"postgresql://u:{MASK}@h:1/d"
    assert masked_url("sqlite:///a@b:c") == "sqlite:///a@b:c"


@pytest.mark.requirement("OPS-1")
def test_the_schema_holds_every_key_with_its_description() -> None:
    text = json.dumps(schema())
    for path, info in leaves():
        assert f'"{path[-1]}"' in text
        assert info.description, path


@pytest.mark.requirement("OPS-13")
def test_the_guide_describes_every_key_as_the_program_does() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| (.+) \|$", GUIDE.read_text("utf-8"), re.MULTILINE)
    missing = [
        ".".join(path)
        for path, info in leaves()
        if not any(key == path[-1] and text.startswith(info.description) for key, text in rows)
    ]
    assert not missing


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"])
def test_these_addresses_are_this_machines_own(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_these_addresses_are_not(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.requirement("ACC-2")
def test_only_what_is_read_at_start_needs_a_restart(read: Read) -> None:
    before = read().settings
    after = read('[slack]\ndm_policy = "open"\n[log]\nlevel = "debug"\n').settings
    assert needs_restart(before, after) == ("log",)
    token = read('[slack]\nbot_token = "xoxb-test-token"\n').settings
    assert needs_restart(before, token) == ("slack",)
