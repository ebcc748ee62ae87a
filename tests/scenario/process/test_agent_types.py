"""`agents types` and the doctor's word about definitions, as a person types them (SUB-2)."""

import json

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import Place, command, gateway

NARROW = "---\ndescription: Looks.\nisolation: shared\ntools: read_file, magic\n---\nLook.\n"
WIDE = "---\ntools: read_file, write_file\nmodel: openai:huge\n---\nExplore.\n"


def put(place: Place, name: str, text: str) -> str:
    """A file below the home folder of whoever runs the gateway; its path."""
    file = place.path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return str(file)


@pytest.mark.requirement("SUB-2")
async def test_types_are_listed_from_every_folder_without_a_gateway(
    place: Place, fail_after: FailAfter
) -> None:
    claude = put(place, ".claude/agents/scout.md", NARROW)
    own = place.home.relative_to(place.path)
    put(place, f"{own}/agents/deep/scout.md", NARROW.replace("Looks", "Digs"))
    put(place, f"{own}/workspace/.claude/agents/explore.md", WIDE)
    put(place, f"{own}/workspace/agents/broken.md", "---\nmaxTurns: few\n---\nx")
    async with fail_after(60):
        listed = await command(place, "agents", "types", "list", "--json")
        people = await command(place, "agents", "types", "list")
        shown = await command(place, "agents", "types", "show", "scout")
        narrow = await command(place, "agents", "types", "show", "explore", "--json")
        wrong = await command(place, "agents", "types", "show", "resercher")
    assert listed.code == 0, listed.err
    found = json.loads(listed.out)
    rows = {one["name"]: one for one in found["items"]}
    assert {"general", "explore", "plan", "researcher", "reviewer", "planner"} <= rows.keys()
    scout = rows["scout"]
    assert (scout["isolation"], rows["broken"]["isolation"]) == ("shared", None)
    assert (scout["source"], scout["about"], scout["tools"]) == ("user", "Digs.", ["read_file"])
    assert scout["file"].endswith("agents/deep/scout.md")
    assert claude not in listed.out
    assert (rows["broken"]["usable"], rows["explore"]["source"]) == ("no", "workspace")
    told = "\n".join(found["problems"])
    assert "agents/broken.md is not used: maxTurns: input should be a valid integer" in told
    assert "explore.md: tools: write_file is more than explore may have" in told
    assert "explore.md: model: openai:huge is not offered here" in told
    assert "scout.md: tools: magic does not exist" in told
    assert "broken" in people.out
    assert "maxTurns" in people.err
    assert "tools           read_file" in shown.out
    assert shown.out.endswith("\nLook.\n")
    assert json.loads(narrow.out)["tools"] == ["read_file"]
    assert json.loads(narrow.out)["model"] is None
    assert wrong.code == 1
    assert "researcher" in wrong.err


@pytest.mark.requirement("SUB-2")
async def test_a_file_is_judged_by_field_and_rule(place: Place, fail_after: FailAfter) -> None:
    good = put(place, "good.md", "---\ntools: read_file\ncolor: red\n---\nLook.\n")
    odd = put(place, "odd.md", "---\ntools: Read\nmodel: sonnet\n---\nLook.\n")
    bad = put(place, "bad.md", "---\nmaxTurns: 0\n---\nLook.\n")
    empty = put(place, "empty.md", "---\nname: empty\n---\n")
    wide = put(place, "explore.md", "---\ntools: write_file\npermissionMode: acceptEdits\n---\nx")
    async with fail_after(60):
        right = await command(place, "agents", "types", "validate", good)
        wrong = await command(
            place, "agents", "types", "validate", good, odd, bad, empty, wide, "no.md"
        )
        listed = await command(place, "agents", "types", "validate", "--json", good, odd)
    assert right.code == 0, right.err
    assert "color: this field means nothing here" in right.err
    assert wrong.code == 1
    assert f"{good}: good has no problems" in wrong.out
    assert f"{odd}: tools: Read does not exist; near it: read_file" in wrong.out
    assert f"{odd}: model: sonnet is not offered here" in wrong.out
    assert f"{bad}: maxTurns: input should be greater than or equal to 1" in wrong.out
    assert f"{empty}: body: it has no body" in wrong.out
    assert f"{wide}: tools: write_file is more than explore may have" in wrong.out
    assert f"{wide}: permissionMode: explore only reads, so acceptEdits has no effect" in wrong.out
    assert "explore has no problems" not in wrong.out
    assert "no.md: there is no such file" in wrong.out
    assert listed.code == 1
    assert [one["usable"] for one in json.loads(listed.out)] == [True, True]


@pytest.mark.requirement("SUB-2")
async def test_the_doctor_tells_of_definitions(place: Place, fail_after: FailAfter) -> None:
    async with fail_after(60):
        before = await command(place, "doctor", "--json")
        put(place, ".claude/agents/scout.md", "---\nmaxTurns: few\n---\nx")
        put(place, ".claude/agents/spy.md", "---\nname: spy\n---\n")
        after = await command(place, "doctor", "--json")
        people = await command(place, "doctor")
    (fine,) = [one for one in json.loads(before.out) if one["name"] == "subagents"]
    (warned,) = [one for one in json.loads(after.out) if one["name"] == "subagents"]
    assert fine["state"] == "ok"
    assert warned["state"] == "warn"
    assert ".claude/agents/scout.md is not used: maxTurns: input should be" in warned["found"]
    assert "gatehouse agents types validate" in warned["fix"]
    lines = [line for line in people.out.splitlines() if "is not used" in line]
    assert len(lines) == 2, "a line for each file"


@pytest.mark.requirement("SUB-15")
async def test_a_gateway_does_not_start_with_a_model_for_subagents_that_nobody_knows(
    place: Place, fail_after: FailAfter
) -> None:
    place.configure('[agents.depth.1]\nmodel = "nobody:knows"\n')
    async with fail_after(60), gateway(place) as program:
        assert await program.ended() != 0
    assert "agents.depth.1.model" in "\n".join(program.err)
