"""What people read of a task in their chat. Pure."""

from typing import Final

from runtime.domain.ids import code_of
from runtime.domain.printable import code_block, code_name, one_line, printable
from runtime.features.tasks.rows import SHELL, Task

TAIL_LINES: Final = 10
TAIL_CHARACTERS: Final = 1_000
SHOWN_LINES: Final = 40
SHOWN_CHARACTERS: Final = 3_000
NAME: Final = 120
BLOCKED_REASON: Final = "blocked_reason"
"""The fact that says which task a blocked one waits for in vain."""
_REASONS: Final = {
    "daemon_restarted": "the gateway was restarted while it ran",
    "replica_lost": "the replica that ran it was lost",
    "not_started": "it could not be started",
    "holder_failed": "the gateway failed to look after it",
    "time_limit": "it took longer than it may",
    "memory_limit": "it met its limit of memory",
    "processes_limit": "it met its limit of processes",
    "file_size_limit": "it met its limit of file size",
    "disk_limit": "it met its limit of disk space",
    "free_space_limit": "too little disk space was left",
}


def standing(task: Task) -> str:
    """How a task stands, in a few words."""
    facts = task.facts
    if task.status == "failed":
        reason = _REASONS.get(str(facts.get("terminal_reason")))
        code = facts.get("exit_code")
        return f"failed: {reason}" if reason else _failed(code)
    if task.status == "blocked":
        cause = facts.get(BLOCKED_REASON)
        return f"blocked, because {one_line(cause, 300)}" if isinstance(cause, str) else "blocked"
    if task.status == "in_progress" and facts.get("stop_requested"):
        return "being stopped"
    if task.status == "in_progress" and facts.get("waiting_for_input"):
        return "waiting for input"
    return {
        "pending": "to be done",
        "in_progress": "running" if task.kind == SHELL else "in progress",
        "completed": "done",
        "cancelled": "stopped" if task.kind == SHELL else "cancelled",
    }[task.status]


def _failed(code: object) -> str:
    return f"failed with exit code {code}" if isinstance(code, int) else "failed"


def text_of(task: Task, tail: str) -> str:
    """What who asked for it is told of a task; `tail` is the end of what it printed."""
    name, code = code_name(task.title, NAME), code_of(task.id)
    lines = [f"Task `{code}`, {name}: {standing(task)}."]
    if task.facts.get("waiting_for_input") and task.status == "in_progress":
        prompt = str(task.facts.get("prompt", ""))
        lines.append(f"It asks {code_name(prompt, NAME)}. I can type an answer, or stop it.")
    elif last := last_lines(tail):
        lines.append(block(last))
    return "\n\n".join(lines)


def output_text(task: Task, printed: str | None) -> str:
    """What a person reads who asks what a task printed: how it stands, then the end of it all."""
    head = f"Task `{code_of(task.id)}`, {code_name(task.title, NAME)}: {standing(task)}."
    if task.kind != SHELL:
        return f"{head}\n\nIt is no command, so it prints nothing."
    last = last_lines(printed or "", lines=SHOWN_LINES, characters=SHOWN_CHARACTERS)
    return f"{head}\n\n{block(last) if last else 'It has printed nothing.'}"


def last_lines(text: str, *, lines: int = TAIL_LINES, characters: int = TAIL_CHARACTERS) -> str:
    """The last lines of an output, few enough for a chat."""
    last = text.rstrip().splitlines()[-lines:]
    return "\n".join(last)[-characters:]


def block(text: str) -> str:
    """A text as it stands, which closes no fence and hides nothing."""
    shown = "\n".join(printable(line.expandtabs(4), newlines=False) for line in text.splitlines())
    return code_block(shown)
