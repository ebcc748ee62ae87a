"""What schemathesis is told of this gateway; it loads this module in its own process.

It invents ids that nobody has, so half of the requests get one that exists. A request that fits its
schema may still break a rule that no schema can say, and `BEYOND_SCHEMAS` names each of them. Each
answer is written down, so that whoever started the exploration sees what was reached.
"""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

import schemathesis
from schemathesis import Case, CheckContext, GenerationMode, HookContext, Response
from schemathesis.core.failures import Failure
from schemathesis.generation.meta import CoveragePhaseData

from runtime.domain.value import HAS_WORDS
from tests.openapi.environment import KNOWN, QUICK, ROLE, SEEN

LONGEST_MS: Final = 20
"""How long an answer is waited for that a request asks to be held back."""

SESSION: Final = "/v1/sessions/{session_id}"
TASKS: Final = f"{SESSION}/tasks"
SIDECHAINS: Final = "/v1/agents/{agent_id}/sidechains"
MODELS: Final = "must be one of those that GET /v1/models lists"
UPLOAD: Final = "must be the id of an upload to /v1/assets"
TIMES: Final = (
    "must be a time zone such as",
    "must come at some time",
    "must be in the future",
    "must have a valid",
    "must have a day-of-month that its months have",
)
SAYS_NOTHING: Final = "must say something"
SENT: Final = ("give text, asset_ids, input_items or data", "give either text and asset_ids")
"""The document says this and the one before, and `before_load_schema` leaves them out."""
BLOCKERS: Final = ("no task of this session has the id", "must not wait for itself")
TOGETHER: Final = "characters together with the task"
LEFT_OUT: Final = ("leave it out", "leave one of them out")
GENERATION: Final = ("which the operator set", "cannot be set for", "is not taken by")
BEYOND_SIDECHAINS: Final = {
    "session_id": ("must be the id of the agent of the path",),
    "subtask": (
        *("give one of", "say what the agent is to do", "belong to", UPLOAD),
        *("is taken in this tree", "agents.unattended_runs is"),
    ),
    "route_policy": (*LEFT_OUT, *GENERATION, MODELS),
    "fork_context": ("exclude each other", "must be a folder", "must be a tool call", TOGETHER),
    "tool_surface": ("give one of them",),
    "capability_scope": ("must be",),
    "thread_id": ("must be a thread in which this agent was asked",),
}
BEYOND_SCHEMAS: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    # OpenAPI has no words for parameters that exclude each other.
    "GET /v1/agents/summaries": {"query": ("give one of session_id, root and root_agent_id",)},
    # Zones that there are, times that come, people and chats that are known.
    "POST /v1/schedules": {
        "timezone": TIMES,
        "cadence": TIMES,
        "owner_person_id": ("must be",),
        "request": ("characters for a heartbeat",),
        "observation_materialization": ("must be the target_session_id", "may read"),
    },
    # What may change depends on what the schedule is.
    "PATCH /v1/schedules/{schedule_id}": {
        "timezone": TIMES,
        "cadence": TIMES,
        **dict.fromkeys(
            ("request", "gate", "deliver_text"),
            ("cannot be given to a schedule that was made without",),
        ),
        "max_executions": ("executions so far",),
        "overlap_policy": ("words that are only said have no run to wait for",),
    },
    # What it names must exist, and arguments are the tool's own.
    f"POST {SESSION}/policy/explain": {"tool": ("there is no tool named",), "arguments": ("",)},
    f"POST {TASKS}": {"blocked_by": BLOCKERS, "metadata": ("bytes as JSON",)},
    f"PATCH {TASKS}/{{task_id}}": {"blocked_by": BLOCKERS, "metadata": ("bytes as JSON",)},
    f"POST {TASKS}/{{task_id}}/input": {"task_id": ("must be a command in the background",)},
    f"POST {SESSION}/runs": {
        "input_items": (UPLOAD,),
        "content": (SAYS_NOTHING,),
        "timezone": TIMES,
    },
    f"PUT {SESSION}/persona": {"persona": ("in the workspace",)},
    f"PUT {SESSION}/capability-scope": {
        **dict.fromkeys(("tools", "denied_tools"), ("names no tool that there is",)),
        "paths": ("without ..",),
    },
    f"PUT {SESSION}/route-policy": {
        "model": (MODELS,),
        "provider": LEFT_OUT,
        "generation": GENERATION,
    },
    "POST /v1/mailboxes": {
        "to": ("must be another agent",),
        "payload": (UPLOAD, *SENT, "bytes as JSON", "characters of text together"),
    },
    f"POST {SIDECHAINS}": BEYOND_SIDECHAINS,
    f"POST {SIDECHAINS}/explain": BEYOND_SIDECHAINS,
    "POST /v1/runs/{run_id}/approvals": {"resolutions": ("must be named once only",)},
    "POST /v1/runs/{run_id}/questions": {"answers": ("must be named once only",)},
}
"""Rules that no schema can say, by the field that may break them in a request that fits its schema.
They need what the gateway knows, or compare fields."""
CURSOR: Final = "must be a next_cursor of an earlier answer"
"""Every list has this rule too."""
BLANK: Final = (r"\S", HAS_WORDS)
"""Patterns of texts with words. schemathesis repeats such a pattern up to the greatest length: it
makes texts without white space, and takes a second to find that 100,000 times are too many."""
ALIKE: Final = 3
"""How many cases of one kind a quick exploration tries for a route before it passes over some."""
EACH: Final = 20
"""The distance between those that it tries behind them."""
PAGES: Final = frozenset({"GET /v1/docs"})
"""Where somebody without a login is sent to the login, as browsers need it."""
TAKES_AWAY: Final = {
    f"DELETE {SESSION}": -1,
    f"POST {SESSION}/end": -2,
    "POST /v1/schedules/{schedule_id}/cancel": -1,
    "POST /v1/schedules/{schedule_id}/pause": -2,
    "POST /v1/pairings/{code}/approve": -1,
    "POST /v1/pairings/{code}/deny": -2,
}
"""They end what others need, so each has one for itself: its place among the known."""
KEPT: Final = slice(None, -2)
"""The others."""

_known = json.loads(Path(os.environ[KNOWN]).read_text(encoding="utf-8"))
_turns: Final[dict[str, "count[int]"]] = defaultdict(count)
"""Of each route, so that its first request asks for what exists."""
_names: Final = count()
_alike: Counter[tuple[object, ...]] = Counter()
_seen = Path(os.environ[SEEN])


def _label(case: Case) -> str:
    return case.operation.label


def _is_positive(case: Case) -> bool:
    return case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE


@schemathesis.hook
def before_load_schema(context: HookContext, raw_schema: dict[str, Any]) -> None:
    """Write the same in a way that schemathesis makes requests from."""
    _respell(raw_schema)
    # It makes no case of an object inside another one whose fields depend on each other.
    schemas = raw_schema["components"]["schemas"]
    schemas["MailPayload"].pop("anyOf")
    # And it gives up on the route where it makes a wrong element by way of a reference.
    items = schemas["MailPayload"]["properties"]["input_items"]["anyOf"][0]["items"]
    items["oneOf"] = [schemas[one["$ref"].rpartition("/")[2]] for one in items["oneOf"]]
    if QUICK in os.environ and os.environ[ROLE] == "read":
        _without_input(raw_schema)


@schemathesis.hook
def filter_case(context: HookContext, case: Case) -> bool:
    """In a quick exploration, some of the cases that break the same rule in many fields."""
    meta = case.meta
    if (
        QUICK not in os.environ
        or meta is None
        or not isinstance(meta.phase.data, CoveragePhaseData)
    ):
        return True
    data = meta.phase.data
    kind = (
        _label(case),
        meta.generation.mode,
        data.scenario,
        data.parameter_location,
        data.parameter,
    )
    _alike[kind] += 1
    return _alike[kind] <= ALIKE or _alike[kind] % EACH == 0


def _without_input(raw_schema: dict[str, Any]) -> None:
    """Leave of the routes that write what is in their paths: whoever may not use them is refused
    before the rest is read."""
    for methods in raw_schema["paths"].values():
        for operation in methods.values():
            if not operation["x-read-only-token"]:
                operation.pop("requestBody", None)
                operation["parameters"] = [
                    one for one in operation["parameters"] if one["in"] == "path"
                ]


def _respell(value: Any) -> None:
    if isinstance(value, dict):
        if value.get("pattern") in BLANK:
            value["pattern"] += r"[\s\S]*$"
        # schemathesis gives up on a route in which an array must hold a certain element.
        value.pop("contains", None)
        for inner in value.values():
            _respell(inner)
    elif isinstance(value, list):
        for inner in value:
            _respell(inner)


@schemathesis.hook
def before_call(context: HookContext, case: Case, kwargs: dict[str, object]) -> None:
    """Ask for what exists, half of the time."""
    # Also where something else of the request breaks a rule.
    if "wait" in case.query and str(case.query.get("timeout_ms", LONGEST_MS)).isdecimal():
        case.query["timeout_ms"] = min(int(case.query.get("timeout_ms", LONGEST_MS)), LONGEST_MS)
    if not _is_positive(case):
        return
    turn, own = next(_turns[_label(case)]), TAKES_AWAY.get(_label(case))
    if case.meta.phase.name == "stateful" or (turn % 2 and own is None):
        return
    for name in case.path_parameters:
        if name in _known["ids"]:
            ids = _known["ids"][name]
            case.path_parameters[name] = (
                ids[own] if own is not None else ids[KEPT][turn // 2 % len(ids[KEPT])]
            )
    if "task_id" in case.path_parameters:
        case.path_parameters["task_id"] = _known["tasks"][case.path_parameters["session_id"]]
    if "outbox_id" in case.path_parameters:
        case.path_parameters.update(_known["files"])
    if isinstance(case.body, dict):
        case.body = _known_in(case.body)
        _OWN.get(_label(case), _as_it_is)(case)


def _known_in(value: Any) -> Any:
    """The same body, naming what there is."""
    if isinstance(value, dict):
        return {
            name: _known["fields"].get(name, inner) if isinstance(inner, str) else _known_in(inner)
            for name, inner in value.items()
        }
    return [_known_in(inner) for inner in value] if isinstance(value, list) else value


def _as_it_is(case: Case) -> None:
    """A body that names nothing else."""


def _answer(kind: str, field: str) -> Callable[[Case], None]:
    """Answer the request that waits."""

    def change(case: Case) -> None:
        ((run, request),) = _known[kind].items()
        case.path_parameters["run_id"] = run
        case.body[field] = [{**case.body[field][0], "request_id": request}]

    return change


def _decide(case: Case) -> None:
    ((case.path_parameters["schedule_id"], case.body["digest"]),) = _known["gates"].items()
    # One that is invented is no card's.
    case.body.pop("request_id", None)


def _type_in(case: Case) -> None:
    ((session, task),) = _known["command"].items()
    case.path_parameters |= {"session_id": session, "task_id": task}
    # The end of its input would be that of the command.
    case.body["close"] = False


def _make_a_schedule(case: Case) -> None:
    # A place, a person, an agent or a run that is invented is not there.
    for name in _OF_OTHERS:
        case.body.pop(name, None)
    case.body |= {"cadence": {"type": "interval", "every_seconds": 86_400}, "timezone": "UTC"}


_OF_OTHERS: Final = (
    *("place", "owner_person_id", "target_agent_id"),
    *("owner_session_id", "owner_agent_id", "created_by_run_id"),
)


def _name_a_file(case: Case) -> None:
    case.body["arguments"] = {"path": "AGENTS.md"}


def _write_mail(case: Case) -> None:
    ((parent, agent),) = _known["agents"].items()
    case.body |= {"from": agent, "to": parent}


def _start_agent(case: Case) -> None:
    ((parent, _),) = _known["agents"].items()
    case.path_parameters["agent_id"] = parent
    left_out = {"session_id", "thread_id", "credential_scope"}
    body = {name: value for name, value in case.body.items() if name not in left_out}
    kept = {"name": f"agent-{next(_names)}", "description": body["subtask"]["description"]}
    # A name that no agent has yet, and one way to say a task of the three; the rest is invented.
    case.body = body | {"subtask": kept | {"prompt": "Look."}}


_OWN: Final[dict[str, Callable[[Case], None]]] = {
    "POST /v1/runs/{run_id}/approvals": _answer("approvals", "resolutions"),
    "POST /v1/runs/{run_id}/questions": _answer("questions", "answers"),
    "POST /v1/schedules/{schedule_id}/gate": _decide,
    f"POST {TASKS}/{{task_id}}/input": _type_in,
    f"POST {SESSION}/policy/explain": _name_a_file,
    "POST /v1/schedules": _make_a_schedule,
    "POST /v1/mailboxes": _write_mail,
    f"POST {SIDECHAINS}": _start_agent,
    f"POST {SIDECHAINS}/explain": _start_agent,
}
"""What a body names that is of one route only."""


@schemathesis.hook
def after_call(context: HookContext, case: Case, response: Response) -> None:
    """Write down what was answered."""
    seen = [_label(case), response.status_code, round(response.elapsed * 1000, 1)]
    with _seen.open("a", encoding="utf-8") as file:
        file.write(json.dumps(seen) + "\n")


@schemathesis.hook
def filter_failure(
    context: HookContext,
    failure: Failure,
    case: Case,
    response: Response,
) -> bool:
    """Whether a failure is one."""
    if failure.code == "ST203" and _label(case) in PAGES:
        return response.status_code != 303
    if failure.code != "ST202" or response.status_code not in (400, 422):
        return True
    field, _, rule = response.json()["detail"].partition(": ")
    allowed = BEYOND_SCHEMAS.get(_label(case), {}).get(field.partition(".")[0], ())
    return not (field == "cursor" and rule == CURSOR) and not any(part in rule for part in allowed)


@schemathesis.check
def role_is_kept(ctx: CheckContext, response: Response, case: Case) -> None:
    """A token that may only read changes nothing, whatever it says, and another one may."""
    writes = not case.operation.definition.raw["x-read-only-token"]
    declared = case.method.upper() == case.operation.method.upper()
    reads_only = os.environ[ROLE] == "read"
    if reads_only and writes and declared:
        assert response.status_code >= 400, "a token that may only read was obeyed"
    refused = response.status_code == 403 and response.json()["code"] == "read_only"
    assert not refused or (reads_only and writes) or not declared, "this token may do that"


@schemathesis.check
def problem_is_whole(ctx: CheckContext, response: Response, case: Case) -> None:
    """Each refusal says what is wrong: the status, a code and words, and with 422 the fields."""
    if response.status_code < 400 or case.method.upper() != case.operation.method.upper():
        return
    said = response.json()
    assert said["status"] == response.status_code, "another status in the document"
    assert said["code"], "no code"
    assert said["detail"], "no words for a person"
    if response.status_code == 422:
        assert said["errors"], "no field is named"
        assert all(one["field"] and one["rule"] for one in said["errors"]), "no field or no rule"
