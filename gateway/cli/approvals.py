"""`approvals`: what waits for a decision."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.answers import Refused
from gateway.cli.common import AsJson, ask_gateway, cell, escaped, group, say, table, when

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient, JsonObject

app = group("Decide about tool calls that wait.")

Code = Annotated[str, typer.Argument(help="The code on the card, or the request's id.")]


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """Show what waits, the oldest first."""
    waiting = "/v1/approvals"
    found = ask_gateway(context, lambda gateway: gateway.items(waiting), as_json=as_json)
    shown = [
        {
            **one,
            "arguments": escaped(str(one.get("arguments", ""))),
            "until": when(one.get("expires_at_ms")),
        }
        for one in found
    ]
    columns = {"CODE": "code", "TOOL": "tool", "ARGUMENTS": "arguments", "UNTIL": "until"}
    table(shown, columns, "Nothing waits for a decision.")


@app.command()
def approve(
    context: typer.Context,
    code: Code,
    session: Annotated[
        bool, typer.Option("--session", help="Also the same call later in this session.")
    ] = False,
) -> None:
    """Allow a call."""
    scope = "session" if session else "once"
    done = ask_gateway(
        context,
        lambda gateway: _decide(gateway, code, {"behavior": "allow", "scope": scope}),
    )
    say(f"Allowed{' for this session' if session else ' once'}: {done.call}")
    say(f"Asked for by {done.whom}.")
    if session:
        say("The same call is not asked about again in this session.")
    say(done.next_step)


@app.command()
def deny(
    context: typer.Context,
    code: Code,
    reason: Annotated[str, typer.Option(help="What the agent is told.")] = "",
) -> None:
    """Refuse a call."""
    done = ask_gateway(
        context,
        lambda gateway: _decide(gateway, code, {"behavior": "deny", "reason": reason}),
    )
    say(f"Denied: {done.call}")
    say(f"Asked for by {done.whom}. The agent is told{f': {cell(reason)}' if reason else ' so'}.")
    say(done.next_step)


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


async def _decide(gateway: "GatewayClient", code: str, said: "JsonObject") -> _Decided:
    waiting = await gateway.items("/v1/approvals", most=10_000)
    found = [one for one in waiting if code in (one.get("request_id"), one.get("code"))]
    if not found:
        raise Refused(404, f"no approval with the code {code} waits.")
    if len(found) > 1:
        raise Refused(409, f"{code} names several approvals; use the request's whole id.")
    one = found[0]
    choices = one.get("choices")
    offered = choices if isinstance(choices, list) else []
    if said.get("scope") == "session" and "session" not in offered:
        raise Refused(409, f"{code} can be allowed once only; leave out --session.")
    resolution: JsonObject = {"request_id": one["request_id"], **said}
    path = f"/v1/runs/{one['run_id']}/approvals"
    run = await gateway.post(path, {"resolutions": [resolution]})
    return _Decided(one, run, await gateway.get(f"/v1/sessions/{one['session_id']}"))
