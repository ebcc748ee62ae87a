"""A task that lasts is started by the supervisor, so that no fault ends it in silence.

What is started in another way is listed here with the reason why it may end: it has an end of its
own, or its owner is supervised and fails together with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.source import PRODUCT, Source, python_files, report

CREATES = re.compile("create_task|ensure_future")
LISTENS = "its owner is the adapter's listening, which is supervised and ends with it"
ENDS = "it ends with what it does"
REQUEST = "it ends with one request, and its owner is the request's"
COMMAND = "it ends with one command of the command line"
LEASE = "its owner is the holder of a lease, which is supervised and ends with it"
HELD = "it ends with one command, and its owner is supervised"
ALLOWED = {
    ("adapters/slack/connection.py", "slack-connection-"): LISTENS,
    ("adapters/slack/socket_mode.py", "slack-socket-watch"): LISTENS,
    ("adapters/slack/socket_mode.py", "slack-"): ENDS,
    ("adapters/slack/socket_mode.py", "slack-socket"): LISTENS,
    ("adapters/slack/socket_mode.py", "slack-socket-retire"): ENDS,
    ("adapters/telegram/adapter.py", "telegram menu"): ENDS,
    ("adapters/telegram/adapter.py", "telegram webhook"): LISTENS,
    ("adapters/telegram/adapter.py", "telegram polling"): LISTENS,
    ("gateway/cli/listing.py", "listen"): COMMAND,
    ("gateway/cli/listing.py", "news"): COMMAND,
    ("gateway/cli/chat.py", "conversation"): COMMAND,
    ("gateway/cli/chat.py", "stop"): COMMAND,
    ("adapters/sandbox/command_process.py", "command-conclude"): ENDS,
    ("gateway/http/events.py", "event stream signals"): REQUEST,
    ("gateway/http/events.py", "event stream"): REQUEST,
    ("gateway/http/tasks.py", "task wait"): REQUEST,
    ("gateway/service.py", "announcements"): ENDS,
    ("gateway/service.py", "canary"): ENDS,
    ("gateway/cli/local_gateway.py", "model library"): ENDS,
    ("gateway/service.py", "model library"): ENDS,
    ("gateway/service.py", "model discovery"): ENDS,
    ("runtime/features/subagents/family.py", "wait"): "it ends with the call that waits",
    ("runtime/features/schedules/schedule_keeper.py", "schedule check "): (
        "it ends with one gate, which has a time limit, and its owner is supervised"
    ),
    ("runtime/features/tasks/board.py", "task news"): "it ends with the call that waits",
    ("runtime/features/tasks/shell_tasks.py", "shell task "): HELD,
    ("runtime/features/tasks/shell_tasks.py", "shell task output"): HELD,
    ("runtime/features/tasks/shell_tasks.py", "shell task end"): HELD,
    ("runtime/features/tasks/shell_tasks.py", "shell task stop"): HELD,
    ("runtime/features/tasks/shell_tasks.py", "shell task input"): HELD,
    ("runtime/agent/tool_step.py", "call "): ENDS,
    ("runtime/features/subagents/files/worktrees.py", "git"): ENDS,
    ("runtime/bus/nats.py", "bus flush"): ENDS,
    ("runtime/bus/nats.py", "bus connection"): ENDS,
    ("runtime/bus/replicated.py", "bus"): "it is supervised, and the bus that is closed owns it",
    ("runtime/store/postgres.py", "store-write:"): ENDS,
    ("runtime/process/supervisor.py", ""): "this is the supervisor",
    ("runtime/tools/builtin/shell.py", "exec-wait-"): ENDS,
    ("runtime/delivery/deliverer.py", "deliver "): ENDS,
    ("runtime/engine/engine.py", "account "): "it is supervised, and closes the adapter behind it",
    ("runtime/engine/engine.py", "stop listening "): ENDS,
    ("runtime/process/lease_keeper.py", "watch "): LEASE,
    ("runtime/process/lease_keeper.py", "hold "): LEASE,
    ("runtime/process/lease_keeper.py", "acquire "): ENDS,
    ("runtime/delivery/chat_streams.py", "stream "): ENDS,
    ("runtime/agent/turn_worker.py", "turn "): ENDS,
    ("runtime/delivery/typing_signals.py", "typing "): ENDS,
}


def started(source: Source) -> Iterator[tuple[str, str]]:
    """(path, the fixed beginning of its name) of each task that a file starts."""
    for node in source.nodes(CREATES):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in {"create_task", "ensure_future"}
        ):
            names = [keyword.value for keyword in node.keywords if keyword.arg == "name"]
            yield source.path, _beginning(names[0]) if names else ""


def _beginning(name: ast.expr) -> str:
    if isinstance(name, ast.JoinedStr):
        name = name.values[0]
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else ""


@pytest.mark.requirement("OPS-8")
def test_a_task_that_lasts_is_started_by_the_supervisor() -> None:
    found = [one for source in python_files(*PRODUCT) for one in started(source)]
    unknown = [f"{path}: {name!r}" for path, name in found if (path, name) not in ALLOWED]
    assert not unknown, "start it with `Supervisor.start`, or say here how it ends:" + report(
        unknown
    )
    assert not set(ALLOWED) - set(found), "these are gone"


def test_a_new_task_is_noticed() -> None:
    text = "group.create_task(self._poll(), name='poll')\nasyncio.ensure_future(f(), name=f'x {y}')"
    assert list(started(Source("runtime/workers/new.py", text))) == [
        ("runtime/workers/new.py", "poll"),
        ("runtime/workers/new.py", "x "),
    ]
