"""`tasks`: what a session has to do, and its commands in the background."""

import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

import typer

from gateway.cli.codes import id_of
from gateway.cli.common import (
    AsJson,
    Limit,
    SessionName,
    ask_gateway,
    cell,
    group,
    note,
    one_of,
    plain,
    say,
    when,
    whole_number,
)
from gateway.cli.listing import Listing, Watch
from gateway.cli.listing import show as show_list
from gateway.cli.sessions import session_id_of
from runtime.domain.json_fields import object_of

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient, JsonObject

app = group("Look at a session's tasks, read their output and stop them.")

STATUSES: Final = ("pending", "in_progress", "blocked", "completed", "failed", "cancelled")
"""As `runtime.features.tasks.model` names them, which loads too much for the frame."""
OVER: Final = frozenset({"completed", "failed", "cancelled"})
MOST_TAIL_BYTES: Final = 256 * 1024
"""The longest excerpt that a gateway gives."""
_WAIT_MS: Final = 5_000
"""How long the gateway holds an answer. What was printed between two requests ends no waiting, so
it is shown this late at most."""
TaskId = Annotated[
    str,
    typer.Argument(
        metavar="TASK",
        help="A task's id, which `gatehouse tasks list` shows, or its code from the chat.",
    ),
]


@app.command("list")
def list_(
    context: typer.Context,
    session: SessionName,
    status: Annotated[
        str, typer.Option(callback=one_of(*STATUSES), help="Only these, such as in_progress.")
    ] = "",
    limit: Limit = 50,
    watch: Watch = False,
    as_json: AsJson = False,
) -> None:
    """Show a session's tasks, the newest first."""

    async def read(gateway: "GatewayClient") -> "list[JsonObject]":
        query = {"limit": "200"} | ({"status": status} if status else {})
        # The gateway begins with the oldest.
        newest: deque[JsonObject] = deque(maxlen=limit)
        async for page in gateway.pages(await _tasks_of(gateway, session), query):
            newest.extend(page)
        return list(reversed(newest))

    listing = Listing(
        read,
        lambda one: {
            **one,
            "changed": when(one.get("updated_at_ms")),
            "result": result_of(one),
        },
        {
            "ID": "id",
            "STATUS": "status",
            "CHANGED": "changed",
            "RESULT": "result",
            "TITLE": "title",
        },
        "There are no such tasks in this session.",
        ("task.created", "task.changed"),
    )
    show_list(context, listing, watch=watch, as_json=as_json)


@app.command()
def show(
    context: typer.Context, session: SessionName, task: TaskId, as_json: AsJson = False
) -> None:
    """Show one task."""

    async def read(gateway: "GatewayClient") -> "JsonObject":
        return await gateway.get(await _path_of(gateway, session, task))

    found = ask_gateway(context, read, as_json=as_json)
    for name in ("id", "title", "status"):
        say(f"{name.ljust(10)}  {cell(found.get(name))}")
    say(f"result      {result_of(found)}")
    say(f"made        {when(found.get('created_at_ms'))}")
    say(f"changed     {when(found.get('updated_at_ms'))}")
    for name, words in (("blocked_by", "waits for"), ("blocks", "blocks")):
        named = found.get(name)
        for one in named if isinstance(named, list) else ():
            say(f"{words.ljust(10)}  {cell(one)}")
    say(f"output      {cell(found.get('output'))}")
    for name, value in object_of(found, "metadata").items():
        say(f"{cell(name)}: {cell(value)}")
    if found.get("description"):
        say(f"\n{plain(str(found['description']))}")


@app.command()
def output(
    context: typer.Context,
    session: SessionName,
    task: TaskId,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with what comes, until the task is over.")
    ] = False,
    tail: Annotated[
        int | None,
        typer.Option(
            parser=whole_number(1, MOST_TAIL_BYTES),
            metavar="BYTES",
            help="How much of its end. Default: 8,192 bytes.",
        ),
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="All that is kept of it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a task printed: its end, or all of it."""
    if full and tail is not None:
        raise typer.BadParameter("--full is all of it, --tail a part: use one of them")
    if follow and as_json:
        raise typer.BadParameter("--follow is for people, --json for programs")
    query = {"tail_bytes": str(tail)} if tail is not None else {}
    if full:
        query["full"] = "true"

    async def read(gateway: "GatewayClient") -> "JsonObject":
        path = f"{await _path_of(gateway, session, task)}/output"
        view = await gateway.get(path, query)
        if follow:
            await _follow(gateway, path, view)
        return view

    # That is how one stops following.
    with suppress(KeyboardInterrupt):
        view = ask_gateway(context, read, as_json=as_json)
        if not follow:
            _write(_text_of(view))
            if not _text_of(view):
                note("It has printed nothing.")


@app.command()
def stop(
    context: typer.Context,
    session: SessionName,
    task: TaskId,
    reason: Annotated[str, typer.Option(help="Why; the task keeps it.")] = "",
    as_json: AsJson = False,
) -> None:
    """Stop a task. A command ends with all its processes. Stopping twice changes nothing."""

    async def ask(gateway: "GatewayClient") -> "JsonObject":
        path = f"{await _path_of(gateway, session, task)}/stop"
        return await gateway.post(path, {"reason": reason} if reason else {})

    found = ask_gateway(context, ask, as_json=as_json)
    told = "" if found.get("status") in OVER else ", and was told to stop"
    say(f"{cell(found.get('id'))} is {cell(found.get('status'))}{told}.")


async def _tasks_of(gateway: "GatewayClient", session: str) -> str:
    return f"/v1/sessions/{await session_id_of(gateway, session)}/tasks"


async def _path_of(gateway: "GatewayClient", session: str, task: str) -> str:
    listed = await _tasks_of(gateway, session)
    return f"{listed}/{await id_of(gateway, task, listed, kind='task')}"


async def _follow(gateway: "GatewayClient", path: str, view: "JsonObject") -> None:
    """Print an output and what is added to it, until its task is over."""
    _write(_text_of(view))
    seen = _total(view)
    waiting = {
        "wait": "true",
        "timeout_ms": str(_WAIT_MS),
        "tail_bytes": str(MOST_TAIL_BYTES),
    }
    while True:
        is_over = object_of(view, "task").get("status") in OVER
        if is_over:
            break
        view = await gateway.get(path, waiting)
        if _total(view) - seen > MOST_TAIL_BYTES:
            view = await gateway.get(path, {"full": "true"})
        added = _total(view) - seen
        if added > 0:
            _write(newest(_text_of(view), added))
            dropped = added - _size(view)
            if dropped > 0:
                note(f"{dropped:,} bytes in between are not kept any more.")
        seen = _total(view)
    task = object_of(view, "task")
    note(f"{cell(task.get('id'))} is {cell(task.get('status'))}: {result_of(task)}.")


def newest(text: str, size: int) -> str:
    """The end of an output that `size` bytes were printed for. A sign that stands for bytes that
    are no text counts as one byte, so that rather something comes twice than not at all."""
    begin = len(text)
    while begin and size > 0:
        begin -= 1
        size -= 1 if text[begin] in "\ufffd\u2400" else len(text[begin].encode())
    return text[begin:]


def result_of(task: "JsonObject") -> str:
    """How a task ended, or what it waits for."""
    facts = object_of(task, "metadata")
    if isinstance(facts.get("exit_code"), int):
        return f"exit code {facts['exit_code']}"
    return cell(facts.get("terminal_reason") or facts.get("blocked_reason"))


def _text_of(view: "JsonObject") -> str:
    text = view.get("output_text")
    return str((view.get("output_excerpt") if text is None else text) or "")


def _total(view: "JsonObject") -> int:
    total = view.get("output_total_bytes")
    return total if isinstance(total, int) else 0


def _size(view: "JsonObject") -> int:
    size = view.get("output_size_bytes")
    return size if isinstance(size, int) else 0


def _write(text: str) -> None:
    """Text of a command as it stands, but for what steers the terminal."""
    sys.stdout.write(plain(text))
    sys.stdout.flush()
