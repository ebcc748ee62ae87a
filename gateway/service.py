"""The life of one gateway process: start in order, serve, stop in order (OPS-3, OPS-10).

Everything runs in one TaskGroup. A first SIGTERM or SIGINT ends it in order: nothing new is taken,
turns finish within the grace time or are put back, replies that are being sent are sent. A second
signal ends it at once; nothing is lost then either, because the database is the truth.
"""

import asyncio
import errno
import gc
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import structlog

from gateway import home_socket, home_token, wiring, workspaces
from gateway.addresses import addresses
from gateway.config import Config, ConfigError, secrets_of
from gateway.config_engine import needs_restart
from gateway.http.app import build_app, build_probes
from gateway.http.server import serve as http_serve
from gateway.http.waiting import answer_probes
from gateway.logs import Redactor
from gateway.wiring import Assembly
from runtime.domain.errors import (
    InvalidInput,
    StoreAway,
    StoreCorrupt,
    StoreFull,
    StoreUnavailable,
    Unavailable,
)
from runtime.engine.engine import Role
from runtime.intake.home_tokens import RENEW_S
from runtime.workspace.text_files import Status, status

log = structlog.get_logger(__name__)

WATCH_S = 1.0
"""How often the configuration's files are looked at."""
FLUSH_S = 5.0
"""How long replies that wait may still be sent at the end."""
FLUSH_TICK_S = 0.05
READY_TICK_S = 0.01
NEARLY_NOTHING = 64 * 1024
"""Bytes. With less, SQLite may say of a full disk only that a file cannot be opened or written."""
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
AGAIN_S = 2.0
"""How often a start asks for a database server that is away, or for room."""


@dataclass(frozen=True, slots=True)
class Started:
    """A gateway that works. `url` is empty without the role `http`; `owner_code` is set at the
    first start alone."""

    assembly: Assembly
    url: str
    owner_code: str | None


@dataclass(frozen=True, slots=True)
class _Door:
    """Where to listen, and the key that says so."""

    host: str
    key: str
    port: int

    def refused(self, error: OSError) -> str:
        """Why nobody can be let in there, and what to do."""
        if error.errno == errno.EADDRINUSE:
            variable = self.key.upper().replace(".", "__")
            return (
                f"Port {self.port} on {self.host} is in use by another program. Stop it, or choose "
                f"another port: {self.key} in gatehouse.toml, or GATEHOUSE_{variable}."
            )
        if error.errno in (errno.EACCES, errno.EPERM):
            return (
                f"Port {self.port} may not be used by this user. "
                f"Choose one above 1023 in {self.key}."
            )
        return f"The gateway cannot listen on {self.host}:{self.port}: {error.strerror or error}."


class CannotStart(Exception):
    """The gateway cannot start; the text says why and what to do."""


class CannotStartYet(CannotStart):
    """The database server is away; a later start may find it."""

    public = "the database does not answer"
    """What anybody may be told, without an address."""


class NoRoom(CannotStartYet):
    """The disk is full; a later start may find room."""

    public = "the disk is full"


@dataclass(frozen=True, slots=True)
class Start:
    """How to start: the settings, how to read them again, and what masks secrets in the log."""

    config: Config
    reload: Callable[[], Config]
    redactor: Redactor


@asynccontextmanager
async def running(start: Start) -> AsyncIterator[Started]:
    """A gateway that serves while the block runs; leaving it stops the gateway in order.

    Raises `CannotStart`.
    """
    config = start.config
    async with AsyncExitStack() as stack:
        try:
            # Roles that cannot be are refused before anything is made.
            wiring.roles_of(config)
            wiring.check_proxies()
            await asyncio.to_thread(workspaces.make_home, config)
            await asyncio.to_thread(home_token.make, config.home)
            start.redactor.change(secrets_of(config))
            stack.enter_context(wiring.alone(config))
            assembly = await _prepare(config, start.redactor)
            stack.push_async_callback(assembly.close)
            code = await assembly.owner_code()
            await assembly.owner.accept()
            url = await stack.enter_async_context(_listening(config, assembly))
        except StoreAway as error:
            raise CannotStartYet(str(error)) from error
        except (Unavailable, InvalidInput, OSError) as error:
            if _is_full(error, config.home):
                raise NoRoom(f"There is no room on the disk of {config.home}: {error}") from error
            if isinstance(error, OSError):
                raise CannotStart(f"The gateway cannot start: {error}.") from error
            raise CannotStart(str(error)) from error
        async with asyncio.TaskGroup() as group:
            keep = assembly.engine.supervisor.start
            engine = keep(group, "engine", assembly.engine.run)
            watch = keep(group, "configuration watch", _Watch(start, assembly).run)
            try:
                await _ready(assembly)
                yield Started(assembly, url, code)
            finally:
                watch.cancel()
                await _drain(assembly, config.settings.shutdown_grace_s)
                engine.cancel()


@asynccontextmanager
async def _listening(config: Config, assembly: Assembly) -> AsyncIterator[str]:
    """The page and the API with the role `http`. Without it, probes where a port is set for them;
    that is no place for people, so the address is empty."""
    services, http = assembly.http_services(), config.settings.http
    whole = Role.HTTP in assembly.engine.parts.roles
    key, port = ("http.port", http.port) if whole else ("http.health_port", http.health_port)
    if port is None:
        yield ""
        return
    door = _Door(http.host, key, port)
    app = build_app(services) if whole else build_probes(services)
    async with AsyncExitStack() as stack:
        own = _own_socket(stack, config.home) if whole else None
        serving = http_serve(app, replace(services.settings, port=port), own)
        try:
            got = await stack.enter_async_context(serving)
        except OSError as error:
            raise CannotStart(door.refused(error)) from error
        if whole:
            assembly.current.addresses = await asyncio.to_thread(addresses, http.host, got)
        yield assembly.current.addresses.here


def _own_socket(stack: AsyncExitStack, home: Path) -> socket.socket | None:
    """Where the command line of this home comes in. A file system without sockets is no reason to
    serve nobody else."""
    try:
        return stack.enter_context(home_socket.listening(home))
    except OSError as error:
        log.warning("home_socket_unavailable", home=str(home), reason=str(error))
        return None


def _settle_memory() -> None:
    """What is there now stays until the end, so the collector need not look at it again: its full
    rounds over all modules cost more than most turns (`docs/performance.md`). `cli.serve` has
    switched it off: what is loaded is no garbage, and looking at it was a fifth of the start. Nor
    is it looked at now: the first message would wait a tenth of a second for 0.2 MB."""
    gc.freeze()
    gc.enable()


async def _ready(assembly: Assembly) -> None:
    """Wait until this process holds its lease and its own channels are connected.

    Where it serves platforms alone it does not wait for them: they may be away for long. Raises
    `RuntimeError` if the engine fails before that: a start that fails ends, and says why.
    """
    engine = assembly.engine
    own = Role.HTTP in engine.parts.roles
    while not engine.ready or (own and not any(one.status().connected for one in engine.accounts)):
        if reason := engine.supervisor.reason("engine"):
            raise RuntimeError(f"the engine failed at the start: {reason}")
        await assembly.clock.sleep(READY_TICK_S)


def _is_full(error: BaseException, home: Path) -> bool:
    """Whether a failure comes from a disk, or a quota, without room."""
    causes = tuple(_causes(error))
    if any(isinstance(cause, StoreFull) or _errno(cause) in _FULL for cause in causes):
        return True
    unclear = any(isinstance(cause, StoreUnavailable) for cause in causes)
    return unclear and _free_bytes(home) < NEARLY_NOTHING


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and what it was raised from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _errno(error: BaseException) -> int | None:
    return error.errno if isinstance(error, OSError) else None


def _free_bytes(folder: Path) -> int:
    try:
        status = os.statvfs(folder)
    except OSError:
        return NEARLY_NOTHING
    return status.f_bavail * status.f_frsize


async def _begin(stack: AsyncExitStack, start: Start, stop: asyncio.Event) -> Started | None:
    """Enter `running`; again while the database server is away, for `database.wait_s`, and while
    the disk is full, for as long as that takes: probes are answered meanwhile.

    A replica that is restarted while its database is too would stay away for as long as whoever
    restarts it then waits: minutes, or for ever. None if `stop` was set meanwhile. Raises
    `CannotStart`.
    """
    clock, wait_s = wiring.system_clock(), start.config.settings.database.wait_s
    began, again_s = clock.monotonic(), AGAIN_S
    while True:
        try:
            return await stack.enter_async_context(running(start))
        except NoRoom as error:
            log.warning("room_awaited", reason=str(error))
            public = error.public
        except CannotStartYet as error:
            if clock.monotonic() - began >= wait_s:
                raise
            log.warning("database_awaited", reason=str(error), for_s=wait_s)
            public, again_s = error.public, min(AGAIN_S, wait_s)
        host, port = _probes_at(start.config)
        async with answer_probes(host, port, public):
            with suppress(TimeoutError):
                async with asyncio.timeout(again_s):
                    await stop.wait()
                    return None


def _probes_at(config: Config) -> tuple[str, int | None]:
    """Where `/readyz` is asked for; no port where nobody knows it."""
    http, roles = config.settings.http, config.settings.roles
    port = http.port if Role.HTTP in roles else http.health_port
    return http.host, port or None


Tell = Callable[[Started], Coroutine[None, None, None]]


async def serve(start: Start, announce: Tell, follow: Tell | None = None) -> int:
    """Serve until a signal comes; the exit code. `announce` is called once it answers, `follow`
    after that, while it serves."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, partial(_on_signal, stop, number))
    code = 0
    try:
        async with AsyncExitStack() as stack:
            started = await _begin(stack, start, stop)
            if started is None:
                return 0
            await announce(started)
            _settle_memory()
            log.info("ready", url=started.url, roles=list(start.config.settings.roles))
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(load_model(started.assembly), name="model library")]
                if follow is not None:
                    tasks.append(group.create_task(follow(started), name="announcements"))
                await stop.wait()
                for task in tasks:
                    task.cancel()
            log.info("stopping", grace_s=start.config.settings.shutdown_grace_s)
    except CannotStart:
        raise
    except Exception as error:  # the root of the process: through the log, which masks secrets
        damage = await asyncio.to_thread(_damage, start.config, error)
        if damage:
            raise CannotStart(damage) from error
        log.exception("gateway_failed")
        code = 1
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
    log.info("stopped")
    return code


def _damage(config: Config, error: Exception) -> str:
    """What is wrong with a damaged database, which can make anything fail; empty where it is whole.

    Blocks: after a failure nobody waits, so the whole file is read.
    """
    group = ExceptionGroup("what failed", [error]).subgroup(StoreCorrupt)
    if group is not None:
        return str(_first(group))
    try:
        wiring.examine_database(config)
    except StoreCorrupt as found:
        return str(found)
    return ""


async def load_model(assembly: Assembly) -> None:
    """Load the default model's library where turns run; who cannot wait loads it with a message.

    The collector is off meanwhile, and what was loaded stays, as in `_settle_memory`.
    """
    if Role.WORKERS not in assembly.engine.parts.roles:
        return
    gc.disable()
    try:
        # Whatever a library raises here, it raises again for the message that needs it.
        (loaded,) = await asyncio.gather(assembly.catalog.load(), return_exceptions=True)
    finally:
        gc.freeze()
        gc.enable()
    if isinstance(loaded, Exception):
        log.warning("model_not_loaded", model=assembly.catalog.default, reason=str(loaded))
    elif loaded:
        log.info("model_loaded", model=assembly.catalog.default)


def _on_signal(stop: asyncio.Event, number: int) -> None:
    if stop.is_set():
        # The second signal: the person wants it gone now, and the database keeps what was begun.
        log.warning("stopped_at_once", signal=signal.Signals(number).name)
        os._exit(128 + number)
    stop.set()


async def _prepare(config: Config, redactor: Redactor) -> Assembly:
    """Everything that must be right before the gateway takes anything."""
    clock = wiring.system_clock()
    # Before the canary, which works in it.
    await asyncio.to_thread(workspaces.prepare_workspace, config)
    try:
        async with asyncio.TaskGroup() as group:
            # Beside each other: the canary waits for processes, the database for the disk.
            sandbox = group.create_task(wiring.choose_sandbox(config, clock), name="canary")
            models = group.create_task(wiring.find_models(config), name="model discovery")
            await wiring.prepare_database(config)
    except ExceptionGroup as several:
        raise _first(several) from several
    log.info("sandbox_chosen", sandbox=sandbox.result().name)
    return await wiring.assemble(
        config,
        clock=clock,
        catalog=models.result(),
        sandbox=sandbox.result(),
        redact=redactor.secrets,
        begun=redactor.begun,
    )


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """One failure of those that came together: a person mends one thing at a time."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error


async def _drain(assembly: Assembly, grace_s: float) -> None:
    """Take nothing new, finish or put back what runs, send what is ready to be sent."""
    assembly.current.draining = True
    await assembly.engine.drain(grace_s)
    waited, before = 0.0, None
    while waited < FLUSH_S:
        try:
            outbox = (await assembly.views.status()).outbox
        except StoreUnavailable:
            return
        left = outbox.get("pending", 0) + outbox.get("sending", 0)
        if not left or (before == left and waited >= FLUSH_S / 5):
            return
        before = left
        await assembly.clock.sleep(FLUSH_TICK_S)
        waited += FLUSH_TICK_S


class _Watch:
    """Takes over the rules of access and the tokens whenever a file changes (ACC-2, API-1), and
    says now and then that this home is at work, so that other replicas keep its token.

    What it has seen outlives a fault of its task: a change that could not be taken over is tried
    again."""

    def __init__(self, start: Start, assembly: Assembly) -> None:
        self._start = start
        self._assembly = assembly
        self._config = start.config
        self._seen = _states(start.config)
        self._renewed = assembly.clock.monotonic()

    async def run(self) -> None:
        """Look until cancelled."""
        clock = self._assembly.clock
        while True:
            await clock.sleep(WATCH_S)
            if clock.monotonic() - self._renewed >= RENEW_S:
                self._renewed = clock.monotonic()
                await self._keep_home_token()
            states = await asyncio.to_thread(_states, self._config)
            if states != self._seen:
                await self._read_again()
                # Not before: a change whose reading failed in an unexpected way is read again.
                self._seen = states

    async def _read_again(self) -> None:
        start, assembly = self._start, self._assembly
        try:
            changed = await asyncio.to_thread(start.reload)
        except ConfigError as error:
            log.error("configuration_refused", problems=[str(one) for one in error.problems])
            return
        start.redactor.change((*secrets_of(self._config), *secrets_of(changed)))
        assembly.change(changed)
        await self._keep_home_token()
        log.info(
            "configuration_read",
            needs_restart=list(needs_restart(start.config.settings, changed.settings)),
        )
        self._config = changed

    async def _keep_home_token(self) -> None:
        try:
            await self._assembly.owner.accept()
        except StoreUnavailable as error:
            log.warning("home_token_not_kept", reason=str(error))


def _states(config: Config) -> tuple[tuple[Path, Status], ...]:
    """How the files stand. Another mode shows too: a file of secrets is refused until nobody else
    may read it."""
    return tuple((path, status(path)) for path in config.watched)
