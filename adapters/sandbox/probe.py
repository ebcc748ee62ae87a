"""Choosing how commands are confined, by trying it.

A backend is used only if a canary, run in it with what a real command is granted, could work in the
working folder (list, create, rename, map, use git, remove) and could do nothing else: not write
beside it, not read a hidden file, not reach a listener on this host. What was tried, and why it was
not taken, is kept in `describe`.
"""

import asyncio
import json
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from adapters.sandbox import canary
from adapters.sandbox.backend import Backend
from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import Cgroups, discover
from adapters.sandbox.command_process import Plan
from adapters.sandbox.landlock import Landlock
from adapters.sandbox.unconfined import Unconfined
from runtime.domain.errors import InvalidInput
from runtime.ports.clock import Clock
from runtime.ports.sandbox import (
    TASK_TOKEN,
    Sandbox,
    SandboxCommand,
    SandboxLimits,
    SandboxUnavailable,
)

Setting = Literal["auto", "bubblewrap", "landlock", "none"]
_CANARY_LIMITS = SandboxLimits(timeout_s=30.0)
# What `environment_of` makes, and what an interpreter or a C library adds by itself.
_EXPECTED_VARIABLES = {"PATH", "HOME", "TMPDIR", "LANG", "TERM", "PWD", "LC_CTYPE", TASK_TOKEN}
_POSSIBLE = {
    "list": "a folder that commands work in cannot be listed",
    "create": "nothing can be made in the working folder",
    "rename": "nothing can be renamed in the working folder",
    "map": "no file of the working folder can be mapped into memory",
    "git": "git does not work in the working folder",
    "remove": "nothing can be removed from the working folder",
}
_IMPOSSIBLE = {
    "write_outside": "a file outside the working folder could be written",
    "read_hidden": "a hidden file could be read",
    "network": "a listener on this host could be reached",
}


class Refused(Backend):
    """The `Sandbox` of a host on which nothing confines: it starts no command."""

    name = "refused"
    confines = False

    def plan(self, command: SandboxCommand) -> Plan:
        del command
        why = ("Commands are not run, because nothing here can confine them.", *self.reasons)
        raise SandboxUnavailable(
            " ".join(why),
            hint=(
                "Install bubblewrap (apt install bubblewrap), or use Linux 6.2 or newer with "
                'Landlock, or set sandbox = "none" to run commands unconfined.'
            ),
        )

    def confinement(self) -> str:
        return "no command is run."

    def describe(self) -> str:
        return " ".join((f"{self.name}: {self.confinement()}", *self.reasons))


def candidates(clock: Clock, cgroups: Cgroups) -> tuple[Backend, ...]:
    """The backends that confine, the best first."""
    return Bubblewrap(clock, cgroups=cgroups), Landlock(clock, cgroups=cgroups)


async def choose(
    setting: Setting,
    *,
    clock: Clock,
    cgroups: Cgroups | None = None,
    backends: Sequence[Backend] | None = None,
    grants: SandboxCommand | None = None,
) -> Sandbox:
    """The sandbox for `setting`: the first backend that passes its canary, or `Refused`.

    A setting that names one backend tries that one alone. `none` tries nothing. `grants` is a
    command as tools make it, whose view the canary gets; without one it gets a folder of its own.
    """
    groups = await asyncio.to_thread(discover) if cgroups is None else cgroups
    await asyncio.to_thread(groups.sweep)
    if setting == "none":
        return Unconfined(clock, cgroups=groups)
    reasons: list[str] = []
    for backend in candidates(clock, groups) if backends is None else backends:
        if setting in ("auto", backend.name):
            reason = await try_backend(backend, grants)
            if reason is None:
                return replace(backend, reasons=tuple(reasons))
            reasons.append(f"{backend.name} was not taken: {reason}")
    return Refused(clock, cgroups=groups, reasons=tuple(reasons))


async def try_backend(backend: Backend, grants: SandboxCommand | None = None) -> str | None:
    """Run the canary; None when it passed, else one sentence on what went wrong."""
    refused = backend.available()
    if refused is not None:
        return str(refused)
    place = await asyncio.to_thread(_make_place)
    try:
        workspace = str(place / "workspace")
        made_up = SandboxCommand(command="", cwd=workspace, writable=(workspace,))
        return await _canary(backend, place, grants or made_up)
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


async def _canary(backend: Backend, place: Path, grants: SandboxCommand) -> str | None:
    listener = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    scratch = Path(grants.cwd) / f".gatehouse-canary-{secrets.token_hex(8)}"
    outside = (_above(scratch), place / "beside/file")
    try:
        async with listener:
            command = _canary_command(place, scratch, listener.sockets[0].getsockname()[1], grants)
            output = bytearray()
            async with await backend.start(command) as process:
                while chunk := await process.read():
                    output += chunk[: 65536 - len(output)]
                ended = await process.wait()
    finally:
        # It removes this itself, unless it was ended before.
        await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)
        wrote = [path for path in outside if path.exists()]
        for path in wrote:
            path.unlink()
    if ended.code != 0:
        text = output.decode("utf-8", "replace").strip()[-300:]
        return f"the canary ended with code {ended.code}: {text}"
    granted = _EXPECTED_VARIABLES.union(grants.env)
    return _verdict(json.loads(output), granted, wrote=bool(wrote))


def _canary_command(
    place: Path, scratch: Path, port: int, grants: SandboxCommand
) -> SandboxCommand:
    beside, hidden = place / "beside", place / "beside/hidden"
    asked = {
        "scratch": str(scratch),
        "port": port,
        "folders": grants.writable,
        "closed": (str(beside / "file"), *grants.readable),
        "above": str(_above(scratch)),
        "hidden": str(hidden / "secret"),
    }
    python = os.path.realpath(sys.executable)
    # The interpreter may live where nothing is shown otherwise, as in a home directory.
    shown = (sys.base_prefix, str(Path(python).parent), str(beside))
    source = Path(canary.__file__).read_text()
    return replace(
        grants,
        command=(python, "-I", "-S", "-c", source, json.dumps(asked)),
        readable=(*grants.readable, *shown),
        hidden=(*grants.hidden, str(hidden)),
        network=False,
        limits=_CANARY_LIMITS,
    )


def _above(scratch: Path) -> Path:
    """A file beside the working folder, where nothing can be written."""
    return scratch.parent.with_name(scratch.name)


def _verdict(found: Mapping[str, object], granted: Collection[str], *, wrote: bool) -> str | None:
    for name, complaint in _POSSIBLE.items():
        if found.get(name) != "done":
            return f"{complaint} ({found.get(name)})."
    for name, complaint in _IMPOSSIBLE.items():
        if found.get(name, "done") == "done":
            return f"{complaint}."
    if wrote:
        return f"{_IMPOSSIBLE['write_outside']}."
    names = found.get("environment")
    extra = set(names).difference(granted) if isinstance(names, list) else {"all"}
    return f"variables that nobody granted were seen: {sorted(extra)}." if extra else None
