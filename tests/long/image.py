"""The Dockerfile, built and run (OPS-9, OPS-10): for `make image-check`, not for `make test`."""

import json
import os
import re
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.cli.conversation import Conversation
from tests.architecture.test_distribution import pins
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.long.container import ROOT, Container, Image, built, running
from tests.scenario.process.talk import conversation, finished, reply
from tests.unit.deploy.support import server_major

PACKAGES = "opt/gatehouse/lib/python3.11/site-packages"
MOST_BYTES = 350 * 1024**2
"""What may be added to the base."""
LISTING = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({d.name.lower().replace('_', '-'): d.version for d in m.distributions()}))"
)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    with built(tmp_path_factory.mktemp("image")) as one:
        yield one


@pytest.fixture
def volume(image: Image, tmp_path: Path) -> Path:
    """A fresh volume, as an engine makes it: with the owner that the image's folder has."""
    made = tmp_path / "volume"
    made.mkdir()
    found = (image.root / "data").stat()
    os.chown(made, found.st_uid, found.st_gid)
    return made


@asynccontextmanager
async def talking(container: Container) -> AsyncIterator[Conversation]:
    """The terminal's conversation with what runs inside."""
    async with conversation(await container.program.url()) as talk:
        yield talk


@pytest.mark.requirement("OPS-9")
def test_the_image_says_how_it_is_to_be_run(image: Image) -> None:
    assert image.user == "10001:10001"
    assert image.volumes == ("/data",)
    assert image.entrypoint == ("gatehouse",)
    assert image.command == ("serve",)
    assert "/readyz" in image.health[-1]


@pytest.mark.requirement("OPS-9", "SEC-4")
def test_the_image_holds_no_tool_no_cache_and_no_secret(image: Image) -> None:
    installed = {path.name for path in (image.root / PACKAGES).iterdir()}
    assert {"gateway", "adapters", "runtime", "asyncpg", "nats", "uvloop"} <= installed
    unwanted = {"pip", "setuptools", "wheel", "hatchling", "pytest", "ruff", "mypy", "playwright"}
    assert not installed & unwanted
    assert not (image.root / "root/.cache").exists()
    assert not (image.root / "src").exists()
    assert list((image.root / "data").iterdir()) == []
    assert not re.search(r"(TOKEN|PASSWORD|SECRET|_KEY)=", image.history)
    files = [one for one in (image.root / "opt/gatehouse").rglob("*") if not one.is_symlink()]
    assert sum(one.stat().st_size for one in files if one.is_file()) < MOST_BYTES


@pytest.mark.requirement("OPS-9", "OPS-10", "OPS-3")
async def test_it_answers_as_nobody_on_a_read_only_root_and_stops_on_a_signal(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    async with fail_after(120), running(image, volume) as container:
        _, status = await container.execute("cat", "/proc/1/status")
        assert "gatehouse" in status.splitlines()[0]
        assert re.search(r"^Uid:\t10001\t10001\t10001\t10001$", status, re.MULTILINE)
        assert re.search(r"^Pid:\t1$", status, re.MULTILINE), "it is process 1"
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
        for place in ("/", "/opt/gatehouse", "/etc", "/var/tmp"):
            code, said = await container.execute("touch", f"{place}/written")
            assert (code != 0, "Read-only file system" in said) == (True, True), place
        assert await container.execute(*image.health[1:]) == (0, "")
        async with talking(container) as talk:
            sent = await talk.submit("list files")
            assert await finished(talk, sent.run_id) == "completed"
            assert "AGENTS.md" in reply(talk, sent.run_id)
        os.kill(container.pid, signal.SIGTERM)
        assert await container.program.ended() == 0
        assert "stopped" in container.program.err[-1]


@pytest.mark.requirement("OPS-9")
async def test_a_second_start_mends_the_workspace_and_keeps_the_rest(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    async with fail_after(120):
        async with running(image, volume) as first, talking(first) as talk:
            sent = await talk.submit("hello")
            assert await finished(talk, sent.run_id) == "completed"
        (volume / "workspace" / "SOUL.md").unlink()
        async with running(image, volume) as second, talking(second) as talk:
            await talk.refresh()
            assert reply(talk, sent.run_id), "what was said before the kill is there"
        assert (volume / "workspace" / "SOUL.md").is_file()


@pytest.mark.requirement("OPS-9")
async def test_the_health_check_fails_where_nothing_answers(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    async with fail_after(120), running(image, volume) as container:
        container.port += 1
        code, said = await container.execute(*image.health[1:])
    assert code != 0
    assert "refused" in said


@pytest.mark.requirement("SEC-4", "OPS-9")
async def test_what_is_installed_is_what_was_locked(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    async with fail_after(120), running(image, volume) as container:
        code, said = await container.execute("python", "-c", LISTING)
    assert code == 0, said
    installed = json.loads(said)
    del installed["gatehouse"]
    locked = pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert len(installed) > 50
    assert {name: locked.get(name) for name in installed} == installed


@pytest.mark.requirement("OPS-6", "OPS-9")
async def test_it_backs_up_a_database_of_postgresql(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    """By programs of the image, of the major of the server that the compose file has."""
    async with fail_after(120), running(image, volume) as container:
        for program in ("pg_dump", "pg_restore"):
            code, said = await container.execute(program, "--version")
            assert code == 0, said
            assert re.search(rf"\(PostgreSQL\) {server_major()}\.", said), said
        server = postgres_server()
        name = await server.create()
        try:
            url = server.url(name).replace("postgresql://", "postgresql+asyncpg://", 1)
            command = ("env", f"GATEHOUSE_DATABASE__URL={url}", "gatehouse")
            for arguments in (
                ("migrate",),
                ("backup", "create", "/data/one.tar.gz"),
                ("backup", "verify", "/data/one.tar.gz"),
            ):
                code, said = await container.execute(*command, *arguments)
                assert code == 0, said
        finally:
            await server.drop(name)
