"""Choosing how commands are confined, by trying it.

A backend is used only if a canary, run in it, could write where it may and could do nothing else:
not write beside its root, not read a hidden file, not reach a listener on this host. What was
tried, and why it was not taken, is kept in `describe`.
"""

import asyncio
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import Cgroups, discover
from adapters.sandbox.landlock import Landlock
from adapters.sandbox.trees import end_tree
from adapters.sandbox.unconfined import Unconfined
from runtime.domain.errors import InvalidInput
from runtime.ports.clock import Clock
from runtime.ports.sandbox import (
    TASK_TOKEN,
    ProcessIdentity,
    Sandbox,
    SandboxCommand,
    SandboxLimits,
    SandboxProcess,
    SandboxUnavailable,
    TreeEnd,
)

Setting = Literal["auto", "bubblewrap", "landlock", "none"]
_CANARY_LIMITS = SandboxLimits(timeout_s=30.0)
_CANARY = """
import json, os, socket, sys
inside, outside, hidden, port = sys.argv[1:]
def attempt(what):
    try:
        what()
    except OSError as error:
        return error.__class__.__name__
    return "done"
print(json.dumps({
    "write_inside": attempt(lambda: open(inside, "w").close()),
    "write_outside": attempt(lambda: open(outside, "w").close()),
    "read_hidden": attempt(lambda: open(hidden).close()),
    "network": attempt(lambda: socket.create_connection(("127.0.0.1", int(port)), 5).close()),
    "environment": sorted(os.environ),
}))
"""
# What `environment_of` makes, and what an interpreter or a C library adds by itself.
_EXPECTED_VARIABLES = {"PATH", "HOME", "TMPDIR", "LANG", "TERM", "PWD", "LC_CTYPE", TASK_TOKEN}
_WANTED = {
    "write_inside": "the workspace cannot be written",
    "write_outside": "a file outside the workspace could be written",
    "read_hidden": "a hidden file could be read",
    "network": "a listener on this host could be reached",
}


class Candidate(Sandbox, Protocol):
    """A backend that knows whether it is worth a canary."""

    def available(self) -> SandboxUnavailable | None: ...


class Refused:
    """The `Sandbox` of a host on which nothing confines: it starts no command."""

    name = "refused"

    def __init__(self, clock: Clock, *, reasons: Sequence[str]) -> None:
        self._clock = clock
        self._reasons = tuple(reasons)

    async def start(self, command: SandboxCommand) -> SandboxProcess:
        del command
        raise SandboxUnavailable(
            f"Commands are not run, because nothing here can confine them. {self._why()}",
            hint=(
                "Install bubblewrap (apt install bubblewrap), or use Linux 6.2 or newer with "
                'Landlock, or set sandbox = "none" to run commands unconfined.'
            ),
        )

    async def end_tree(self, identity: ProcessIdentity, grace_s: float) -> TreeEnd:
        return await end_tree(identity, grace_s=grace_s, clock=self._clock)

    def describe(self) -> str:
        return f"refused: no command is run. {self._why()}"

    def _why(self) -> str:
        return " ".join(self._reasons)


class Chosen:
    """The backend that passed, with what was tried before it."""

    def __init__(self, backend: Sandbox, *, reasons: Sequence[str]) -> None:
        self._backend = backend
        self._reasons = tuple(reasons)

    @property
    def name(self) -> str:
        return self._backend.name

    async def start(self, command: SandboxCommand) -> SandboxProcess:
        return await self._backend.start(command)

    async def end_tree(self, identity: ProcessIdentity, grace_s: float) -> TreeEnd:
        return await self._backend.end_tree(identity, grace_s)

    def describe(self) -> str:
        return " ".join((self._backend.describe(), *self._reasons))


def candidates(clock: Clock, cgroups: Cgroups) -> tuple[Candidate, ...]:
    """The backends that confine, the best first."""
    return Bubblewrap(clock, cgroups=cgroups), Landlock(clock, cgroups=cgroups)


async def choose(
    setting: Setting,
    *,
    clock: Clock,
    cgroups: Cgroups | None = None,
    backends: Sequence[Candidate] | None = None,
) -> Sandbox:
    """The sandbox for `setting`: the first backend that passes its canary, or `Refused`.

    A setting that names one backend tries that one alone. `none` tries nothing.
    """
    groups = await asyncio.to_thread(discover) if cgroups is None else cgroups
    await asyncio.to_thread(partial(groups.sweep, now_ms=clock.now_ms()))
    if setting == "none":
        return Unconfined(clock, cgroups=groups)
    reasons: list[str] = []
    for backend in candidates(clock, groups) if backends is None else backends:
        if setting in ("auto", backend.name):
            reason = await try_backend(backend)
            if reason is None:
                return Chosen(backend, reasons=reasons)
            reasons.append(f"{backend.name} was not taken: {reason}")
    return Refused(clock, reasons=reasons)


async def try_backend(backend: Candidate) -> str | None:
    """Run the canary; None when it passed, else one sentence on what went wrong."""
    refused = backend.available()
    if refused is not None:
        return str(refused)
    place = await asyncio.to_thread(_make_place)
    try:
        return await _canary(backend, place)
    except (SandboxUnavailable, InvalidInput) as error:
        return str(error)
    finally:
        await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)


def _make_place() -> Path:
    place = Path(tempfile.mkdtemp(prefix="gatehouse-canary-")).resolve()
    for name in ("workspace", "beside/hidden"):
        (place / name).mkdir(parents=True)
    (place / "beside/hidden/secret").write_text("made up\n")
    return place


async def _canary(backend: Sandbox, place: Path) -> str | None:
    listener = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with listener:
        command = _canary_command(place, listener.sockets[0].getsockname()[1])
        output = bytearray()
        async with await backend.start(command) as process:
            while chunk := await process.read():
                output += chunk[: 65536 - len(output)]
            ended = await process.wait()
    if ended.code != 0:
        text = output.decode("utf-8", "replace").strip()[-300:]
        return f"the canary ended with code {ended.code}: {text}"
    return _verdict(json.loads(output), wrote=(place / "beside" / "file").exists())


def _canary_command(place: Path, port: int) -> SandboxCommand:
    beside = place / "beside"
    arguments = (place / "workspace/file", beside / "file", beside / "hidden/secret", port)
    python = os.path.realpath(sys.executable)
    # The interpreter may live where nothing is shown otherwise, as in a home directory.
    shown = (sys.base_prefix, str(Path(python).parent), str(beside))
    return SandboxCommand(
        command=(python, "-I", "-S", "-c", _CANARY, *(str(each) for each in arguments)),
        cwd=str(place / "workspace"),
        writable=(str(place / "workspace"),),
        readable=shown,
        hidden=(str(beside / "hidden"),),
        limits=_CANARY_LIMITS,
    )


def _verdict(found: Mapping[str, object], *, wrote: bool) -> str | None:
    for name, complaint in _WANTED.items():
        if (found.get(name) == "done") != (name == "write_inside"):
            return f"{complaint}."
    if wrote:
        return f"{_WANTED['write_outside']}."
    names = found.get("environment")
    extra = set(names) - _EXPECTED_VARIABLES if isinstance(names, list) else {"all"}
    return f"variables that nobody granted were seen: {sorted(extra)}." if extra else None
