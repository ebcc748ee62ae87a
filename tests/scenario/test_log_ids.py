"""What is logged while an agent works says which agent, which session and which run (OPS-7)."""

from pathlib import Path

import pytest
import structlog

from runtime.ports.model import ModelRequest
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Said
from tests.scenario.subagents.children import engine, grown, name_of, spawn, told

__all__ = ["dialect", "migrated_url", "schema_templates"]


def script(request: ModelRequest) -> Said | str:
    if name_of(request):
        raise ArithmeticError("a defect of ours")
    return "Begun." if "accepted" in told(request) else spawn(task="x", id="one", mode="background")


@pytest.mark.requirement("OPS-7", "AGT-1")
async def test_lines_carry_the_ids_of_run_session_and_agent(
    tmp_path: Path, migrated_url: str
) -> None:
    merge = structlog.contextvars.merge_contextvars
    with structlog.testing.capture_logs(processors=[merge]) as lines:
        async with engine(tmp_path, migrated_url, script, max_retries=0) as at:
            await at.says("go")
            found = await grown(at, lambda found: "one" in found and found["one"].settled)
    one = found["one"].session_id
    (line,) = [line for line in lines if line["event"] == "turn_failed"]
    assert (line["session_id"], line["agent_id"]) == (one, one)
    assert str(line["run_id"]).startswith("run_")
    assert line["run_id"] != found["one"].run_id, "that one is its parent's"
