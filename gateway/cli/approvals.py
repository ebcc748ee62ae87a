"""`approvals`: what waits for a decision."""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.answers import Refused
from gateway.cli.common import AsJson, ask_gateway, cell, escaped, group, say, when
from gateway.cli.listing import OF_RUNS, Listing, Watch, show
from runtime.domain.ids import code_of
from runtime.domain.json_fields import object_of, text_of

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient, JsonObject

app = group("Decide about tool calls and gates of schedules that wait.")

Code = Annotated[str, typer.Argument(help="The code on the card, or the request's id.")]
_MOST = 10_000


@app.command("list")
def list_(context: typer.Context, watch: Watch = False, as_json: AsJson = False) -> None:
    """Show what waits: calls, the oldest first, and then gates, the newest schedule first."""
    listing = Listing(
        _waiting,
        lambda one: {
            **one,
            "arguments": escaped(str(one.get("arguments", ""))),
            "until": when(one.get("expires_at_ms")),
        },
        {"CODE": "code", "TOOL": "tool", "ARGUMENTS": "arguments", "UNTIL": "until"},
        "Nothing waits for a decision.",
        ("approval.requested", "approval.decided", "schedule.changed", *OF_RUNS),
        name="code",
    )
    show(context, listing, watch=watch, as_json=as_json)


@app.command()
def approve(
    context: typer.Context,
    code: Code,
    session: Annotated[
        bool, typer.Option("--session", help="Also the same call later in this session.")
    ] = False,
) -> None:
    """Allow a call, or the gate of a schedule."""
    scope = "session" if session else "once"
    done = ask_gateway(
        context,
        lambda gateway: _decide(gateway, code, {"behavior": "allow", "scope": scope}),
    )
    if isinstance(done, _Gate):
        say(f"Allowed: {done.command}")
        say(done.reason)
        say(f"The schedule {cell(done.schedule_id)} asks again if any of this changes.")
        return
    say(f"Allowed{' for this session' if session else ' once'}: {done.call}")
    say(f"Asked for by {done.whom}.")
    if session:
        say("The same call is not asked about again in this session.")
    say(done.next_step)


@app.command()
def deny(
    context: typer.Context,
    code: Code,
    reason: Annotated[str, typer.Option(help="What the agent is told of a call.")] = "",
) -> None:
    """Refuse a call, or the gate of a schedule."""
    done = ask_gateway(
        context,
        lambda gateway: _decide(gateway, code, {"behavior": "deny", "reason": reason}),
    )
    if isinstance(done, _Gate):
        say(f"Denied: {done.command}")
        say(f"The schedule {cell(done.schedule_id)} skips its times until a gate is allowed.")
        return
    say(f"Denied: {done.call}")
    say(f"Asked for by {done.whom}. The agent is told{f': {cell(reason)}' if reason else ' so'}.")
    say(done.next_step)


@dataclass(frozen=True, slots=True)
class _Gate:
    """The gate of a schedule that was decided about: its command, and what its card says of it."""

    schedule_id: str
    command: str
    reason: str


@dataclass(frozen=True, slots=True)
class _Decided:
    """What was decided about, as read before, and the run as it is since."""

    card: "JsonObject"
    run: "JsonObject"
    session: "JsonObject"

    @property
    def call(self) -> str:
        """The call on one line, with everything in it that a person must see."""
        return f"{cell(self.card.get('tool'))} {escaped(str(self.card.get('arguments', '')))}"

    @property
    def whom(self) -> str:
        speaker, key = self.run.get("speaker"), self.session.get("key")
        return f"{cell(speaker)} ({cell(self.run.get('trust'))}) in {cell(key)}"

    @property
    def next_step(self) -> str:
        run = cell(self.run.get("id"))
        if str(self.run.get("state")).startswith("waiting"):
            return f"Its run {run} still waits: `gatehouse approvals list` shows for what."
        return f"Its run goes on and answers in its chat; `gatehouse runs show {run}` shows it."


async def _waiting(gateway: "GatewayClient") -> "list[JsonObject]":
    """Calls that wait, and gates in the same shape with the `schedule_id` and the `digest` that an
    answer needs. A gate about which nobody was asked yet is not among them."""
    calls = await gateway.items("/v1/approvals", most=_MOST)
    asked = {"gate_status": "waiting_for_approval"}
    found = await gateway.items("/v1/schedules", asked, most=_MOST)
    gates = [(one, object_of(one, "gate")) for one in found]
    return calls + [
        {
            "request_id": text_of(gate, "request_id"),
            "code": code_of(text_of(gate, "request_id")),
            "tool": "schedule gate",
            # In the form that a call's have, in which nothing is hidden.
            "arguments": json.dumps({"command": gate.get("command")}, ensure_ascii=False),
            "reason": gate.get("shown"),
            "schedule_id": schedule.get("schedule_id"),
            "digest": gate.get("digest"),
        }
        for schedule, gate in gates
        if gate.get("request_id")
    ]


async def _decide(gateway: "GatewayClient", code: str, said: "JsonObject") -> _Decided | _Gate:
    waiting = await _waiting(gateway)
    found = [one for one in waiting if code in (one.get("request_id"), one.get("code"))]
    if not found:
        raise Refused(404, f"no approval with the code {code} waits.")
    if len(found) > 1:
        raise Refused(409, f"{code} names several approvals; use the request's whole id.")
    one = found[0]
    if "schedule_id" in one:
        return await _decide_gate(gateway, one, said)
    choices = one.get("choices")
    offered = choices if isinstance(choices, list) else []
    if said.get("scope") == "session" and "session" not in offered:
        raise Refused(409, f"{code} can be allowed once only; leave out --session.")
    resolution: JsonObject = {"request_id": one["request_id"], **said}
    path = f"/v1/runs/{one['run_id']}/approvals"
    run = await gateway.post(path, {"resolutions": [resolution]})
    return _Decided(one, run, await gateway.get(f"/v1/sessions/{one['session_id']}"))


async def _decide_gate(gateway: "GatewayClient", gate: "JsonObject", said: "JsonObject") -> _Gate:
    if said.get("scope") == "session" or said.get("reason"):
        raise Refused(409, f"{gate['code']} is a gate; leave out --session and --reason.")
    schedule_id = str(gate["schedule_id"])
    decision: JsonObject = {
        "behavior": said["behavior"],
        "digest": gate["digest"],
        "request_id": gate["request_id"],
    }
    await gateway.post(f"/v1/schedules/{schedule_id}/gate", decision)
    return _Gate(schedule_id, escaped(str(gate["arguments"])), cell(gate.get("reason")))
