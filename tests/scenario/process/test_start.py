"""Starting the program: with nothing configured, a second time, and where it cannot start."""

import asyncio
import json
import socket
import sqlite3
import stat
from contextlib import closing

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import READY, Place, command, gateway
from tests.scenario.process.talk import conversation, finished, reply
from tests.wire.openai import ModelServer


@pytest.mark.requirement("OPS-3", "ACC-2", "CTX-1")
async def test_the_first_start_prints_address_and_code_and_answers(
    place: Place, fail_after: FailAfter
) -> None:
    # One of its group that loads everything itself, see `nursery`.
    place.loaded = False
    async with fail_after(60), gateway(place) as program:
        url = await program.url()
        code = await program.until(program.out, lambda line: "Owner code" in line)
        assert url.startswith("http://127.0.0.1:")
        assert "GH-" in code
        async with conversation(url) as talk:
            sent = await talk.submit("hello")
            assert await finished(talk, sent.run_id) == "completed"
            assert "offline" in reply(talk, sent.run_id).lower()
    assert (place.workspace / "AGENTS.md").is_file()
    assert stat.S_IMODE((place.home / "gatehouse.db").stat().st_mode) == 0o600


@pytest.mark.requirement("OPS-3", "ACC-2")
async def test_the_owner_code_is_shown_at_the_first_start_only_and_what_is_amiss_at_each(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        async with gateway(place) as program:
            code = await program.until(program.out, lambda line: "Owner code" in line)
        place.variables["SLACK_BOT_TOKEN"] = "xoxb-made-up"
        place.variables["GATEHOUSE_MODELS__DEFAULT"] = ""
        place.variables["OPENAI_BASE_URL"] = "http://127.0.0.1:1"
        async with gateway(place) as program:
            half = await program.until(program.out, lambda line: line.startswith("Slack: "))
            assert half.startswith("Slack: configured in part: only the bot token is set")
            assert "SLACK_APP_TOKEN" in half
            assert any(
                line.startswith("http://127.0.0.1:1 did not list its models: it cannot be reached.")
                for line in program.out
            )
            assert not any("GH-" in line for line in program.out)
    kept = (place.home / "gatehouse.db").read_bytes()
    assert code.rpartition(" ")[2].encode() not in kept


MOST_MODULES = 1_400
FOR_SOME = {
    *("alembic", "anthropic", "apscheduler", "asyncpg", "google", "mcp", "nats", "openai"),
    *("opentelemetry", "pydantic_ai", "slack_bolt", "slack_sdk", "telegram", "textual"),
}
"""Libraries of what is not configured: whoever needs one pays for loading it."""


@pytest.mark.requirement("OPS-3")
async def test_a_second_start_loads_what_it_needs_and_no_more(
    place: Place, fail_after: FailAfter
) -> None:
    """What that takes is measured in `tests/benchmarks/test_start.py`."""
    # One of its group that loads everything itself, see `nursery`.
    place.loaded = False
    async with fail_after(60):
        async with gateway(place) as program:
            await program.url()
        place.variables["PYTHONPROFILEIMPORTTIME"] = "1"
        async with gateway(place) as program:
            await program.url()
    told = [line.split("|")[2].strip() for line in program.err if line.startswith("import time:")]
    loaded = {name.partition(".")[0] for name in told}
    assert {"aiohttp", "sqlalchemy"} <= loaded, "the list is there"
    assert loaded & FOR_SOME == set()
    assert len(told) < MOST_MODULES


@pytest.mark.requirement("OPS-11")
async def test_the_models_library_is_loaded_before_the_first_message(
    place: Place, fail_after: FailAfter
) -> None:
    """How long a first reply takes is measured in `tests/benchmarks/test_start.py`."""
    async with fail_after(60), ModelServer().running() as server:
        place.variables |= {
            "OPENAI_API_KEY": "sk-test-key",
            "OPENAI_BASE_URL": server.url,
            "GATEHOUSE_MODELS__DEFAULT": "openai:scripted",
        }
        async with gateway(place) as program:
            loaded = json.loads(await program.says("model_loaded"))
            assert loaded["model"] == "openai:scripted"
            assert server.prompts == [], "it asks nobody"
            program.process.terminate()
            assert await program.ended() == 0


@pytest.mark.requirement("OPS-3", "OPS-2")
async def test_a_port_in_use_is_one_sentence_with_what_to_do(
    place: Place, fail_after: FailAfter
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        place.variables["GATEHOUSE_HTTP__PORT"] = str(port)
        async with fail_after(60):
            ended = await command(place, "serve")
    assert ended.code == 1
    assert f"Port {port}" in ended.err
    assert "http.port" in ended.err
    assert "Traceback" not in ended.err
    assert READY not in ended.out


async def test_a_second_gateway_on_the_same_database_is_refused(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), gateway(place) as program:
        await program.url()
        ended = await command(place, "serve")
        assert ended.code == 1
        assert f"process {program.process.pid}" in ended.err
        assert "`gatehouse open`" in ended.err
        assert "GATEHOUSE_HOME" in ended.err
        assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("GATEHOUSE_WORKSPACE__PATH", "{path}/file/workspace", "cannot be written"),
        ("GATEHOUSE_WORKSPACE__PATH", "/proc/gatehouse", "cannot be written"),
        ("GATEHOUSE_HOME", "{path}/file/home", "GATEHOUSE_HOME"),
        ("GATEHOUSE_MODELS__DEFAULT", "openay:gpt", "models.default"),
        ("GATEHOUSE_MODELS__DEFAULT", "openai:gpt-6", "OPENAI_API_KEY"),
        ("GATEHOUSE_DATABASE__URL", "mysql://here", "sqlite"),
        ("GATEHOUSE_DATABASE__URL", "postgresql+asyncpg://me:pw@127.0.0.1:9/x", "127.0.0.1:9"),
        ("GATEHOUSE_HTTP__PORT", "99999", "http.port"),
    ],
)
async def test_what_cannot_work_is_said_plainly(
    place: Place, variable: str, value: str, told: str, fail_after: FailAfter
) -> None:
    (place.path / "file").write_text("a file where a folder is needed")
    place.variables[variable] = value.format(path=place.path)
    place.variables["GATEHOUSE_DATABASE__WAIT_S"] = "0"
    async with fail_after(60):
        ended = await command(place, "serve")
    assert ended.code == 1, ended
    assert told in ended.err
    assert "Traceback" not in ended.err


async def test_a_damaged_database_is_said_plainly(place: Place, fail_after: FailAfter) -> None:
    place.home.mkdir()
    (place.home / "gatehouse.db").write_bytes(b"this is no database, it only looks long" * 200)
    async with fail_after(60):
        ended = await command(place, "serve")
    assert ended.code == 1
    assert "backup" in ended.err
    assert "Traceback" not in ended.err


@pytest.mark.requirement("OPS-7")
async def test_even_a_defect_ends_in_the_log_and_not_beside_it(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        await command(place, "migrate")
        with closing(sqlite3.connect(place.home / "gatehouse.db")) as database:
            database.execute("DROP TABLE leases")
        ended = await command(place, "serve")
    assert ended.code == 1
    events = [json.loads(line)["event"] for line in ended.err.splitlines()]
    assert "gateway_failed" in events
    assert READY not in ended.out


@pytest.mark.requirement("OPS-1")
async def test_a_broken_configuration_names_every_problem(
    place: Place, fail_after: FailAfter
) -> None:
    file = place.configure('[http]\nport = "x"\n[agents]\nmax_step = 3\n')
    place.variables["GATEHOUSE_HTTP__PORT"] = ""
    async with fail_after(60):
        ended = await command(place, "serve")
    assert ended.code == 1
    assert "has 2 problems:" in ended.err
    assert f'http.port: must be a whole number, not "x" ({file}, [http])' in ended.err
    assert "agents.max_step: is not a setting; did you mean agents.max_steps?" in ended.err


@pytest.mark.requirement("OPS-7")
async def test_the_log_is_json_with_ids_and_without_texts_or_secrets(
    place: Place, fail_after: FailAfter
) -> None:
    token = "made-up-token-0123456789"
    place.variables["GATEHOUSE_HTTP__READ_ONLY_TOKEN"] = token
    said = f"a sentence that nobody should log, with {token}"
    async with fail_after(60), gateway(place) as program:
        async with conversation(await program.url()) as talk:
            sent = await talk.submit(said)
            await finished(talk, sent.run_id)
        program.process.terminate()
        assert await program.ended() == 0
    lines = [json.loads(line) for line in program.err]
    assert any(line.get("run_id") == sent.run_id and line.get("session_id") for line in lines)
    assert "nobody should log" not in program.transcript
    assert token not in program.transcript


async def test_wrong_tokens_of_one_platform_leave_the_rest_running(
    place: Place, fail_after: FailAfter
) -> None:
    refusing = await asyncio.start_server(_refuses, "127.0.0.1", 0)
    port = refusing.sockets[0].getsockname()[1]
    place.variables |= {
        "SLACK_BOT_TOKEN": "xoxb-wrong-token",
        "SLACK_APP_TOKEN": "xapp-wrong-token",
        "SLACK_API_URL": f"http://127.0.0.1:{port}/api/",
        "TELEGRAM_BOT_TOKEN": "123456:WRONG-TOKEN",
        "TELEGRAM_API_URL": f"http://127.0.0.1:{port}",
    }
    async with fail_after(60), refusing, gateway(place) as program:
        url = await program.url()
        await program.says("adapter_refused")
        async with conversation(url) as talk:
            sent = await talk.submit("hello")
            assert await finished(talk, sent.run_id) == "completed"
        assert "xoxb-wrong-token" not in program.transcript
        assert "WRONG-TOKEN" not in program.transcript


async def _refuses(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """An HTTP server that knows nobody, in the words of Slack and of Telegram."""
    head = await reader.readuntil(b"\r\n\r\n")
    slack = b"/api/" in head.split(b"\r\n", 1)[0]
    body = (
        b'{"ok":false,"error":"invalid_auth"}'
        if slack
        else b'{"ok":false,"error_code":401,"description":"Unauthorized"}'
    )
    status = b"200 OK" if slack else b"401 Unauthorized"
    writer.write(
        b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\nConnection: close\r\n"
        b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )
    await writer.drain()
    writer.close()
    await writer.wait_closed()
