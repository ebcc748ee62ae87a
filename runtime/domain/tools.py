"""Tool calls as data: what a model may ask for, what it asked, and what came of it."""

from enum import StrEnum
from typing import Final, Literal

from pydantic import Field

from runtime.domain.value import JsonObject, Value

LOAD_TOOLS: Final = "load_tools"
"""Tells how tools are called that are offered by name. It shows no more than a prompt would."""
CALL_TOOL: Final = "call_tool"
"""Calls one of them: `tool` is its name, `arguments` are its own."""
TO_THE_PERSON: Final = "in these words: "
"""What stands behind it in the error of a call is written for the person, not for the model."""


class Effect(StrEnum):
    """What a rerun would do: ``read`` nothing, ``idempotent`` the same, ``once`` it again."""

    READ = "read"
    IDEMPOTENT = "idempotent"
    ONCE = "once"


class ToolSpec(Value):
    """What the model is told of a tool: its name, one terse line, the JSON schema of arguments."""

    name: str
    description: str
    parameters: JsonObject


class ToolCall(Value):
    """One call as the model made it.

    ``arguments`` is the raw JSON text, because a model may write what is no JSON (TOOL-1).
    """

    id: str
    name: str
    arguments: str


ResultStatus = Literal["ok", "error", "denied", "unknown", "cancelled"]


class ToolResult(Value):
    """What the model is told of a call. ``untrusted`` marks content from outside (TOOL-11);
    ``outside`` says that the model, or what it commands, did not write it (POL-10)."""

    call_id: str
    name: str
    status: ResultStatus = "ok"
    content: str
    untrusted: bool = False
    outside: bool = False
    whole_output_path: str | None = None


class Touches(Value):
    """What one call would touch, derived from its arguments before it runs; policy reads this.

    Paths are absolute and resolved. ``command`` is the shell text of an ``exec``, which begins in
    ``folder``. ``address`` is the whole address of a page that is fetched. ``replies`` is a
    send to nowhere but the chat that the run answers anyway; ``sends`` are other places.
    ``own_agents`` reaches subagents of the session and nothing else; what they do is decided anew.
    ``also`` are further subjects of a call about several. ``like`` are tools that do part of what
    the call does: what is denied or asked about for one of them is so for the call as well.
    ``delegates`` gives a subagent work, a new one or one that is there; ``spawns`` starts some.
    ``private`` reads or changes what belongs to one person and is in no file: it is as private as
    the notes are (CTX-6).
    ``typed``: the command is typed into one that is at work, which does with it what it likes.
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    command: str | None = None
    folder: str | None = None
    address: str | None = None
    network: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()
    replies: bool = False
    own_agents: bool = False
    delegates: bool = False
    spawns: bool = False
    private: bool = False
    typed: bool = False
    subject: str = Field(default="", description="what a rule's pattern in brackets is held to")
    also: tuple[str, ...] = ()
    like: tuple[str, ...] = ()

    @property
    def subjects(self) -> tuple[str, ...]:
        """All that the call is about: rules are held to each."""
        return (self.subject, *self.also)
