"""The Dockerfile's image: what is in it, and how it starts, stops and says that it is well."""

import json
import re
import signal
from pathlib import Path

import pytest

from tests.architecture.test_distribution import pins
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.image.build import ROOT, Image
from tests.image.container import Options, running
from tests.unit.deploy.support import server_major

PACKAGES = "opt/gatehouse/lib/python3.11/site-packages"
LIMIT_S = 240.0
MOST_BYTES = 350 * 1024**2
"""What may be added to the base."""
LISTING = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({d.name.lower().replace('_', '-'): d.version for d in m.distributions()}))"
)
LOADED = """
import json, sys
import gateway.cli.main, gateway.service, gateway.wiring
found = {
    name: [module.__spec__.cached, open(module.__spec__.cached, "rb").read(8)[4]]
    for name, module in list(sys.modules.items())
    if getattr(module, "__spec__", None) and module.__spec__.has_location
    and module.__spec__.origin.endswith(".py")
}
print(json.dumps(found))
"""
"""Loads what a gateway loads, and prints where each module's bytecode is and how it is checked."""
UNCHECKED_HASH = 1
SETTINGS = Options(tmpfs=("/tmp",))


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


@pytest.mark.requirement("OPS-9")
async def test_nothing_is_compiled_when_it_starts(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    """Bytecode cannot be written there, so whatever has none is compiled at each start."""
    async with fail_after(LIMIT_S), running(image, volume, SETTINGS) as container:
        loaded = json.loads(await container.says("python", "-c", LOADED))
    assert len(loaded) > 500
    assert {"asyncio", "gateway.service", "pydantic"} <= loaded.keys()
    assert {name for name, (_, check) in loaded.items() if check != UNCHECKED_HASH} == set()


@pytest.mark.requirement("OPS-9", "OPS-10", "OPS-3")
async def test_it_answers_as_nobody_on_a_read_only_root_and_stops_on_a_signal(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    async with fail_after(LIMIT_S), running(image, volume, SETTINGS) as container:
        status = await container.says("cat", "/proc/1/status")
        assert "gatehouse" in status.splitlines()[0]
        assert re.search(r"^Uid:\t10001\t10001\t10001\t10001$", status, re.MULTILINE)
        assert re.search(r"^Pid:\t1$", status, re.MULTILINE), "it is process 1"
        assert re.search(r"^CapEff:\t0+$", status, re.MULTILINE)
        for place in ("/", "/opt/gatehouse", "/etc", "/var/tmp"):
            code, said = await container.execute("touch", f"{place}/written")
            assert (code != 0, "Read-only file system" in said) == (True, True), place
        assert await container.execute(*image.health[1:]) == (0, "")
        container.signal(signal.SIGTERM)
        assert await container.program.ended() == 0
        assert "stopped" in container.program.err[-1]


@pytest.mark.requirement("OPS-9")
async def test_a_second_start_mends_the_workspace_and_keeps_the_rest(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    soul = volume / "workspace" / "SOUL.md"
    async with fail_after(LIMIT_S):
        async with running(image, volume, SETTINGS) as first:
            await first.says("gatehouse", "chat", "-m", "hello from before")
        soul.unlink()
        async with running(image, volume, SETTINGS) as second:
            (session,) = json.loads(await second.says("gatehouse", "sessions", "list", "--json"))
            kept = await second.says("gatehouse", "sessions", "show", session["id"])
        assert "hello from before" in kept, "what was said before the kill is there"
    assert soul.is_file()


@pytest.mark.requirement("OPS-9")
async def test_the_health_check_fails_where_nothing_answers(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    async with fail_after(LIMIT_S), running(image, volume, SETTINGS) as container:
        code, said = await container.execute(*image.health[1:], env={"GATEHOUSE_HTTP__PORT": "9"})
    assert code != 0
    assert "refused" in said


@pytest.mark.requirement("SEC-4", "OPS-9")
async def test_what_is_installed_is_what_was_locked(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    async with fail_after(LIMIT_S), running(image, volume, SETTINGS) as container:
        installed = json.loads(await container.says("python", "-c", LISTING))
    del installed["gatehouse"]
    locked = pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    assert len(installed) > 50
    assert {name: locked.get(name) for name in installed} == installed


@pytest.mark.requirement("OPS-6", "OPS-9")
async def test_it_backs_up_a_database_of_postgresql(
    image: Image, volume: Path, fail_after: FailAfter
) -> None:
    """By programs of the image, of the major of the server that the compose file has."""
    server = postgres_server()
    name = await server.create()
    try:
        url = server.url(name).replace("postgresql://", "postgresql+asyncpg://", 1)
        options = Options(
            {"GATEHOUSE_DATABASE__URL": url, "GATEHOUSE_HTTP__PORT": "0"},
            ("/tmp",),
            host_network=True,
        )
        async with fail_after(LIMIT_S), running(image, volume, options) as container:
            for program in ("pg_dump", "pg_restore"):
                said = await container.says(program, "--version")
                assert re.search(rf"\(PostgreSQL\) {server_major()}\.", said), said
            await container.says("gatehouse", "backup", "create", "/data/one.tar.gz")
            await container.says("gatehouse", "backup", "verify", "/data/one.tar.gz")
    finally:
        await server.drop(name)
