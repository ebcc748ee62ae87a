"""The supervisor: a small process between the gateway and one command.

It confines and starts the command, inherits its orphans, kills what the command leaves behind, and
kills everything when the gateway goes away: the gateway holds the other end of `control`, so even
a SIGKILL of the gateway reaches here as the end of that pipe. It is a program of its own because a
process with threads must run no Python between fork and exec.

Run as `python -I -S -B -c BOOT ROOT SPEC_FD CONTROL_FD STATUS_FD`. On `status` it writes one
Python literal a line: one when the command runs (`{"started": True}` or `{"error": "..."}`), one
with its wait status, and where the disk is measured one with what was used and with the limit that
ended it, if one did. A byte on `control` means that the tree is being ended politely: survivors are
then left alone until `control` ends. Standard library only, and little of it, as in `launch_spec`.
"""

import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator

from adapters.sandbox import power_drop, threads
from adapters.sandbox.disk import DiskMeter
from adapters.sandbox.launch_spec import LaunchSpec, from_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from adapters.sandbox.broker import Broker

BOOT = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from adapters.sandbox.launcher import main; main(sys.argv[2:])"
)
_RETRY_MS = 50


def main(arguments: list[str]) -> None:
    """Run one command to its end; see the module for the arguments."""
    spec_fd, control, status = (int(argument) for argument in arguments)
    with os.fdopen(spec_fd, "rb") as file:
        spec = from_bytes(file.read())
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    power_drop.become_subreaper()
    # Whoever ends the whole tree politely means the command: this process ends after it.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    bell = _bell()
    error_out, error_in = os.pipe()
    handover = _Handover() if spec.asks_supervisor else None
    meter = DiskMeter(spec.limits.disk) if spec.limits.disk is not None else None
    child = os.fork()
    if child == 0:
        _become_command(spec, error_in, handover)
    os.close(error_in)
    listener = handover.receive() if handover is not None else None
    _let_go_of_stdio()
    for descriptor in spec.keep_fds:
        os.close(descriptor)
    with os.fdopen(error_out, "rb") as file:
        error = file.read().decode("utf-8", "replace")
    _tell(status, {"error": error} if error else {"started": True})
    supervision = _Supervision(child, control, status, bell, meter)
    if listener is not None:
        supervision.listen(listener, lambda: _broker(spec, listener))
    supervision.run()
    if spec.temporary is not None:
        # Here rather than in the gateway, which may have been killed.
        _remove(spec.temporary)
    if meter is not None:
        used = {"disk_used": meter.total(), "started_ns": meter.started_ns}
        _tell(status, {**used, "limit": supervision.excess})


class _Handover:
    """The way of the filter's listener from the child, which installs the filter, to here."""

    def __init__(self) -> None:
        # Only a command whose filter asks pays for this import.
        import socket

        self._ours, self._theirs = socket.socketpair()
        self._receive, self._send = socket.recv_fds, socket.send_fds

    def receive(self) -> int | None:
        """The listener, or None if the child failed before it had one."""
        self._theirs.close()
        with self._ours:
            _, descriptors, _, _ = self._receive(self._ours, 1, 1)
        return descriptors[0] if descriptors else None

    def send(self, listener: int) -> None:
        """In the child. Both ends close on exec there."""
        self._send(self._theirs, [b"L"], [listener])


def _broker(spec: LaunchSpec, listener: int) -> "Broker":
    # Most commands never ask, and the processor time of these imports is that of a whole start.
    from adapters.sandbox.attributes import Rights
    from adapters.sandbox.broker import Broker, Forks

    rules = spec.landlock.rules if spec.landlock is not None else ()
    most = spec.limits.tasks
    return Broker(
        listener,
        {
            path: Rights(
                read=bool(rights & power_drop.READ_FILE), write=bool(rights & power_drop.WRITE_FILE)
            )
            for path, rights in rules
        },
        None if most is None else Forks(most, lambda: list(_below())),
    )


def _remove(folder: str) -> None:
    try:
        os.rmdir(folder)
    except OSError:
        # Only a command that left something in it pays for this import.
        import shutil

        shutil.rmtree(folder, ignore_errors=True)


def _bell() -> int:
    """A descriptor that becomes readable at each SIGCHLD."""
    out, into = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    os.set_blocking(into, False)
    os.set_blocking(out, False)
    signal.set_wakeup_fd(into, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return out


def _become_command(spec: LaunchSpec, error_in: int, handover: _Handover | None) -> "NoReturn":
    try:
        signal.set_wakeup_fd(-1)
        os.setsid()
        power_drop.die_with_parent()
        os.umask(0o022)
        os.chdir(spec.cwd)
        # Python ignores the first two, and what is ignored stays so across exec.
        for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        listener = power_drop.apply(spec)
        if listener is not None and handover is not None:
            # It closes on exec: the command must not answer its own questions.
            handover.send(listener)
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
        os.write(status, repr(message).encode() + b"\n")


class _Supervision:
    """Waits for the command and for orders until no descendant is left."""

    def __init__(
        self, child: int, control: int, status: int, bell: int, meter: DiskMeter | None
    ) -> None:
        self._child = child
        self._control = control
        self._status = status
        self._bell = bell
        self._meter = meter
        self.excess: str | None = None
        self._polite = False
        self._killing = False
        self._disk_due = False
        self._poll = select.poll()
        self._poll.register(control, select.POLLIN)
        self._poll.register(bell, select.POLLIN)
        self._broker: Broker | None = None

    def listen(self, listener: int, make_broker: "Callable[[], Broker]") -> None:
        """Have the questions that arrive on `listener` answered by a broker, made for the first."""
        self._make_broker = make_broker
        self._poll.register(listener, select.POLLIN)

    def run(self) -> None:
        """Return when nobody is left; `excess` then says what ended the command, if this did."""
        if self._meter is not None:
            # Its signal rings the bell.
            signal.signal(signal.SIGALRM, self._look_at_disk)
            every = self._meter.interval_s
            signal.setitimer(signal.ITIMER_REAL, every, every)
        while self._reap():
            self._measure()
            if self._killing:
                _kill_descendants(self._child)
            for descriptor, event in self._poll.poll(self._patience_ms()):
                if descriptor == self._control:
                    self._obey()
                elif descriptor == self._bell:
                    _drain(self._bell)
                elif event & select.POLLIN:
                    self._broker = self._broker or self._make_broker()
                    self._broker.answer_one()
                else:
                    # Nobody is left whom the filter binds.
                    self._poll.unregister(descriptor)

    def _look_at_disk(self, number: int, frame: object) -> None:
        del number, frame
        self._disk_due = True

    def _patience_ms(self) -> int | None:
        if self._disk_due:
            return 0
        return _RETRY_MS if self._killing else None

    def _measure(self) -> None:
        if self._meter is None or not self._disk_due or self._killing:
            self._disk_due = False
            return
        self.excess = self._meter.measure(tuple(_descendants()))
        self._disk_due = self._meter.walking
        self._killing = self.excess is not None

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
    if not os.path.isdir("/proc/self"):
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
    """What lives below this process, a process without its first thread included."""
    return (pid for pid, state in _below().items() if not threads.is_dead(pid, state))


def _below() -> dict[int, bytes]:
    """The processes below this one, also those that nobody collected yet, with their states."""
    parents: dict[int, int] = {}
    states: dict[int, bytes] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with contextlib.suppress(OSError):
                fields = threads.stat_fields(f"/proc/{name}")
                states[int(name)], parents[int(name)] = fields[0], int(fields[1])
    own = os.getpid()
    below = {own}
    grown = True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        below |= more
        grown = bool(more)
    return {pid: states[pid] for pid in below - {own}}


if __name__ == "__main__":
    main(sys.argv[1:])
