"""A real network between gateways and their database, of which one cable can be cut.

PostgreSQL, a private one, runs in a network namespace; each replica reaches it over a veth pair of
its own. A cable that is cut loses every packet without a word, as a broken switch does: nobody gets
a reset. It needs root and iproute2; a skip says so.
"""

import asyncio
import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.contract.store_support import PostgresServer

NO_NETWORK: Final = (
    "network namespaces cannot be made: run as root with iproute2 installed "
    "(Debian: apt install iproute2)"
)
NO_SERVER: Final = (
    "PostgreSQL's own programs are not installed: a private server needs initdb and pg_ctl "
    "(Debian: apt install postgresql)"
)
USER: Final = "postgres"
PORT: Final = 5432
NETWORK: Final = "10.213.{number}.{host}"
HOSTS: Final = "10.214.0.{host}"
NAMES: Final = Path("/etc/netns")
ONE_AT_A_TIME: Final = Path(tempfile.gettempdir()) / "gatehouse-test-network.lock"


@dataclass(frozen=True)
class Cable:
    """One veth pair into the namespace. `address` is the database's at its other end."""

    namespace: str
    end: str
    address: str

    def cut(self) -> None:
        """Nothing arrives any more."""
        _ip("-n", self.namespace, "link", "set", self.end, "down")

    def mend(self) -> None:
        """As before; what was lost is for TCP to repeat."""
        _ip("-n", self.namespace, "link", "set", self.end, "up")


@dataclass(frozen=True)
class Host:
    """A namespace that stands for a machine: its name on the network, and its address."""

    namespace: str
    address: str

    def enter(self) -> tuple[str, ...]:
        """What a command is put behind to run there."""
        return ("ip", "netns", "exec", self.namespace)


@contextmanager
def _addresses() -> Iterator[None]:
    """The addresses above belong to the machine: a second test that wants them waits its turn.

    Tests run in several processes, and each has a checkout's run beside it at times. The lock ends
    with the process that holds it.
    """
    with ONE_AT_A_TIME.open("a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        yield


@contextmanager
def hosts(*names: str) -> Iterator[Mapping[str, Host]]:
    """Machines on one network that know each other by name; gone afterwards."""
    bridge = f"ghb{os.getpid()}"
    made = {
        name: Host(f"{bridge}n{number}", HOSTS.format(host=number))
        for number, name in enumerate(names, 2)
    }
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip(NO_NETWORK)
    with _addresses():
        yield from _joined(bridge, made)


def _joined(bridge: str, made: Mapping[str, Host]) -> Iterator[Mapping[str, Host]]:
    if _tried("link", "add", bridge, "type", "bridge"):
        pytest.skip(NO_NETWORK)
    try:
        _ip("addr", "add", f"{HOSTS.format(host=1)}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        known = "".join(f"{host.address} {name}\n" for name, host in made.items())
        for host in made.values():
            _plugged(host, bridge, f"127.0.0.1 localhost\n{known}")
        yield made
    finally:
        for host in made.values():
            _tried("netns", "del", host.namespace)
            shutil.rmtree(NAMES / host.namespace, ignore_errors=True)
        _tried("link", "del", bridge)


def _plugged(host: Host, bridge: str, known: str) -> None:
    if _tried("netns", "add", host.namespace):
        pytest.skip(NO_NETWORK)
    inner = f"{host.namespace}i"
    _ip("link", "add", host.namespace, "type", "veth", "peer", "name", inner)
    _ip("link", "set", inner, "netns", host.namespace)
    _ip("link", "set", host.namespace, "master", bridge, "up")
    _ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", inner)
    _ip("-n", host.namespace, "link", "set", inner, "up")
    _ip("-n", host.namespace, "link", "set", "lo", "up")
    # `ip netns exec` lays these files over those of /etc.
    (NAMES / host.namespace).mkdir(parents=True)
    (NAMES / host.namespace / "hosts").write_text(known, encoding="utf-8")


@contextmanager
def network(cables: int) -> Iterator[Sequence[Cable]]:
    """A namespace that is joined to this one by so many cables; gone afterwards."""
    namespace = f"gh{os.getpid()}"
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip(NO_NETWORK)
    with _addresses():
        yield from _cabled(namespace, cables)


def _cabled(namespace: str, cables: int) -> Iterator[Sequence[Cable]]:
    if _tried("netns", "add", namespace):
        pytest.skip(NO_NETWORK)
    try:
        _ip("-n", namespace, "link", "set", "lo", "up")
        yield [_laid(namespace, number) for number in range(cables)]
    finally:
        for number in range(cables):
            _tried("link", "del", f"{namespace}o{number}")
        _tried("netns", "del", namespace)


def _laid(namespace: str, number: int) -> Cable:
    outer, inner = f"{namespace}o{number}", f"{namespace}i{number}"
    near, far = (NETWORK.format(number=number, host=host) for host in (1, 2))
    _ip("link", "add", outer, "type", "veth", "peer", "name", inner, "netns", namespace)
    _ip("addr", "add", f"{near}/30", "dev", outer)
    _ip("-n", namespace, "addr", "add", f"{far}/30", "dev", inner)
    _ip("link", "set", outer, "up")
    _ip("-n", namespace, "link", "set", inner, "up")
    return Cable(namespace, inner, far)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _tried(*words: str) -> int:
    return subprocess.run(["ip", *words], check=False, capture_output=True).returncode


@asynccontextmanager
async def private_server(namespace: str, address: str) -> AsyncIterator[PostgresServer]:
    """A PostgreSQL of the test's own inside a namespace, asked at `address`; stopped afterwards."""
    programs = postgres_programs()
    with tempfile.TemporaryDirectory(prefix="gh-") as path:
        shutil.chown(path, USER)
        data = Path(path) / "data"
        inside = ("ip", "netns", "exec", namespace, "setpriv", f"--reuid={USER}", f"--regid={USER}")
        inside += ("--init-groups",)
        await run(*inside, f"{programs}/initdb", "-D", str(data), "-U", USER, "-A", "trust", "-N")
        with (data / "pg_hba.conf").open("a", encoding="utf-8") as rules:
            rules.write("host all all 10.213.0.0/16 trust\n")
        options = f"-c listen_addresses=* -c port={PORT} -c fsync=off -k {path}"
        control = (*inside, f"{programs}/pg_ctl", "-D", str(data), "-l", f"{path}/log", "-w")
        await run(*control, "-o", options, "start")
        try:
            yield PostgresServer(f"postgresql://{USER}@{address}:{PORT}/postgres")
        finally:
            await run(*control, "-m", "immediate", "stop")


def postgres_programs() -> Path:
    """The folder of PostgreSQL's own programs."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    if on_path is None:
        pytest.skip(NO_SERVER)
    return Path(on_path).parent


async def run(*command: str, typed: str = "") -> None:
    """Run a command to its end, with `typed` on its standard input; it must end well."""
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=nothing, stderr=nothing, cwd="/"
    )
    await process.communicate(typed.encode())
    assert process.returncode == 0, command
