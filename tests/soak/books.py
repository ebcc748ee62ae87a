"""Closing the books: what the gateway says of itself, held against what people saw."""

from collections import Counter
from typing import Final

from gateway.cli.client import GatewayClient, JsonObject
from tests.soak.deciding import problems
from tests.soak.faults import FAULTS
from tests.soak.ledger import ANSWER, Unknown
from tests.soak.report import Report
from tests.soak.stage import Stage

NEAR_S: Final = 10.0
ASK_S: Final = 0.2
SETTLE_S: Final = 30.0
"""How long what people already see may be without its receipt, lookups and a takeover included."""


async def close(stage: Stage, report: Report) -> None:
    """Explain the unknown deliveries, count effects, and look for what is still in hand."""
    async with stage.gateways.client() as client:
        report.unsent = await _unsent(stage, client)
        await _unknown(stage, report, client)
    report.latest_s = stage.now()
    _effects(stage, report)


async def _unsent(stage: Stage, client: GatewayClient) -> dict[str, int]:
    """What the outbox still holds, by state, once it had time to write what people saw."""
    until = stage.now() + SETTLE_S
    while True:
        status = await client.get("/v1/status")
        unsent = {
            state: int(str(count))
            for state, count in _object(status["outbox"]).items()
            if state in ("pending", "sending") and count
        }
        if not unsent or stage.now() >= until:
            return unsent
        await stage.clock.sleep(ASK_S)


async def _unknown(stage: Stage, report: Report, client: GatewayClient) -> None:
    ledger = stage.ledger
    begun_ms = stage.clock.now_ms() - stage.now() * 1000
    for row in await problems(client):
        created = (int(str(row["created_at_ms"])) - begun_ms) / 1000
        settled_ms = row["settled_at_ms"]
        settled = stage.now() if settled_ms is None else (int(str(settled_ms)) - begun_ms) / 1000
        token = await _token(client, row)
        if row["state"] != "unknown":
            report.dead.append(f"{token or row['outbox_id']}: {row['reason']}")
            continue
        causes = [type(one).__name__ for one in FAULTS if row["channel"] in one.costs]
        why = ledger.explain(created - NEAR_S, settled, causes)
        ledger.unknown.append(Unknown(str(row["outbox_id"]), token, str(row["reason"]), why))
        if token in ledger.wishes:
            ledger.excuse(ledger.wishes[token], "unknown")
        elif not token and not row["run_id"]:
            ledger.stop_unseen(str(row["channel"]), created)


async def _token(client: GatewayClient, row: JsonObject) -> str:
    """The token of the reply in a row; empty where it is another kind of message."""
    if not row["run_id"] or not row["session_id"]:
        return ""
    path = f"/v1/sessions/{row['session_id']}/messages"
    for one in await client.items(path, most=20_000):
        if one.get("run_id") == row["run_id"] and one["kind"] == "assistant":
            found = ANSWER.search(str(one["text"]))
            if found:
                return found[1]
    return ""


def _effects(stage: Stage, report: Report) -> None:
    """A tool call has its effect once; never where it was denied; perhaps where nobody knows."""
    done = Counter(stage.town.lines("effects"))
    report.effects = sum(done.values())
    wishes = stage.ledger.wishes
    for token, times in done.items():
        if times > 1:
            report.wrong_effects.append(f"{token} {times} times")
        if token in stage.denied:
            report.wrong_effects.append(f"{token} though it was denied")
    for token, wish in wishes.items():
        due = wish.kind in ("tool", "approval") and not wish.is_open and not wish.excuse
        if due and not (done[token] or token in stage.ledger.unsure or token in stage.denied):
            told = stage.ledger.results.get(token, "nothing")
            report.wrong_effects.append(f"{token} ({wish.kind}, {wish.place}) never; told: {told}")


def _object(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}
