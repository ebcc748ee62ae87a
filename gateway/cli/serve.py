"""`serve`: run the gateway until it is told to stop."""

import gc
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Final

import typer

from adapters.sandbox.closed_folders import SYSTEM_CLOSED
from gateway.cli import event_loop
from gateway.cli.common import USAGE, Options, fail, note, read_config
from runtime.domain.optional_libraries import without

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gateway.config import Config
    from gateway.service import Started
    from runtime.delivery.platform_accounts import Account

FOLLOW_S: Final = 0.1
"""How often platforms that are still connecting are looked at after the start."""
Roles = Annotated[
    str | None,
    typer.Option(
        help="Run only these parts, separated by commas: adapters, workers, timers, http. "
        "The others run in other processes on the same PostgreSQL database."
    ),
]


Delay = Annotated[int | None, typer.Option(help="scheduler.retry_base_delay_ms.")]
MostDelay = Annotated[int | None, typer.Option(help="scheduler.retry_max_delay_ms.")]
Jitter = Annotated[int | None, typer.Option(help="scheduler.retry_jitter_ms.")]
Attempts = Annotated[
    int | None, typer.Option(help="scheduler.retry_max_attempts; 0 tries for ever.")
]


def serve(
    context: typer.Context,
    roles: Roles = None,
    scheduler_retry_base_delay_ms: Delay = None,
    scheduler_retry_max_delay_ms: MostDelay = None,
    scheduler_retry_jitter_ms: Jitter = None,
    scheduler_retry_max_attempts: Attempts = None,
) -> None:
    """Run the gateway."""
    given = {
        "retry_base_delay_ms": scheduler_retry_base_delay_ms,
        "retry_max_delay_ms": scheduler_retry_max_delay_ms,
        "retry_jitter_ms": scheduler_retry_jitter_ms,
        "retry_max_attempts": scheduler_retry_max_attempts,
    }
    # Until it is ready: see `gateway.service`.
    gc.disable()
    config = with_flags(read_config(context), roles, given)
    if config.settings.tools.sandbox != "none":
        # What this finds is needed half a second later, when the rest is loaded.
        SYSTEM_CLOSED.begin()
    # structlog would load it for tracebacks in colour, which no line of ours has: 4 MB.
    with without("rich"):
        # Lazy: as below.
        from gateway import logs
    # Lazy: the service loads the engine, the store and the HTTP server.
    from gateway.config import load, secrets_of
    from gateway.service import CannotStart, Start
    from gateway.service import serve as run
    from gateway.wiring import hide_from_others

    hide_from_others()
    log = config.settings.log
    redactor = logs.setup(level=log.level, style=log.format, secrets=secrets_of(config))
    options = context.find_object(Options) or Options()
    start = Start(config, lambda: with_flags(load(options.config), roles, given), redactor)
    try:
        code = event_loop.run(run(start, announce, follow))
    except CannotStart as error:
        fail(str(error))
    raise typer.Exit(code)


def with_flags(
    config: "Config", roles: str | None, scheduler: "Mapping[str, int | None]"
) -> "Config":
    """The settings with the flags of the command line; ends where one is wrong."""
    config = with_roles(config, roles)
    flags = {name: value for name, value in scheduler.items() if value is not None}
    if not flags:
        return config
    # Lazy: as in `read_config`.
    from pydantic import ValidationError

    # Lazy: as above.
    from gateway.config_model import Scheduler

    kept = config.settings.scheduler.model_dump()
    try:
        section = Scheduler.model_validate({**kept, **flags})
    except ValidationError as error:
        broken = error.errors()[0]
        flag = str(broken["loc"][0]).replace("_", "-")
        fail(f"--scheduler-{flag}: {broken['msg']}", USAGE)
    return replace(config, settings=config.settings.model_copy(update={"scheduler": section}))


def with_roles(config: "Config", roles: str | None) -> "Config":
    """The settings with the roles of the command line; ends where they are none."""
    if roles is None:
        return config
    # Lazy: as in `read_config`.
    from gateway.config_model import ROLES, Settings

    named = tuple(name.strip() for name in roles.split(","))
    if unknown := [name for name in named if name not in ROLES]:
        name = unknown[0] or "nothing"
        fail(f"--roles: {name} is not a role; the roles are {', '.join(ROLES)}", USAGE)
    chosen = Settings.model_validate({"roles": named}).roles
    return replace(config, settings=config.settings.model_copy(update={"roles": chosen}))


async def announce(started: "Started") -> None:
    """Say where it is, how to get in, and how the first owner of a chat is made; on the standard
    output, for people. The link that logs its reader in goes to a terminal alone: what is written
    elsewhere is kept."""
    model = started.assembly.catalog.default
    current = started.assembly.current
    roles, http = current.config.settings.roles, current.config.settings.http
    sys.stdout.write(f"Gatehouse is ready: {started.url or ', '.join(roles)}\n")
    if told := current.addresses.told(http.public_url):
        sys.stdout.write(f"{told}\n")
    if started.url:
        sys.stdout.write(await _way_in(started))
    sys.stdout.write(f"Model: {model}. Commands run in: {started.assembly.sandbox.name}.\n")
    if model.startswith("offline:"):
        sys.stdout.write(
            "No model is configured: the offline one answers. Set OPENAI_API_KEY, "
            "ANTHROPIC_API_KEY or GEMINI_API_KEY for a real one.\n"
        )
    if unlisted := started.assembly.catalog.settings.unlisted:
        sys.stdout.write(f"{unlisted}\n")
    for line in _platforms(started):
        sys.stdout.write(f"{line}\n")
    if started.owner_code is not None:
        sys.stdout.write(
            f"Owner code for the chat platforms, shown once: {started.owner_code}\n"
            "Send it to the bot in a direct message to become its owner.\n"
        )
    sys.stdout.flush()
    if started.assembly.sandbox.name == "refused":
        note(started.assembly.sandbox.describe())


def _platforms(started: "Started") -> list[str]:
    """One line for each platform that has credentials, or a part of them."""
    # Lazy: the engine has loaded it by now.
    from gateway.cli.checks_platforms import slack_half

    config = started.assembly.current.config
    half = slack_half(config) if "adapters" in config.settings.roles else None
    lines = [] if half is None else [f"Slack: configured in part: {half.found}. {half.fix}"]
    return lines + [_platform(started, one) for one in started.assembly.platforms]


def _platform(started: "Started", account: "Account") -> str:
    name = account.name.capitalize()
    if account.connecting:
        return f"{name}: connecting."
    if account.deliverer is not None:
        return f"{name}: connected as {account.adapter.account}."
    why = started.assembly.engine.parts.redact(account.status().detail)
    return f"{name}: not connected. {why}"


async def follow(started: "Started") -> None:
    """Say of each platform that was still connecting how that ended."""
    left = [one for one in started.assembly.platforms if one.connecting]
    while left:
        await started.assembly.clock.sleep(FOLLOW_S)
        for account in [one for one in left if not one.connecting]:
            left.remove(account)
            # Nobody may be left who reads it; the gateway serves all the same.
            with suppress(OSError):
                sys.stdout.write(f"{_platform(started, account)}\n")
                sys.stdout.flush()


async def _way_in(started: "Started") -> str:
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        return "Open the page: `gatehouse open` makes a link that logs you in.\n"
    # Lazy: the page's part of the server is loaded by now.
    from gateway.http.logins import login_path

    public = started.assembly.current.config.settings.http.public_url
    link = f"{public or started.url}{login_path(await started.assembly.owner.new_code())}"
    return f"Open the page, within ten minutes: {link}\n(`gatehouse open` makes another link.)\n"
