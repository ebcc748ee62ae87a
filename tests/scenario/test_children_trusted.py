"""What children bring back gives nobody rights, and goes nowhere else (SUB-8, SUB-9, POL-4)."""

from pathlib import Path

import pytest

from runtime.ports.model import ModelRequest
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.children import engine, name_of, settled, spawn, told, tree

__all__ = ["dialect", "migrated_url", "schema_templates"]


@pytest.mark.requirement("SUB-8")
async def test_a_result_joins_no_run_of_somebody_trusted_otherwise(
    tmp_path: Path, migrated_url: str
) -> None:
    """The owner's child settles while a guest's run of the same group is at work."""
    child, guest = Gate(), Gate()

    def script(request: ModelRequest) -> Said | str:
        text = told(request)
        if name_of(request):
            return Said("a pearl", before=child)
        if "from the guest" in text.rsplit("UserMessage", 1)[-1] and "a pearl" not in text:
            return Said("Hello, guest.", before=guest)
        if "a pearl" in text:
            return "The owner's pearl."
        if "accepted" in text:
            return "Sent."
        return spawn(mode="background", agents=[{"task": "dive", "id": "diver"}])

    async with engine(tmp_path, migrated_url, script) as at:
        await at.says("dive", chat_id="G1", kind="group")
        assert await at.sees(1) == ["Sent."]
        await child.reached.wait()
        await at.says("hello, from the guest", user="U-guest", chat_id="G1", kind="group")
        await guest.reached.wait()
        child.open.set()
        await settled(at)
        guest.open.set()
        assert await at.sees(3) == ["Sent.", "Hello, guest.", "The owner's pearl."]


@pytest.mark.requirement("SUB-9")
async def test_a_guest_starts_no_subagents(tmp_path: Path, migrated_url: str) -> None:
    def script(request: ModelRequest) -> Said | str:
        if "may spawn: none" in told(request):
            return "I may not."
        return spawn(task="everything")

    async with engine(tmp_path, migrated_url, script) as at:
        await at.says("go", user="U-guest", chat_id="G1", kind="group")
        assert await at.sees(1) == ["I may not."]
        assert await tree(at) == {}


@pytest.mark.requirement("SUB-19")
async def test_a_new_conversation_ends_the_children_of_the_old_one(
    tmp_path: Path, migrated_url: str
) -> None:
    gate = Gate()

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            return Said("never", before=gate)
        return "Sent." if "accepted" in told(request) else spawn(task="x", mode="background")

    async with engine(tmp_path, migrated_url, script) as at:
        await at.says("go")
        assert await at.sees(1) == ["Sent."]
        await gate.reached.wait()
        await at.says("/new")
        assert {one.status for one in (await settled(at)).values()} == {"cancelled"}
        assert all("never" not in text for text in at.chat.texts())
