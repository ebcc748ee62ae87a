"""What a child of each type is given, and that nobody gives more than they have (SUB-1, SUB-2)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.features import FACES
from runtime.domain.decisions import PermissionMode
from runtime.domain.tools import Effect
from runtime.features.subagents.settings import ChildModels, ChildSettings, Limits
from runtime.features.subagents.spawn.agent_types import ASKS, BUILT_IN, Caller, Types, types_for
from runtime.workspace.definition_file import Definition, Header
from runtime.workspace.definitions import Definitions

ALL = {one.name for one in FACES}
READS = {one.name for one in FACES if one.effect is Effect.READ}
FILES = {"read_file", "list_dir", "glob", "grep", "resolve_path"}
ROOT = Caller(max_steps=40)
GENERALS = {"general", "explore", "plan"}


def defined(*items: Definition) -> Definitions:
    return Definitions(tuple(sorted(items, key=lambda one: one.name)), ())


def one(name: str = "scout", **fields: object) -> Definition:
    header = Header().model_copy(update=fields)
    return Definition(name, "workspace", f"agents/{name}.md", header, prompt="Look.")


def types(
    *items: Definition, caller: Caller = ROOT, settings: ChildSettings | None = None
) -> Types:
    return types_for(FACES, defined(*items), caller, settings or ChildSettings())


def below(found: Types, name: str, depth: int = 1) -> Caller:
    """A child of a type, as a caller."""
    profile = found.profiles[name]
    assert profile.max_steps is not None
    return Caller(name, depth, frozenset(profile.tools), profile.max_steps)


@pytest.mark.requirement("SUB-1")
def test_general_has_the_full_set_of_its_parent() -> None:
    found = types()
    for name in ("general", "default"):
        profile = found.profiles[name]
        assert set(profile.tools) == ALL
        assert (profile.read_only, profile.no_writing) == (False, False)
    small = types(caller=Caller("scout", 1, frozenset({"read_file", "write_file"})))
    assert set(small.profiles["general"].tools) == {"read_file", "write_file"}


@pytest.mark.requirement("SUB-1")
@pytest.mark.parametrize("name", ["explore", "plan", "planning"])
def test_who_explores_and_plans_only_reads(name: str) -> None:
    profile = types().profiles[name]
    assert set(profile.tools) == (READS | {"exec"}) - ASKS
    assert set(profile.tools) >= FILES | {"web_fetch", "exec", "sessions_spawn", "use_skill"}
    assert not {"write_file", "edit_file", "send_file"} & set(profile.tools)
    assert profile.read_only


@pytest.mark.requirement("SUB-1")
def test_who_coordinates_writes_nothing_and_runs_nothing() -> None:
    profile = types().profiles["coordination"]
    planned = {"task_create", "task_update", "task_stop"}
    assert set(profile.tools) == (READS | {"send_message"} | planned) - ASKS
    assert set(profile.tools) >= {"sessions_spawn", "subagents", "agents_list", *FILES}
    assert set(profile.tools) >= {"task_list", "task_get", "task_output"}
    assert not {"exec", "write_file", "edit_file", "task_write"} & set(profile.tools)
    assert (profile.read_only, profile.no_writing) == (False, True)


@pytest.mark.requirement("SUB-1")
def test_who_verifies_runs_what_policy_lets_and_writes_nothing() -> None:
    profile = types().profiles["verification"]
    assert set(profile.tools) == (READS | {"exec"}) - ASKS
    assert (profile.read_only, profile.no_writing) == (False, True)


@pytest.mark.requirement("SUB-1")
@pytest.mark.parametrize(
    ("caller", "may"),
    [
        ("general", GENERALS | {"scout"}),
        ("default", GENERALS | {"scout"}),
        ("coordination", GENERALS | {"scout"}),
        ("scout", GENERALS | {"scout"}),
        ("gone", GENERALS | {"scout"}),
        ("explore", {"explore"}),
        ("plan", {"explore"}),
        ("planning", {"explore"}),
        ("verification", {"explore"}),
        ("", BUILT_IN.keys() | {"scout"}),
    ],
)
def test_who_may_spawn_whom(caller: str, may: set[str]) -> None:
    found = types(one(), caller=replace(ROOT, type=caller))
    assert found.may == may


@pytest.mark.requirement("SUB-2")
def test_a_definition_is_a_general_of_the_tools_that_it_names() -> None:
    found = types(
        one(tools=("read_file", "write_file", "ask_user"), disallowed_tools=("write_file",))
    )
    profile = found.profiles["scout"]
    assert set(profile.tools) == {"read_file", "ask_user"}
    assert (profile.prompt, profile.read_only) == ("Look.", False)
    assert found.problems == ()
    everything = types(one(disallowed_tools=("exec",))).profiles["scout"].tools
    assert set(everything) == ALL - {"exec"}
    assert set(types(one(tools=("*",))).profiles["scout"].tools) == ALL
    assert types(one(tools=())).profiles["scout"].tools == ()


@pytest.mark.requirement("SUB-2")
def test_a_definition_of_a_built_in_name_cannot_widen_it() -> None:
    wider = one(
        "explore",
        tools=("read_file", "write_file", "exec"),
        permission_mode=PermissionMode.BYPASS,
        max_turns=1000,
    )
    found = types(wider)
    profile = found.profiles["explore"]
    assert profile.tools == ("read_file", "exec")
    assert (profile.read_only, profile.max_steps) == (True, 40)
    tools, mode = found.problems
    assert tools == "agents/explore.md: tools: write_file is more than explore may have"
    assert mode.startswith("agents/explore.md: permissionMode: explore only reads, so bypass")
    assert types(wider, caller=replace(ROOT, type="explore")).may == {"explore"}
    leads = types(one("coordination", tools=("exec", "read_file")))
    assert leads.profiles["coordination"].tools == ("read_file",)
    assert leads.profiles["coordination"].no_writing
    assert "exec is more than coordination may have" in leads.problems[0]


@pytest.mark.requirement("SUB-2")
def test_who_is_to_plan_has_only_what_reads() -> None:
    profile = types(one(permission_mode=PermissionMode.PLAN)).profiles["scout"]
    assert set(profile.tools) == (READS | {"exec"}) - ASKS
    assert (profile.read_only, profile.permission_mode) == (True, PermissionMode.PLAN)


@pytest.mark.requirement("SUB-2")
@pytest.mark.parametrize(("own", "parents", "kept"), [(50, 40, 40), (7, 40, 7), (50, 5, 5)])
def test_steps_are_capped_by_the_parents(own: int, parents: int, kept: int) -> None:
    found = types(one(max_turns=own), caller=replace(ROOT, max_steps=parents))
    assert found.profiles["scout"].max_steps == kept
    assert found.profiles["general"].max_steps == parents


@pytest.mark.requirement("SUB-2")
def test_skills_are_read_first_by_whoever_can_read_them() -> None:
    first = "Before you begin, read these skills with use_skill: cite, write."
    profile = types(one(skills=("cite", "write"), tools=("read_file",))).profiles["scout"]
    assert set(profile.tools) == {"read_file", "use_skill"}
    assert profile.prompt == f"Look.\n\n{first}"
    kept = types(one(skills=("cite",), disallowed_tools=("use_skill",))).profiles["scout"]
    assert kept.prompt == "Look."


@pytest.mark.requirement("SUB-2", "SUB-3")
def test_triggers_say_what_a_type_is_for() -> None:
    found = types(one(description="Looks.", triggers=("find", "seek")))
    assert found.about["scout"] == "Looks. For: find, seek."


@pytest.mark.requirement("SUB-14")
@pytest.mark.parametrize(("depth", "able", "deeper"), [(0, True, True), (1, True, False)])
def test_at_the_last_depth_nobody_is_given_the_tool(depth: int, able: bool, deeper: bool) -> None:
    tools = frozenset(ALL)
    found = types(caller=Caller("general", depth, tools))
    assert found.able is able
    assert ("sessions_spawn" in found.profiles["general"].tools) is deeper
    assert not types(caller=Caller("general", 2, tools)).able
    assert not types(caller=Caller("general", 1, tools - {"sessions_spawn"})).able
    alone = ChildSettings(limits=Limits(max_depth=1))
    assert not types(settings=alone).able


@pytest.mark.requirement("SUB-15")
def test_a_model_is_the_definitions_then_of_the_depth_then_of_all_subagents() -> None:
    models = ChildModels("m:all", {1: "m:first"}, frozenset({"m:all", "m:first", "m:own"}))
    settings = ChildSettings(models=models)
    first = types(one(model="m:own"), settings=settings)
    assert first.profiles["scout"].model == "m:own"
    assert first.profiles["general"].model == "m:first"
    second = types(one(), settings=settings, caller=Caller("general", 1, frozenset(ALL)))
    assert second.profiles["scout"].model == "m:all"
    assert types().profiles["general"].model is None


names = st.sampled_from(sorted(ALL | {"*", "nothing"}))
definitions = st.builds(
    one,
    name=st.sampled_from(["scout", "deep", *BUILT_IN]),
    tools=st.none() | st.lists(names, max_size=6).map(tuple),
    disallowed_tools=st.lists(names, max_size=3).map(tuple),
    permission_mode=st.none() | st.sampled_from(PermissionMode),
    max_turns=st.integers(1, 1000),
    skills=st.sampled_from([(), ("cite",)]),
)


@pytest.mark.requirement("SUB-1", "SUB-2")
@given(
    items=st.lists(definitions, max_size=4, unique_by=lambda it: it.name),
    chain=st.lists(st.sampled_from([*BUILT_IN, "scout", "deep"]), max_size=6),
    levels=st.integers(1, 6),
    steps=st.integers(1, 60),
)
def test_no_chain_of_spawns_and_definitions_widens_anything(
    items: list[Definition], chain: list[str], levels: int, steps: int
) -> None:
    settings = ChildSettings(limits=Limits(max_depth=levels))
    caller, reads = replace(ROOT, max_steps=steps), False
    for name in chain:
        found = types(*items, caller=caller, settings=settings)
        if not found.able or name not in found.may:
            break
        profile = found.profiles[name]
        tools = frozenset(profile.tools)
        assert tools <= (ALL if caller.tools is None else caller.tools)
        assert profile.max_steps is not None
        assert profile.max_steps <= caller.max_steps
        bare = types(caller=caller, settings=settings).profiles.get(name)
        if bare is not None:
            assert tools <= set(bare.tools)
            assert (profile.read_only, profile.no_writing) >= (bare.read_only, bare.no_writing)
        if profile.read_only or reads:
            assert tools <= READS | {"exec"}
        reads = reads or profile.read_only
        caller = below(found, name, caller.depth + 1)
        assert caller.depth < levels
        if caller.depth == levels - 1:
            assert "sessions_spawn" not in tools
