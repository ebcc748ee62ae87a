"""The shapes of what is read. Times are milliseconds since the epoch; nothing here is secret."""

from typing import Literal

from runtime.domain.capabilities import Spend
from runtime.domain.decisions import Risk
from runtime.domain.messages import Attachment, Button, ChatAddress
from runtime.domain.people import Trust
from runtime.domain.routes import Generation
from runtime.domain.runs import RunKind, RunState, Usage
from runtime.domain.value import Value
from runtime.sessions.sessions import Bound

Names = tuple[str, ...]


class CapabilityScopeView(Value):
    """What a session was narrowed to. None of an axis is no limit of its own, an empty list allows
    nothing. ``depth`` is how many levels of subagents may follow."""

    tools: Names | None
    denied_tools: Names
    paths: Names | None
    network: Names | None
    depth: int | None


class EffectiveCapabilityScopeView(Value):
    """All that bounds a session besides the operator's rules and its modes. An axis is a list for
    each bound, and what each of them names is allowed; without one, None. ``spend`` is what a
    subagent may use up."""

    tools: tuple[Names, ...] | None
    denied_tools: Names
    paths: tuple[Names, ...] | None
    network: tuple[Names, ...] | None
    depth: int | None
    spend: Spend


class SessionView(Value):
    """A conversation. ``state`` is that of its active run, ``queued`` or ``idle``; ``persona`` is
    None where its identity files are the live workspace's, ``capability_scope`` where nobody
    narrowed it, ``model`` where it is the default one, and ``generation`` where nobody said how it
    writes. ``archived``: it was put aside, and nothing happened in it since."""

    id: str
    key: str
    title: str
    archived: bool = False
    status: str
    state: str
    address: ChatAddress
    mode: str
    permission_mode: str | None
    queue_mode: str
    model: str | None
    generation: Generation | None
    agent: str
    persona: Bound | None
    capability_scope: CapabilityScopeView | None
    effective_capability_scope: EffectiveCapabilityScopeView
    grants: tuple[str, ...]
    transcript: int
    active_run_id: str | None
    queued_run_ids: tuple[str, ...] = ()
    created_at_ms: int
    updated_at_ms: int
    last_activity_at_ms: int


class ModelView(Value):
    """A model that may be chosen, as ``provider:name``."""

    name: str
    default: bool


class RunView(Value):
    """One run. ``summary`` is what it is about, in a line of at most 200 bytes. ``stop_reason`` is
    set once somebody asked for its end; ``passed_on_to`` is the run that answers what this one was
    told and never heard before its end. ``undone``: it was taken back, so no prompt holds its words
    any more."""

    id: str
    session_id: str
    kind: RunKind
    state: RunState
    summary: str
    step: int
    attempt: int
    model: str
    usage: Usage
    speaker: str
    trust: Trust
    error: str | None
    stop_reason: str | None
    passed_on_to: str | None = None
    undone: bool = False
    waiting_for: tuple[str, ...] = ()
    created_at_ms: int
    started_at_ms: int | None
    ended_at_ms: int | None


class OpenCallView(Value):
    """What a run waits for a person to decide or to say. ``outcome`` is empty while it is open.
    ``bright`` is the choice whose button may stand out, empty for none."""

    request_id: str
    code: str
    kind: Literal["approval", "question"]
    session_id: str
    run_id: str
    state: str
    tool: str
    arguments: str
    reason: str
    question: str
    options: tuple[str, ...]
    choices: tuple[str, ...]
    risk: Risk | None = None
    bright: str = ""
    outcome: str
    created_at_ms: int
    expires_at_ms: int | None
    answered_at_ms: int | None


class CallView(Value):
    """One tool call of a step; ``result`` is its beginning where it is long.

    ``waits_for`` says whose answer a waiting call needs: a person's, that of the agents which it
    started, or that of the agent above; None where it waits for nobody.
    """

    id: str
    name: str
    arguments: str
    state: str
    status: str | None
    verdict: str | None
    rule: str
    waits_for: Literal["person", "agents", "parent"] | None = None
    result: str
    result_characters: int


class FileView(Value):
    """A file that the agent sent. ``url`` is where this server has it, with the caller's token."""

    name: str
    media_type: str
    size_bytes: int
    url: str


class MessageView(Value):
    """One thing that was said. ``html`` is filled in by whoever shows it.

    ``kind``: what a person wrote is ``user``, what the model said ``assistant``; ``notice`` is the
    gateway's own word, ``system`` one that the model was told too, ``card`` a question to a person,
    ``agents`` how a batch of agents gets on, ``file`` what the agent sent, with its caption as the
    text.
    ``buttons`` are the commands that a notice offers; whoever presses one sends its words.
    ``answers`` is the key of the message that a notice is about. ``undone``: its turn was taken
    back, and the model no longer knows it. ``delivery`` is what became of a
    reply on its way to the chat.
    """

    key: str
    kind: Literal["user", "assistant", "system", "notice", "card", "agents", "file"]
    at_ms: int
    run_id: str | None = None
    step: int | None = None
    seq: int | None = None
    name: str = ""
    trust: Trust | None = None
    text: str = ""
    html: str = ""
    attachments: tuple[Attachment, ...] = ()
    files: tuple[FileView, ...] = ()
    calls: tuple[CallView, ...] = ()
    model: str = ""
    partial: bool = False
    waiting: bool = False
    undone: bool = False
    card: OpenCallView | None = None
    buttons: tuple[Button, ...] = ()
    answers: str | None = None
    delivery: str | None = None


class TranscriptView(Value):
    """A page of a conversation, oldest first. ``position`` is where its events go on."""

    items: tuple[MessageView, ...]
    next_cursor: str | None
    transcript: int
    position: int


class PairingView(Value):
    """A stranger who asked to be let in."""

    code: str
    channel: str
    account: str
    user_id: str
    name: str
    created_at_ms: int
    expires_at_ms: int


class DeliveryProblemView(Value):
    """A message that did not arrive, or of which nobody knows."""

    outbox_id: str
    session_id: str | None
    run_id: str | None
    channel: str
    account: str
    chat_id: str
    state: str
    reason: str
    created_at_ms: int
    settled_at_ms: int | None


class LeaseView(Value):
    """Who holds what, until when."""

    name: str
    holder: str
    fence: int
    expires_at_ms: int


class LoadView(Value):
    """What is open now, for metrics: it costs no more where there is a long past.

    ``runs`` are those that have not ended, ``outbox`` what is not sent, by state; ``lane_deepest``
    counts the runs that wait in the lane where most do.
    """

    leases: tuple[LeaseView, ...]
    runs: dict[str, int]
    outbox: dict[str, int]
    outbox_oldest_ms: int
    lanes_ready: int
    lane_deepest: int
    open_calls: int


class StatusView(Value):
    """The engine in numbers. ``outbox`` counts what is not sent, by state."""

    leases: tuple[LeaseView, ...]
    runs: dict[str, int]
    outbox: dict[str, int]
    outbox_oldest_ms: int
    sessions: int
    lanes_active: int
    lanes_ready: int
    inputs: int
    open_calls: int
    last_position: int
