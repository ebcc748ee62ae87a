"""One action: what a card shows, what is allowed and what runs are the same bytes (APR-9)."""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import Field, JsonValue

from runtime.domain.decisions import Decision, PermissionMode
from runtime.domain.grants import Grant, GrantKind
from runtime.domain.tools import Effect, ToolCall, Touches
from runtime.policy.decide import Bounds, RuleLists
from runtime.sessions.bounds import rule_lists
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from runtime.tools.builtin.shell import Exec, ExecSettings
from runtime.tools.canonical_paths import CanonicalPaths
from runtime.tools.executor import APPROVED, Executor, Planned
from runtime.tools.registry import Registry
from tests.fakes.sandbox import FakeSandbox, FakeStdio
from tests.unit.tools.support import Desk, StillClock

pytestmark = pytest.mark.requirement("APR-9")


class Recorded(Arguments):
    text: str = ""
    number: float = 1.0
    flags: tuple[bool, ...] = ()
    more: dict[str, JsonValue] = Field(default_factory=dict)


class Recorder(Tool[Recorded]):
    """Keeps what it was run with."""

    name = "record"
    description = "Keep it."
    arguments = Recorded
    effect = Effect.ONCE
    example = "{}"

    def __init__(self) -> None:
        self.ran: list[Recorded] = []

    def touches(self, arguments: Recorded, context: ToolContext) -> Touches:
        return Touches(command=arguments.text, subject=arguments.text)

    async def run(self, arguments: Recorded, context: ToolContext) -> ToolOutput:
        self.ran.append(arguments)
        return ToolOutput("kept")


def planned_of(
    executor: Executor, desk: Desk, arguments: str, tool: str = "record", **bounds: object
) -> Planned:
    call = ToolCall(id="c", name=tool, arguments=arguments)
    (planned,) = executor.plan(
        [call],
        run_id="r",
        step=1,
        bounds=replace(Bounds(), **bounds),
        context_for=lambda _id: desk.context(),
    )
    return planned


def approved(planned: Planned) -> Planned:
    """As the engine has it once a person allowed it."""
    decision = Decision(verdict="allow", rule=f"{APPROVED}: a person allowed this call")
    return replace(planned, row=replace(planned.row, decision=decision))


TEXTS = st.text(max_size=12)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "text": TEXTS,
        "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9),
        "flags": st.lists(st.booleans(), max_size=3),
        "more": st.dictionaries(TEXTS, st.none() | st.integers() | TEXTS, max_size=3),
    },
)


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(value=VALUES, ascii_only=st.booleans(), indent=st.none() | st.integers(0, 3))
async def test_what_is_shown_is_what_is_digested_and_what_runs(
    desk: Desk, value: dict[str, JsonValue], ascii_only: bool, indent: int | None
) -> None:
    recorder = Recorder()
    executor = Executor(Registry([recorder]))
    written = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    planned = planned_of(executor, desk, written)
    again = planned_of(executor, desk, planned.row.call.arguments)
    backwards = json.dumps(dict(reversed(value.items())))
    assert planned.action is not None
    assert planned.row.call.arguments == planned.action.text == again.row.call.arguments
    assert (
        planned.row.digest == again.row.digest == planned_of(executor, desk, backwards).row.digest
    )
    await executor.run(planned, desk.context())
    (ran,) = recorder.ran
    assert ran == Recorded.model_validate_json(planned.row.call.arguments)
    assert ran.model_fields_set == set(value)


@given(one=VALUES, other=VALUES)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_other_arguments_are_another_action(
    desk: Desk, one: dict[str, JsonValue], other: dict[str, JsonValue]
) -> None:
    executor = Executor(Registry([Recorder()]))
    first = planned_of(executor, desk, json.dumps(one))
    second = planned_of(executor, desk, json.dumps(other))
    same = first.row.call.arguments == second.row.call.arguments
    assert (first.row.digest == second.row.digest) is same


def test_arguments_that_say_a_thing_twice_make_no_action(desk: Desk) -> None:
    planned = planned_of(Executor(Registry([Recorder()])), desk, '{"text": "ls", "text": "rm x"}')
    assert planned.action is None
    assert planned.prepared is None
    assert planned.row.state == "ended"


async def prints(stdio: FakeStdio) -> int:
    await stdio.write(b"ran")
    return 0


class Shelf:
    """A working folder with scripts, and commands that are only counted."""

    def __init__(self, desk: Desk) -> None:
        commands = ("sh run.sh", "make", "mytool", "ls")
        self.sandbox = FakeSandbox(StillClock(), dict.fromkeys(commands, prints))
        self.desk = Desk(desk.workspace, sandbox=self.sandbox, notes=desk.notes)
        self.files = desk.workspace / "files"
        self.files.mkdir(exist_ok=True)
        self.executor = Executor(self.desk.registry)

    def plan(
        self,
        command: str,
        grants: tuple[Grant, ...] = (),
        rules: RuleLists | None = None,
        **more: object,
    ) -> Planned:
        text = json.dumps({"command": command, **more})
        bounds = {"grants": grants} if rules is None else {"grants": grants, "rules": rules}
        return planned_of(self.executor, self.desk, text, "exec", **bounds)


@pytest.fixture
def shelf(desk: Desk) -> Shelf:
    return Shelf(desk)


@pytest.mark.parametrize("program", ["/etc/../usr/bin/tee", "./../../../../../../../usr/bin/tee"])
def test_a_program_of_the_system_that_is_spelt_like_ones_own_is_allowed_once(
    shelf: Shelf, program: str
) -> None:
    (shelf.files / "run.sh").touch()
    assert shelf.plan(f"{program} run.sh").grant is None


def test_an_action_is_its_folder_and_the_content_of_what_it_runs(shelf: Shelf) -> None:
    (shelf.files / "sub").mkdir()
    for folder in (shelf.files, shelf.files / "sub"):
        (folder / "run.sh").write_text("echo 1\n")
    seen = {shelf.plan("sh run.sh").row.digest}
    assert shelf.plan("sh run.sh").row.digest in seen
    seen.add(shelf.plan("sh run.sh", working_dir="sub").row.digest)
    seen.add(shelf.plan("sh run.sh", timeout_s=5).row.digest)
    (shelf.files / "run.sh").write_text("echo 2\n")
    seen.add(shelf.plan("sh run.sh").row.digest)
    (shelf.files / "run.sh").unlink()
    seen.add(shelf.plan("sh run.sh").row.digest)
    (shelf.files / "run.sh").symlink_to("sub/run.sh")
    seen.add(shelf.plan("sh run.sh").row.digest)
    assert len(seen) == 6
    # A file that make would take before the others, once it is there.
    (shelf.files / "Makefile").write_text("x:\n")
    make = shelf.plan("make").row.digest
    (shelf.files / "GNUmakefile").write_text("x:\n")
    assert shelf.plan("make").row.digest != make
    (shelf.files / "lint").symlink_to("/opt/tools/bin/gawk")
    (action,) = filter(None, [shelf.plan("./lint -f notes").action])
    assert [one.digest for one in action.files] == ["leads to /opt/tools/bin/gawk"]


@pytest.mark.parametrize(
    ("command", "more", "path"),
    [
        ("npm test", {"working_dir": "a/b"}, "package.json"),
        ("cd a/b && npm test", {}, "a/package.json"),
        ("pytest", {"working_dir": "a/b"}, "a/conftest.py"),
        ("go test", {"working_dir": "a"}, "go.mod"),
    ],
)
def test_what_a_program_looks_for_in_folders_above_is_part_of_the_action(
    shelf: Shelf, command: str, more: dict[str, object], path: str
) -> None:
    (shelf.files / "a/b").mkdir(parents=True)
    before = shelf.plan(command, **more).row.digest
    assert shelf.plan(command, **more).row.digest == before
    (shelf.files / path).write_text("{}")
    assert shelf.plan(command, **more).row.digest != before


def test_a_card_says_where_a_command_runs_and_with_which_files(shelf: Shelf) -> None:
    (shelf.files / "run.sh").write_text("echo 1\n")
    action = shelf.plan("sh run.sh").action
    assert action is not None
    digest = hashlib.sha256(b"echo 1\n").hexdigest()[:12]
    assert action.circumstances == f"Runs in the working folder, with run.sh (sha256 {digest})."
    plain = shelf.plan("ls").action
    assert plain is not None
    assert plain.circumstances == "Runs in the working folder."


def test_names_on_a_card_show_what_cannot_be_seen(shelf: Shelf) -> None:
    (shelf.files / "a\u202eb").mkdir()
    (shelf.files / "a\u202eb/run\n.sh").write_text("echo 1\n")
    action = shelf.plan("sh 'run\n.sh'", working_dir="a\u202eb").action
    assert action is not None
    assert r"in a\u{202e}b, with a\u{202e}b/run\u{a}.sh (sha256 " in action.circumstances
    assert not {"\u202e", "\n"} & set(action.circumstances)


def test_for_the_session_is_offered_only_where_it_is_known_what_runs(shelf: Shelf) -> None:
    (shelf.files / "run.sh").write_text("echo 1\n")
    for command in ("sh run.sh", "make", "ls"):
        grant = shelf.plan(command).grant
        assert grant is not None
        assert grant.kind is GrantKind.ACTION
        assert grant.key == shelf.plan(command).row.digest
    for command in ("mytool", "python -c 'x'", "cp a run.sh && sh run.sh"):
        assert shelf.plan(command).grant is None
    (shelf.files / "run.sh").write_bytes(b"#" * (8 * 1024 * 1024 + 1))
    assert shelf.plan("sh run.sh").grant is None
    (shelf.files / "run.sh").unlink()
    # Without its script a shell looks for another of that name.
    assert shelf.plan("sh run.sh").grant is None
    (shelf.files / "run.sh").mkdir()
    assert shelf.plan("sh run.sh").grant is None


def test_a_grant_holds_until_a_script_or_the_folder_is_another(shelf: Shelf) -> None:
    script = shelf.files / "run.sh"
    script.write_text("echo 1\n")
    grant = shelf.plan("sh run.sh").grant
    assert grant is not None
    assert grant.files == (str(script),)

    def verdict(**more: object) -> str:
        decision = shelf.plan("sh run.sh", (grant,), **more).row.decision
        return decision.verdict if decision else "none"

    assert verdict() == "allow"
    assert verdict(timeout_s=9) == "ask"
    (shelf.files / "sub").mkdir()
    (shelf.files / "sub/run.sh").write_text("echo 1\n")
    assert verdict(working_dir="sub") == "ask"
    script.write_text("echo 2\n")
    assert verdict() == "ask"


@pytest.mark.parametrize("by", ["approval", "grant"])
async def test_what_changed_before_the_start_does_not_run(shelf: Shelf, by: str) -> None:
    script = shelf.files / "run.sh"
    script.write_text("echo 1\n")
    planned = shelf.plan("sh run.sh")
    if by == "grant":
        assert planned.grant is not None
        planned = shelf.plan("sh run.sh", (planned.grant,))
    else:
        planned = approved(planned)
    script.write_text("echo 2\n")
    ran = await shelf.executor.run(planned, shelf.desk.context())
    assert ran.result.status == "error"
    assert "has changed since it was allowed" in ran.result.content
    assert shelf.sandbox.started == []
    script.write_text("echo 1\n")
    assert (await shelf.executor.run(planned, shelf.desk.context())).result.status == "ok"


class Rewriting(dict[str, str]):
    """Variables that change a script when they are looked at: after the first comparison."""

    def __init__(self, script: Path) -> None:
        super().__init__()
        self._script = script

    def get(self, key: str, default: Any = None) -> Any:
        self._script.write_text("echo 2\n")
        return super().get(key, default)


async def test_what_changes_while_the_command_is_prepared_does_not_run(shelf: Shelf) -> None:
    script = shelf.files / "run.sh"
    script.write_text("echo 1\n")
    command = Exec(shelf.sandbox, ExecSettings(env=Rewriting(script)))
    executor = Executor(Registry([command]))
    planned = approved(planned_of(executor, shelf.desk, '{"command": "sh run.sh"}', "exec"))
    ran = await executor.run(planned, shelf.desk.context())
    assert "has changed since it was allowed" in ran.result.content
    assert shelf.sandbox.started == []


def _deep(shelf: Shelf) -> None:
    """A script, and another one behind the link `link`, which leads two folders down."""
    (shelf.files / "deep/er").mkdir(parents=True)
    (shelf.files / "link").symlink_to("deep/er")
    for folder in (shelf.files, shelf.files / "deep"):
        (folder / "run.sh").write_text(f"echo {folder.name}\n")
        (folder / "Makefile").write_text("x:\n")


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("sh link/../run.sh", {"deep/run.sh", "run.sh"}),
        ("cd link && sh ../run.sh", {"deep/run.sh", "run.sh"}),
        ("make -C link/..", {"deep/Makefile", "Makefile"}),
        ("cd link/.. && make", {"deep/Makefile", "Makefile"}),
        ("cd link && cd .. && make", {"deep/Makefile", "Makefile"}),
        ("cd deep; sh run.sh", {"deep/run.sh", "run.sh"}),
    ],
)
def test_where_a_link_or_a_step_leaves_two_files_both_are_on_the_card(
    shelf: Shelf, command: str, names: set[str]
) -> None:
    _deep(shelf)
    planned = shelf.plan(command)
    assert planned.action is not None
    assert {one.name for one in planned.action.files if one.digest is not None} == names
    assert planned.grant is None


@pytest.mark.parametrize(
    "command",
    ["sh deep/../run.sh", "cd deep && sh ../run.sh", "cd deep && cd .. && make",
     "cd deep && ls && cd ../deep && make", "cd deep/.. && make"],
)  # fmt: skip
def test_without_a_link_a_way_up_is_known(shelf: Shelf, command: str) -> None:
    _deep(shelf)
    planned = shelf.plan(command)
    assert planned.action is not None
    names = [one.name for one in planned.action.files if one.digest is not None]
    assert len(names) == len(set(names))
    assert planned.grant is not None
    assert planned.grant.key == planned.row.digest
    for folder in ("deep", "deep/er"):
        shutil.rmtree(shelf.files / folder, ignore_errors=True)
    (shelf.files / "other/er").mkdir(parents=True)
    (shelf.files / "other/run.sh").write_text("echo other\n")
    (shelf.files / "other/Makefile").write_text("y:\n")
    (shelf.files / "deep").symlink_to("other/er")
    again = shelf.plan(command, (planned.grant,))
    assert again.row.decision is not None
    assert again.row.decision.verdict == "ask"


@pytest.mark.parametrize("target", ["/proc/self/cwd", "/proc/self/root/tmp", "/dev/fd/../cwd"])
def test_a_way_through_the_folder_of_a_process_names_no_file_of_the_gateway(
    shelf: Shelf, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shelf.files / "run.sh").write_text("echo 1\n")
    monkeypatch.chdir(shelf.files)
    (shelf.files / "door").symlink_to(target)
    planned = shelf.plan("sh door/run.sh")
    assert planned.action is not None
    assert [(one.name, one.digest) for one in planned.action.files] == [("door/run.sh", "not read")]
    assert planned.grant is None


def test_a_script_outside_is_held_to_its_content_and_to_where_a_link_leads(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside, other = (shelf.desk.workspace.parent / name for name in ("outside.sh", "other.sh"))
    outside.write_text("echo 1\n")
    other.write_text("echo 1\n")
    link = shelf.files / "run.sh"
    link.symlink_to(outside)
    commands = ("sh run.sh", "sh ../../outside.sh", "cd ../.. && sh outside.sh")
    # A sandbox has a folder of its own for what is temporary.
    monkeypatch.setattr("runtime.tools.actions._OTHER", (str(outside.parent),))
    for command in commands:
        assert shelf.plan(command).grant is None
    monkeypatch.setattr("runtime.tools.actions._OTHER", ())
    before = [shelf.plan(command) for command in commands]
    for planned in before:
        assert planned.action is not None
        assert [one.path for one in planned.action.files] == [str(outside)]
        assert planned.grant is not None
    outside.write_text("echo 2\n")
    for command, planned in zip(commands, before, strict=True):
        assert shelf.plan(command).row.digest != planned.row.digest
    outside.write_text("echo 1\n")
    assert shelf.plan("sh run.sh").row.digest == before[0].row.digest
    link.unlink()
    link.symlink_to(other)
    assert shelf.plan("sh run.sh").row.digest != before[0].row.digest


def test_a_file_outside_that_commands_cannot_see_is_not_read(
    desk: Desk,
) -> None:
    (desk.workspace / "USER.md").write_text("private\n")
    planned = Shelf(Desk(desk.workspace, notes=False)).plan("sh ../USER.md")
    assert planned.action is not None
    assert [one.digest for one in planned.action.files] == ["not read"]
    assert planned.grant is None


def test_a_link_to_a_program_of_another_name_is_not_known(shelf: Shelf) -> None:
    """It does what its arguments say, and no table knows them by this name."""
    (shelf.files / "x.py").write_text("print(1)\n")
    # A name that the other one begins with is another name too.
    for name in ("tool", "en"):
        (shelf.files / name).symlink_to("/usr/bin/env")
    (shelf.files / "true").symlink_to(Path("/bin/true").resolve())
    (shelf.files / "sh").symlink_to(Path("/bin/sh").resolve())
    for program in ("tool", "en", "true"):
        assert shelf.plan(f"./{program} ./evil").grant is None
    assert shelf.plan("./sh x.py").grant is not None


def test_a_program_of_the_system_counts_by_which_one_it_is(shelf: Shelf) -> None:
    (shelf.files / "x.py").write_text("print(1)\n")
    (shelf.files / "python3").symlink_to("/usr/bin/env")
    first = shelf.plan("./python3 x.py")
    assert first.action is not None
    shown = {one.name: one.digest for one in first.action.files}
    assert shown["python3"] == f"leads to {Path('/usr/bin/env').resolve()}"
    assert f"python3 ({shown['python3']}), x.py (sha256 " in first.action.circumstances
    (shelf.files / "python3").unlink()
    (shelf.files / "python3").symlink_to("/bin/sh")
    assert shelf.plan("./python3 x.py").row.digest != first.row.digest


async def test_a_file_is_read_once_and_all_files_have_a_bound(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shelf.files / "d").mkdir()
    (shelf.files / "b.py").write_bytes(b"#" * 1000)
    (shelf.files / "c.py").write_bytes(b"#" * 1000)
    (action,) = filter(None, [shelf.plan("python3 b.py c.py").action])
    for name, most in (("BYTES_IN_ALL", 2000), ("BYTES", 1000), ("FILES", len(action.files))):
        for bound, whole in ((most - 1, False), (most, True)):
            monkeypatch.setattr(f"runtime.tools.actions._MOST_{name}", bound)
            assert (shelf.plan("python3 b.py c.py").grant is not None) is whole
    assert shelf.plan("python3 b.py d/../b.py ./d/../b.py").grant is not None


def test_a_text_with_a_nul_is_refused_and_says_so(shelf: Shelf) -> None:
    for more in ({"command": "make -f x\0y"}, {"command": "ls", "working_dir": "a\0"}):
        planned = planned_of(shelf.executor, shelf.desk, json.dumps(more), "exec")
        assert planned.row.result is not None
        assert "NUL" in planned.row.result.content


def test_a_folder_of_tests_is_no_file_that_cannot_be_read(shelf: Shelf) -> None:
    (shelf.files / "tests").mkdir()
    planned = shelf.plan("pytest -q tests")
    assert planned.grant is not None
    (shelf.files / "tests").rmdir()
    (shelf.files / "tests").write_text("x\n")
    assert shelf.plan("pytest -q tests").row.digest != planned.row.digest


async def test_a_command_does_not_run_in_a_folder_that_became_another(shelf: Shelf) -> None:
    for name in ("one", "two"):
        (shelf.files / name).mkdir()
    (shelf.files / "here").symlink_to("one")
    by_person = approved(shelf.plan("ls", working_dir="here"))
    (shelf.files / "root").symlink_to(".")
    by_rule = shelf.plan("ls", working_dir="root", rules=rule_lists(allow=("exec(ls)",)))
    assert by_rule.row.decision is not None
    assert by_rule.row.decision.verdict == "allow"
    for name in ("here", "root"):
        (shelf.files / name).unlink()
        (shelf.files / name).symlink_to("two")
    for planned in (by_person, by_rule):
        ran = await shelf.executor.run(planned, shelf.desk.context())
        assert "working folder has changed" in ran.result.content
    assert shelf.sandbox.started == []


@pytest.mark.requirement("POL-9")
def test_what_a_rule_or_a_grant_runs_is_written_by_asking(shelf: Shelf) -> None:
    (shelf.files / "run.sh").write_text("echo 1\n")
    grant = shelf.plan("sh run.sh").grant
    assert grant is not None
    rules = rule_lists(allow=("exec(make test)", "exec(./tool:*)"))

    def verdict(path: str, grants: tuple[Grant, ...] = (), mode: str = "default") -> str:
        text = json.dumps({"path": path, "content": "x"})
        planned = planned_of(
            shelf.executor,
            shelf.desk,
            text,
            "write_file",
            grants=grants,
            rules=rules,
            mode=PermissionMode(mode),
        )
        return planned.row.decision.verdict if planned.row.decision else "none"

    assert verdict("run.sh") == "allow"
    assert verdict("run.sh", (grant,)) == "ask"
    for name in ("Makefile", "GNUmakefile", "makefile", "tool", "./x/../Makefile"):
        assert verdict(name) == "ask"
    assert verdict("Makefile", mode="acceptEdits") == "ask"
    assert verdict("Makefile", mode="bypassPermissions") == "allow"
    assert verdict("Makefile", mode="dontAsk") == "deny"
    assert verdict("sub/Makefile") == verdict("other.sh") == "allow"


@pytest.mark.requirement("POL-9")
@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("make test", "Makefile.sh"),
        ("make test", "RCS/Makefile,v"),
        ("make -Cdocs html", "docs/Makefile"),
        ("make -sCdocs", "docs/Makefile"),
        ("make -j2 -fbuild.mk", "build.mk"),
        ("node build", "build.js"),
        ("node build", "build/index.js"),
        ("node build", "build/package.json"),
        ("npm test", "node_modules/.bin/jest"),
        ("npm test", "node_modules/.bin/deeper/jest"),
        ("cd sub && npm test", "sub/package.json"),
        ("cd sub && npm test", "package.json"),
        ("cd a/b && pytest -q", "a/conftest.py"),
        ("cd a/b && python -m pytest", "conftest.py"),
        ("cd a && cargo build", ".cargo/config.toml"),
        ("cd a && go test", "go.work"),
        ("cd a && uv run tox", "tox.ini"),
        ("CI=1 make test", "Makefile"),
        ("CI=1 sh ci.sh", "ci.sh"),
        ("(cd docs && make html)", "docs/Makefile"),
        ("(cd docs && cd en && make html)", "docs/en/Makefile"),
        ("cd nope; make", "Makefile"),
        ("cd o | true; make", "Makefile"),
        ("npm start", "server.js"),
        ("tox", "toxfile.py"),
        ("rake test", "rakelib/any.rake"),
        ("gradle test", "buildSrc/src/main/java/A.java"),
        ("invoke build", "tasks/__init__.py"),
        ("if true; then npm test; fi", "node_modules/.bin/jest"),
    ],
)
def test_whatever_a_rule_may_run_is_written_by_asking(
    shelf: Shelf, command: str, path: str
) -> None:
    text = json.dumps({"path": path, "content": "x"})
    for rules, wanted in ((rule_lists(allow=(f"exec({command})",)), "ask"), (None, "allow")):
        more = {} if rules is None else {"rules": rules}
        decision = planned_of(shelf.executor, shelf.desk, text, "write_file", **more).row.decision
        assert decision is not None
        assert decision.verdict == wanted


@pytest.mark.requirement("POL-9")
def test_what_a_grant_may_start_is_written_by_asking(shelf: Shelf) -> None:
    grant = shelf.plan("npm test").grant
    assert grant is not None
    text = json.dumps({"path": "node_modules/.bin/jest", "content": "x"})
    written = planned_of(shelf.executor, shelf.desk, text, "write_file", grants=(grant,))
    assert written.row.decision is not None
    assert written.row.decision.verdict == "ask"


def test_a_short_command_makes_the_gateway_look_up_few_paths(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, of = list[str](), CanonicalPaths.of

    def counted(paths: CanonicalPaths, path: str) -> str:
        looked.append(path)
        return of(paths, path)

    monkeypatch.setattr(CanonicalPaths, "of", counted)
    planned = shelf.plan("&&".join(["cd aaaaaaaaaaaaaaaaaaaaaa/../b && make"] * 25))
    assert planned.action is not None
    assert not planned.action.known
    assert planned.grant is None
    assert len(looked) < 4000
