"""What compose.yaml says, run without a container engine.

Each service is a process of this machine in a network namespace of its own, so that names and ports
are those of the file. A volume is a folder, and a gateway's image is this checkout. What an engine
alone does (capabilities, system calls) is left to `tests/image`.
"""

import asyncio
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pydantic import SecretStr

from adapters.system.clock import SystemClock
from gateway.cli.client import GatewayClient
from tests.replicas.network import USER, Host, hosts, postgres_programs, run
from tests.scenario.process.program import ROOT, Program, followed

DEPLOY: Final = ROOT / "docs" / "deploy"
NO_NATS: Final = "nats-server is not installed (Debian: apt install nats-server)"
SECRETS: Final = {"CHANGE-ME-TOO": "made-up-reader", "CHANGE-ME": "made-up-secret"}
"""What a person writes into the files of variables; the longer one first."""
FETCH: Final = "import sys, urllib.request as r; r.urlopen(sys.argv[-1], timeout=4)"
CLOCK: Final = SystemClock()


def variables(name: str) -> dict[str, str]:
    """What a file of variables sets, made from its example as the guide says."""
    text = (DEPLOY / f"{name}.example").read_text(encoding="utf-8")
    for wanted, written in SECRETS.items():
        text = text.replace(wanted, written)
    return dict(re.findall(r"^([A-Z][A-Z0-9_]*)=(.*)$", text, re.MULTILINE))


@dataclass(frozen=True)
class Image:
    """What the Dockerfile gives to a container: variables, the command, and the health check."""

    env: Mapping[str, str]
    command: tuple[str, ...]
    health: tuple[str, ...]


def image() -> Image:
    """The Dockerfile's last stage, with this checkout in the place of the installed package."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    stage = text[text.rindex("\nFROM ") :].replace("\\\n", " ")
    env = dict(re.findall(r"(\w+)=(\S+)", re.findall(r"^ENV (.*)$", stage, re.MULTILINE)[0]))
    env |= {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    entry, command, health = (
        json.loads(re.findall(rf"^{word} (\[.*\])$", stage, re.MULTILINE)[0])
        for word in ("ENTRYPOINT", "CMD", "HEALTHCHECK .* CMD")
    )
    assert entry == ["gatehouse"]
    assert health[0] == "python"
    return Image(env, (sys.executable, "-m", "gateway", *command), (sys.executable, *health[1:]))


@dataclass
class Stack:
    """The services of the file; those that were started are in `running`."""

    path: Path
    services: Mapping[str, Any]
    hosts: Mapping[str, Host]
    exits: AsyncExitStack
    running: dict[str, Program] = field(default_factory=dict)

    async def up(self) -> None:
        """Start everything, each service once those that it needs are healthy, as compose does it:
        services that wait for the same ones start side by side."""
        healthy = {name: asyncio.Event() for name in self.services}

        async def bring(name: str) -> None:
            for needed in self.services[name].get("depends_on", ()):
                await healthy[needed].wait()
            await self.start(name)
            healthy[name].set()

        async with asyncio.TaskGroup() as group:
            for name in self.services:
                group.create_task(bring(name), name=f"start {name}")

    async def start(self, name: str) -> None:
        """Start a service and wait until its own check says that it is well."""
        command, env = await self._made(name)
        process = await asyncio.create_subprocess_exec(
            *self.hosts[name].enter(),
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=self.path,
            env=env,
        )
        program = await self.exits.enter_async_context(followed(process))
        self.running[name] = program
        while not await self.is_healthy(name):
            assert process.returncode is None, f"{name} ended:\n{program.transcript}"
            await CLOCK.sleep(0.2)

    async def is_healthy(self, name: str) -> bool:
        """What the health check of a service says, asked in its own place."""
        kind, program, *rest = self.services[name]["healthcheck"]["test"]
        assert kind == "CMD"
        nothing = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *self.hosts[name].enter(),
            *_program(program),
            *rest,
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            cwd="/",
        )
        return await process.wait() == 0

    def client(self, name: str) -> GatewayClient:
        """The owner's way to a gateway: the port that the file publishes."""
        (published,) = self.services[name]["ports"]
        inside = published.rpartition(":")[2]
        token = SecretStr(self.environment(name)["GATEHOUSE_HTTP__ADMIN_TOKEN"])
        return GatewayClient(f"http://{self.hosts[name].address}:{inside}", token)

    def environment(self, name: str) -> dict[str, str]:
        """The variables that the file gives to a service."""
        service = self.services[name]
        given = variables(service["env_file"]) if "env_file" in service else {}
        return {**given, **service.get("environment", {})}

    def mounted(self, name: str) -> Iterator[tuple[str, Path]]:
        """(where it is mounted, the folder) of each volume of a service."""
        for mount in self.services[name].get("volumes", ()):
            volume, _, target = mount.partition(":")
            yield target, self.path / volume

    async def _made(self, name: str) -> tuple[tuple[str, ...], dict[str, str]]:
        """The command and the variables of a service, with its volumes in place."""
        service, env = self.services[name], self.environment(name)
        if name == "postgres":
            ((_, data),) = self.mounted(name)
            return await _postgres(data, env), {"PATH": os.environ["PATH"], **env}
        if name == "nats":
            program = shutil.which("nats-server")
            if program is None:
                pytest.skip(NO_NATS)
            uid, _, gid = service["user"].partition(":")
            user = ("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups")
            return (*user, program, *service["command"]), {"PATH": os.environ["PATH"], **env}
        made = image()
        whole = {**made.env, **env}
        for target, folder in self.mounted(name):
            folder.mkdir(exist_ok=True)
            whole = {key: str(folder) if value == target else value for key, value in whole.items()}
        return made.command, whole


def _program(name: str) -> tuple[str, ...]:
    """This machine's way to do what a program of an image does."""
    if name == "pg_isready":
        return (str(postgres_programs() / name),)
    return {"python": (sys.executable,), "wget": (sys.executable, "-c", FETCH)}[name]


async def _postgres(data: Path, env: Mapping[str, str]) -> tuple[str, ...]:
    """Make the database as PostgreSQL's image does; the command that serves it."""
    programs = postgres_programs()
    user = ("setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups")
    if await asyncio.to_thread(_is_new, data, env["POSTGRES_PASSWORD"]):
        password = data.with_name("password")
        options = ("-U", env["POSTGRES_USER"], f"--pwfile={password}", "-N", "-A", "scram-sha-256")
        made = env["POSTGRES_INITDB_ARGS"].split()
        await run(*user, f"{programs}/initdb", "-D", str(data), *options, *made)
        create = f'CREATE DATABASE "{env["POSTGRES_DB"]}"\n'
        single = (f"{programs}/postgres", "--single", "-D", str(data), "postgres")
        await run(*user, *single, typed=create)
        await asyncio.to_thread(_let_in, data)
    listen = ("-c", "listen_addresses=*", "-c", "fsync=off", "-k", str(data))
    return (*user, f"{programs}/postgres", "-D", str(data), *listen)


@contextmanager
def place_for_volumes() -> Iterator[Path]:
    """A place for volumes that every user may pass through; the tests' own belongs to one."""
    with tempfile.TemporaryDirectory(prefix="gh-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def _is_new(data: Path, password: str) -> bool:
    """Whether a volume had to be made; then the password lies beside it, for the server's user."""
    if data.exists():
        return False
    data.mkdir()
    beside = data.with_name("password")
    beside.write_text(password, encoding="utf-8")
    for path in (data, beside):
        shutil.chown(path, USER)
    return True


def _let_in(data: Path) -> None:
    with (data / "pg_hba.conf").open("a", encoding="utf-8") as rules:
        rules.write("host all all all scram-sha-256\n")


@asynccontextmanager
async def stack() -> AsyncIterator[Stack]:
    """The services of compose.yaml, none of them started; killed at the end."""
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"]
    with hosts(*services) as machines, place_for_volumes() as path:
        async with AsyncExitStack() as exits:
            yield Stack(path, services, machines, exits)
