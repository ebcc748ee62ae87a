"""The supervisor: a small process between the gateway and one command.

It confines and starts the command, inherits its orphans, kills what the command leaves behind, and
kills everything when the gateway goes away: the gateway holds the other end of `control`, so even
a SIGKILL of the gateway reaches here as the end of that pipe. It is a program of its own because a
process with threads must run no Python between fork and exec.

Run as `python -I -S -B -c BOOT ROOT SPEC_FD CONTROL_FD STATUS_FD`. On `status` it writes one JSON
line when the command runs (`{"started": true}` or `{"error": "..."}`) and one with its wait status.
A byte on `control` means that the tree is being ended politely: survivors are then left alone
until `control` ends. Standard library only, as in `spec`.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from adapters.sandbox import confine
from adapters.sandbox.modes import ModeBroker
from adapters.sandbox.spec import LaunchSpec

BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from adapters.sandbox.launch import main; main(sys.argv[2:])"
)
_RETRY_MS = 50


def main(arguments: list[str]) -> None:
    """Run one command to its end; see the module for the arguments."""
    spec_fd, control, status = (int(argument) for argument in arguments)
    with os.fdopen(spec_fd) as file:
        spec = LaunchSpec.from_json(file.read())
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    confine.become_subreaper()
    # Whoever ends the whole tree politely means the command: this process ends after it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    bell = _bell()
    error_out, error_in = os.pipe()
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        _become_command(spec, error_in, theirs)
    os.close(error_in)
    theirs.close()
    _let_go_of_stdio()
    for descriptor in spec.keep_fds:
        os.close(descriptor)
    with os.fdopen(error_out, "rb") as file:
        error = file.read().decode("utf-8", "replace")
    _tell(status, {"error": error} if error else {"started": True})
    _Supervision(child, control, status, bell, _broker(spec, ours)).run()
    if spec.temporary is not None:
        # Here rather than in the gateway, which may have been killed.
        shutil.rmtree(spec.temporary, ignore_errors=True)


def _broker(spec: LaunchSpec, ours: socket.socket) -> ModeBroker | None:
    """Who answers for the filter, if the child handed over the descriptor of its questions."""
    with ours:
        _, descriptors, _, _ = socket.recv_fds(ours, 1, 1)
    if not descriptors or spec.landlock is None:
        return None
    write = confine.WRITE_FILE
    return ModeBroker(
        descriptors[0], {path: bool(rights & write) for path, rights in spec.landlock.rules}
    )


def _bell() -> int:
    """A descriptor that becomes readable at each SIGCHLD."""
    out, into = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    os.set_blocking(into, False)
    os.set_blocking(out, False)
    signal.set_wakeup_fd(into, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return out


def _become_command(spec: LaunchSpec, error_in: int, theirs: socket.socket) -> NoReturn:
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        confine.die_with_parent()
        os.umask(0o022)
        os.chdir(spec.cwd)
        # Python ignores the first two, and what is ignored stays so across exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        listener = confine.apply(spec)
        if listener is not None:
            # It closes on exec: the command must not answer its own questions.
            socket.send_fds(theirs, [b"L"], [listener])
        os.execve(spec.argv[0], spec.argv, spec.env)
    except (OSError, ValueError) as error:
        os.write(error_in, f"{type(error).__name__}: {error}".encode())
    finally:
        os._exit(127)


def _let_go_of_stdio() -> None:
    """The command's pipes end with the command, so nobody else may hold them."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def _tell(status: int, message: dict[str, object]) -> None:
    # The gateway may be gone: then the end of `control` is next, and it says what to do.
    with contextlib.suppress(OSError):
        os.write(status, json.dumps(message).encode() + b"\n")


class _Supervision:
    """Waits for the command and for orders until no descendant is left."""

    def __init__(
        self, child: int, control: int, status: int, bell: int, broker: ModeBroker | None
    ) -> None:
        self._child = child
        self._control = control
        self._status = status
        self._bell = bell
        self._broker = broker
        self._polite = False
        self._killing = False
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(bell, select.POLLIN)
        if broker is not None:
            self._poll.register(broker.listener, select.POLLIN)

    def run(self) -> None:
        while self._reap():
            if self._killing:
                _kill_descendants(self._child)
            for descriptor, event in self._poll.poll(_RETRY_MS if self._killing else None):
                if descriptor == self._control:
                    self._obey()
                elif descriptor == self._bell:
                    _drain(self._bell)
                elif event & select.POLLIN and self._broker is not None:
                    self._broker.answer_one()
                else:
                    # Nobody is left whom the filter binds.
                    self._poll.unregister(descriptor)

    def _reap(self) -> bool:
        """Collect the dead; False when nobody is left."""
        while True:
            try:
                pid, wait_status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._child:
                _tell(self._status, {"wait_status": wait_status})
                self._killing = self._killing or not self._polite

    def _obey(self) -> None:
        if os.read(self._control, 64):
            self._polite = True
            return
        self._poll.unregister(self._control)
        self._killing = True


def _drain(descriptor: int) -> None:
    with contextlib.suppress(BlockingIOError):
        while os.read(descriptor, 512):
            pass


def _kill_descendants(child: int) -> None:
    """Stop them all first, so that none forks while the list is read, then kill them."""
    if not Path("/proc/self").is_dir():
        # Without a list of processes (macOS) only the command's own group can be reached.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)
        return
    stopped: set[int] = set()
    while fresh := set(_descendants()) - stopped:
        for pid in fresh:
            _signal(pid, signal.SIGSTOP)
        stopped |= fresh
    for pid in stopped:
        _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> None:
    # A descendant cannot be reaped by anybody but its ancestors below here and this process, and
    # those are stopped: the pid is not reused between the list and the signal.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def _descendants() -> Iterator[int]:
    parents: dict[int, int] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
                if fields[0] not in (b"Z", b"X"):
                    parents[int(process.name)] = int(fields[1])
    own = os.getpid()
    below = {own}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    yield from below - {own}


if __name__ == "__main__":
    main(sys.argv[1:])
