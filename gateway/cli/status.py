"""`status`: how the gateway is."""

from collections import Counter
from typing import TYPE_CHECKING

import typer

from gateway.cli.common import AsJson, ask_gateway, cell, say
from runtime.domain.counts import counted
from runtime.domain.json_fields import objects_of

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient, JsonObject


def status(context: typer.Context, as_json: AsJson = False) -> None:
    """Show how the running gateway is."""
    found = ask_gateway(context, _look, as_json=as_json)
    for name, value in found.items():
        if name == "leases":
            _show_leases(objects_of(found, name))
        elif value not in ([], {}, None):
            _show(name, value)


async def _look(gateway: "GatewayClient") -> "JsonObject":
    """How it is, and the policy of its scheduler, which is a setting."""
    found = await gateway.get("/v1/status")
    runtime = await gateway.get("/v1/runtime")
    return {**found, "scheduler": runtime.get("scheduler")}


def _show_leases(rows: "list[JsonObject]") -> None:
    """What each process holds, without the numbers that only a program compares."""
    held = Counter(cell(row.get("holder")) for row in rows)
    for holder, count in held.items():
        listens = sorted(
            cell(row.get("name")).removeprefix("listen:").partition(":")[0]
            for row in rows
            if cell(row.get("holder")) == holder and cell(row.get("name")).startswith("listen:")
        )
        named = f", listens to {', '.join(dict.fromkeys(listens))}" if listens else ""
        say(f"process {holder}: holds {counted(count, 'lease')}{named}")


def _show(name: str, value: object, indent: str = "") -> None:
    if isinstance(value, dict):
        say(f"{indent}{name}:")
        for inner, one in value.items():
            _show(inner, one, f"{indent}  ")
    elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
        say(f"{indent}{name}:")
        for one in value:
            fields = one.items() if isinstance(one, dict) else ()
            say(f"{indent}  " + "  ".join(f"{key}={_word(inner)}" for key, inner in fields))
    elif isinstance(value, list):
        say(f"{indent}{name}: {'; '.join(_word(one) for one in value)}")
    else:
        say(f"{indent}{name}: {_word(value)}")


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else cell(value)
