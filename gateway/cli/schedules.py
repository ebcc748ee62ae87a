"""`schedules`: what happens at a time that somebody named."""

from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.codes import id_of
from gateway.cli.common import (
    SESSION_HELP,
    AsJson,
    Limit,
    ask_gateway,
    cell,
    examples,
    group,
    one_of,
    plain,
    say,
    when,
)
from gateway.cli.listing import OF_RUNS, Listing, Watch
from gateway.cli.listing import show as show_list
from gateway.cli.sessions import session_id_of
from runtime.domain.json_fields import object_of, objects_of

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient, JsonObject

app = group("Look at schedules and reminders, and change them.")

STATUSES: Final = ("active", "paused", "completed", "cancelled")
"""As `runtime.features.schedules.model` names them, which loads too much for the frame."""
_CHANGES: Final = (
    *(f"schedule.{what}" for what in ("dispatched", "skipped", "settled")),
    *OF_RUNS,
)
ScheduleId = Annotated[
    str,
    typer.Argument(
        metavar="SCHEDULE",
        help="A schedule's id, which `gatehouse schedules list` shows, or its code from a chat.",
    ),
]


@app.command("list", epilog=examples("gatehouse schedules list --json"))
def list_(
    context: typer.Context,
    session: Annotated[
        str, typer.Option("--session-id", "--session", help=f"Only its schedules. {SESSION_HELP}")
    ] = "",
    status: Annotated[
        str, typer.Option(callback=one_of(*STATUSES), help="Only these, such as active.")
    ] = "",
    limit: Limit = 50,
    watch: Watch = False,
    as_json: AsJson = False,
) -> None:
    """Show schedules, the newest first."""

    async def read(gateway: "GatewayClient") -> "list[JsonObject]":
        session_id = await session_id_of(gateway, session) if session else ""
        asked = {"session_id": session_id, "status": status}
        query = {name: value for name, value in asked.items() if value}
        return await gateway.items("/v1/schedules", query, most=limit)

    listing = Listing(
        read,
        lambda one: {
            **one,
            "next": when_in(one.get("next_fire_at_ms"), zone_of(one)),
            "times": times_of(one),
        },
        {"ID": "schedule_id", "STATUS": "status", "NEXT": "next", "TIMES": "times", "NAME": "name"},
        "There are no such schedules.",
        _CHANGES,
        name="schedule_id",
    )
    show_list(context, listing, watch=watch, as_json=as_json)


@app.command()
def show(context: typer.Context, schedule: ScheduleId, as_json: AsJson = False) -> None:
    """Show one schedule, its next times and what became of its last ones."""

    async def read(gateway: "GatewayClient") -> "JsonObject":
        return await gateway.get(await _path_of(gateway, schedule))

    answer = ask_gateway(context, read, as_json=as_json)
    for line in details(object_of(answer, "schedule")):
        say(line)


@app.command()
def pause(context: typer.Context, schedule: ScheduleId, as_json: AsJson = False) -> None:
    """Stop a schedule until it is resumed. It keeps the time that was left."""
    _move(context, schedule, "pause", as_json=as_json)


@app.command()
def resume(context: typer.Context, schedule: ScheduleId, as_json: AsJson = False) -> None:
    """Let a paused schedule go on."""
    _move(context, schedule, "resume", as_json=as_json)


@app.command()
def trigger(context: typer.Context, schedule: ScheduleId, as_json: AsJson = False) -> None:
    """Let a schedule fire now, beside its own times."""
    _move(context, schedule, "trigger", as_json=as_json)


@app.command()
def cancel(
    context: typer.Context,
    schedule: ScheduleId,
    stop_run: Annotated[
        bool, typer.Option("--stop-run", help="End its run too, if one is at work.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """End a schedule for good. A run that is at work goes on, unless you stop it."""
    _move(context, schedule, "cancel", {"stop_run": stop_run}, as_json=as_json)


def _move(
    context: typer.Context,
    schedule: str,
    verb: str,
    body: "JsonObject | None" = None,
    *,
    as_json: bool,
) -> None:

    async def ask(gateway: "GatewayClient") -> "JsonObject":
        return await gateway.post(f"{await _path_of(gateway, schedule)}/{verb}", body)

    answer = ask_gateway(context, ask, as_json=as_json)
    found = object_of(answer, "schedule")
    asked = ", and was told to fire now" if verb == "trigger" else ""
    say(f"{cell(found.get('schedule_id'))} is {cell(found.get('status'))}{asked}.")
    if found.get("next_fire_at_ms") is not None:
        say(f"Its next time is {when_in(found['next_fire_at_ms'], zone_of(found))}.")


async def _path_of(gateway: "GatewayClient", schedule: str) -> str:
    listed = "/v1/schedules"
    return f"{listed}/{await id_of(gateway, schedule, listed, kind='schedule', key='schedule_id')}"


def details(found: "JsonObject") -> list[str]:
    """One schedule for people, line by line."""
    zone = zone_of(found)
    facts: dict[str, object] = {
        "id": found.get("schedule_id"),
        "name": found.get("name"),
        "status": found.get("status"),
        "session": found.get("target_session_id"),
        "owner": found.get("owner_person_id"),
        "times": times_of(found),
        "overlap": found.get("overlap_policy"),
        "fired": found.get("execution_count"),
        "error": found.get("last_error") or found.get("last_scheduler_error"),
    }
    lines = [f"{name.ljust(10)}  {cell(value)}" for name, value in facts.items()]
    coming = found.get("next_fires_at_ms")
    for at_ms in coming if isinstance(coming, list) else ():
        lines.append(f"next        {when_in(at_ms, zone)}")
    for one in objects_of(found, "recent_executions"):
        what = [one.get(name) for name in ("status", "run_id", "run_status", "error")]
        delivery = one.get("delivery_status")
        what.append(f"delivery {delivery}" if delivery else None)
        became = "  ".join(cell(word) for word in what if word)
        lines.append(f"{when_in(one.get('fire_at_ms'), zone)}  {became}")
    request = object_of(found, "request")
    texts = [item.get("text") for item in objects_of(request, "input_items")]
    words = [found.get("deliver_text"), request.get("content"), *texts]
    lines += [f"\n{plain(str(text))}" for text in words if text]
    return lines


def times_of(schedule: "JsonObject") -> str:
    """When a schedule is due, in few words."""
    cadence = object_of(schedule, "cadence")
    if cadence.get("type") == "interval":
        return f"every {cell(cadence.get('every_seconds'))} s"
    if cadence.get("type") == "cron":
        return f"cron {cell(cadence.get('expression'))}"
    return cell(cadence.get("type"))


def zone_of(schedule: "JsonObject") -> str:
    """The zone by which people read a schedule's times: a calendar's own, or else its owner's."""
    return str(object_of(schedule, "cadence").get("timezone") or schedule.get("timezone") or "UTC")


def when_in(at_ms: object, zone: str) -> str:
    """A time for people in a zone; in UTC where this machine does not know the zone."""
    # Lazy: nothing else on the command line needs time zones.
    from datetime import UTC, datetime
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    if not isinstance(at_ms, int):
        return "-"
    try:
        there = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return when(at_ms)
    local = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(there)
    return f"{local:%Y-%m-%d %H:%M:%S} {there.key}"
