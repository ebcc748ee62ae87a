"""Commands: what they are granted, and what is told of their end (TOOL-5)."""

import asyncio
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.domain.errors import ToolError
from runtime.ports.sandbox import (
    SandboxCommand,
    SandboxExit,
    SandboxLimits,
    SandboxUnavailable,
)
from runtime.tools.builtin.shell import ExecSettings
from tests.fakes.sandbox import FakeProcess, FakeSandbox, FakeStdio, Program
from tests.unit.tools.support import Desk, StillClock, call

pytestmark = pytest.mark.requirement("TOOL-5")


def prints(*pieces: bytes, code: int = 0) -> Program:
    async def program(stdio: FakeStdio) -> int:
        for piece in pieces:
            await stdio.write(piece)
        return code

    return program


def at(
    desk: Desk, program: Program, commands: ExecSettings | None = None
) -> tuple[Desk, StillClock]:
    clock = StillClock()
    sandbox = FakeSandbox(clock, {"go": program})
    return Desk(
        desk.workspace, extra=desk.extra, sandbox=sandbox, commands=commands or ExecSettings()
    ), clock


def started(desk: Desk) -> SandboxCommand:
    assert isinstance(desk.sandbox, FakeSandbox)
    return desk.sandbox.started[-1]


async def test_a_command_gets_the_workspace_and_no_more(desk: Desk) -> None:
    settings = ExecSettings(
        env={"LANG": "C.UTF-8"}, limits=SandboxLimits(processes=7), hidden=("/srv/keys",)
    )
    (desk.folder / "sub").mkdir()
    for name in ("skills", "memory", "notes"):
        (desk.workspace / name).mkdir()
    for name in ("AGENTS.md", "USER.md", "stray.md"):
        (desk.workspace / name).write_text("x")
    (desk.workspace / "SOUL.md").symlink_to("/etc/hostname")
    desk, _ = at(desk, prints(b"hello\n"), settings)
    output = await desk.run("exec", command="go", working_dir="sub")
    assert output.content == "[exit code 0, 0.0 s]\nhello\n"
    assert not output.untrusted
    command = started(desk)
    assert command.cwd == str(desk.folder / "sub")
    assert command.writable == (str(desk.folder),)
    names = ("AGENTS.md", "USER.md", "skills", "memory")
    assert command.readable == tuple(str(desk.workspace / name) for name in names)
    assert command.hidden == ("/srv/keys",)
    assert not command.network
    assert {name for name in command.env if not name.startswith("GIT_")} == {"LANG", "PAGER"}
    assert (command.limits.timeout_s, command.limits.processes) == (60.0, 7)
    assert command.stdin == "closed"


@pytest.mark.requirement("SUB-16")
@pytest.mark.parametrize("child", [False, True])
async def test_a_childs_command_does_not_find_the_private_notes(desk: Desk, child: bool) -> None:
    (desk.workspace / "USER.md").write_text("Mira")
    desk, _ = at(desk, prints(b""))
    desk.child = child
    await desk.run("exec", command="go")
    path = str(desk.workspace / "USER.md")
    assert (path in started(desk).hidden) == child
    assert (path in started(desk).readable) != child


async def test_folders_beyond_the_roots_are_granted_for_reading_without_links(
    desk: Desk, tmp_path: Path
) -> None:
    desk, _ = at(desk, prints(b"fine"))
    beyond = tmp_path / "beyond"
    context = replace(desk.context(), reads=(beyond,))
    await desk.registry.prepare(call("exec", {"command": "go"})).run(context)
    assert started(desk).unlinked == (str(beyond),)


async def test_a_file_in_the_place_of_a_folder_of_the_gateway_is_not_granted(desk: Desk) -> None:
    desk, _ = at(desk, prints(b"fine"))
    (desk.workspace / "uploads").mkdir()
    (desk.workspace / "uploads" / "ses_1").write_text("no folder")
    await desk.run("exec", command="go")
    assert str(desk.workspace / "uploads" / "ses_1") not in started(desk).readable


async def test_a_repository_that_a_command_goes_into_is_looked_at_wherever_it_is(
    desk: Desk, tmp_path: Path
) -> None:
    beyond = tmp_path / "beyond"
    (beyond / ".git").mkdir(parents=True)
    (beyond / ".git" / "config").write_text('[filter "x"]\n\tclean = evil\n')
    command = f"cd {beyond} && git status"
    sandbox = FakeSandbox(StillClock(), dict.fromkeys((command, "git status"), prints(b"fine")))
    desk = Desk(desk.workspace, sandbox=sandbox)
    for typed, looked in ((command, True), ("git status", False)):
        await desk.run("exec", command=typed)
        assert ("filter.x.clean" in started(desk).env.values()) is looked


async def test_the_gateways_folder_is_not_granted_through_a_link(desk: Desk) -> None:
    (desk.workspace / ".gatehouse").symlink_to("/etc")
    desk, _ = at(desk, prints())
    assert (await desk.run("exec", command="go")).content == "[exit code 0, 0.0 s]\n[no output]"
    assert (started(desk).readable, started(desk).hidden) == ((), ())


async def test_a_link_among_kept_outputs_grants_nothing(desk: Desk) -> None:
    kept = desk.workspace / ".gatehouse" / "outputs"
    kept.mkdir(parents=True)
    (kept / "ses_1").symlink_to("/root")
    desk, _ = at(desk, prints())
    await desk.run("exec", command="go")
    assert started(desk).readable == ()
    (kept / "ses_1").unlink()
    kept.rmdir()
    kept.symlink_to("/root")
    await desk.run("exec", command="go")
    assert (started(desk).readable, started(desk).hidden) == ((), ())


@pytest.mark.requirement("MSG-19", "TOOL-5")
async def test_a_command_sees_the_files_that_its_own_session_was_sent(desk: Desk) -> None:
    uploads = desk.workspace / "uploads"
    for name in ("ses_1", "ses_2", "ses_10", "00aa11bb22cc33dd"):
        (uploads / name).mkdir(parents=True)
    (uploads / "ses_link").symlink_to("/root")
    (uploads / "link").symlink_to("/root")
    desk, _ = at(desk, prints())
    await desk.run("exec", command="go")
    shown = (uploads / "00aa11bb22cc33dd", uploads / "ses_1")
    assert started(desk).writable == (str(desk.folder),)
    assert started(desk).readable == tuple(map(str, shown))
    shutil.rmtree(uploads)
    uploads.symlink_to("/root")
    await desk.run("exec", command="go")
    assert started(desk).readable == ()


async def test_output_with_network_access_is_untrusted_and_policy_sees_it(desk: Desk) -> None:
    desk, _ = at(desk, prints(b"from afar"), ExecSettings(network=True))
    assert desk.touches("exec", command="go").network == ("*",)
    assert (await desk.run("exec", command="go")).untrusted
    assert started(desk).network


async def test_a_failed_command_is_told_by_its_code_and_output(desk: Desk) -> None:
    desk, _ = at(desk, prints(b"no such file\n", code=2))
    assert (await desk.run("exec", command="go")).content == "[exit code 2, 0.0 s]\nno such file\n"
    result = await desk.result("exec", command="go")
    assert (result.status, result.content) == ("error", "[exit code 2, 0.0 s]\nno such file\n")
    desk, _ = at(desk, prints(b"fine"))
    assert (await desk.result("exec", command="go")).status == "ok"
    desk, _ = at(desk, prints(code=128 + signal.SIGSEGV))
    told = (await desk.run("exec", command="go")).content
    assert told.startswith("[killed by SIGSEGV (exit code 139), 0.0 s]")


async def test_a_command_that_takes_too_long_is_told_with_what_it_printed(desk: Desk) -> None:
    printed = asyncio.Event()

    async def hangs(stdio: FakeStdio) -> int:
        await stdio.write(b"so far")
        printed.set()
        await stdio.terminated.wait()
        return 0

    desk, clock = at(desk, hangs)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(
            desk.run("exec", command="go", timeout_s=5), name="the command under test"
        )
        await printed.wait()
        (timer,) = clock.timers
        assert timer.seconds == 5
        timer.callback()
    assert running.result().content == "[timed out after 5 s and was killed, 0.0 s]\nso far"


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (
            SandboxExit(137, 9, timed_out=False, duration_s=1.25, limit="disk"),
            "[ended: it used more than 2,048 MB of disk, all commands of this session together, "
            "1.2 s]",
        ),
        (
            SandboxExit(137, 9, timed_out=False, duration_s=1, limit="free_space"),
            "[ended: less than 256 MB of disk were left, 1.0 s]",
        ),
        (
            SandboxExit(137, 9, timed_out=False, duration_s=1, limit="memory"),
            "[killed by SIGKILL (exit code 137), met its limit of memory, 1.0 s]",
        ),
        (
            SandboxExit(1, None, timed_out=False, duration_s=1, limit="processes"),
            "[exit code 1, met its limit of processes, 1.0 s]",
        ),
        (
            SandboxExit(137, 9, timed_out=True, duration_s=5, limit="time"),
            "[timed out after 2.5 s and was killed, 5.0 s]",
        ),
        (
            SandboxExit(255, 127, timed_out=False, duration_s=0, limit=None),
            "[killed by signal 127 (exit code 255), 0.0 s]",
        ),
    ],
)
async def test_how_a_command_ended_is_told_with_the_limit_that_it_met(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, end: SandboxExit, told: str
) -> None:
    monkeypatch.setattr(FakeProcess, "_exit", lambda _process: end)
    desk, _ = at(desk, prints(b"so far"))
    output = await desk.run("exec", command="go", timeout_s=2.5)
    assert output.content == f"{told}\nso far"
    assert output.failed


async def test_output_is_shown_as_it_comes(desk: Desk) -> None:
    seen_first = asyncio.Event()

    async def program(stdio: FakeStdio) -> int:
        await stdio.write("é".encode()[:1])
        await stdio.write("é".encode()[1:] + b" one")
        await seen_first.wait()
        await stdio.write(b" two")
        return 0

    desk, _ = at(desk, program)
    notify = desk.seen.append

    class Watcher(list[str]):
        def append(self, text: str) -> None:
            notify(text)
            if text:
                seen_first.set()

    shown = desk.seen
    desk.seen = Watcher()
    await desk.run("exec", command="go")
    assert [one for one in shown if one] == ["é one", " two"]


@pytest.mark.requirement("TOOL-4")
async def test_endless_output_is_capped_and_kept(desk: Desk) -> None:
    desk, _ = at(desk, prints(*[b"x" * 64 * 1024] * 140))
    result = await desk.result("exec", command="go")
    assert result.content.startswith("[exit code 0")
    assert len(result.content.encode()) <= 32 * 1024
    assert "output beyond 8,388,608 bytes was dropped: 9,175,040 in all" in result.content
    assert sum(len(text) for text in desk.seen) == 64 * 1024
    assert result.whole_output_path is not None


@pytest.mark.requirement("TOOL-4")
async def test_binary_output_is_described(desk: Desk) -> None:
    desk, _ = at(desk, prints(b"\x89PNG\r\n\x1a\n\0\0"))
    assert "[binary output: image/png, 10 bytes" in (await desk.run("exec", command="go")).content


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(
    ("printed", "read"),
    [
        (b"row 1 ok\nrow 2 caf\351\nrow 3 ok\n", "row 1 ok\nrow 2 caf\ufffd\nrow 3 ok"),
        (b"good line\n" * 1000 + b"\xff\n", "good line\n\ufffd"),
        ("Gr\u00fc\u00dfe von J\u00fcrgen".encode("latin-1"), "Gr\ufffd\ufffde von J\ufffdrgen"),
        (b"\x1b[31mred\x1b[0m caf\xe9\t1\r\n", "caf\ufffd\t1"),
    ],
)
async def test_output_that_is_nearly_text_is_read(desk: Desk, printed: bytes, read: str) -> None:
    desk, _ = at(desk, prints(printed))
    result = await desk.result("exec", command="go")
    assert read in result.content
    assert "[exit code 0" in result.content
    assert "binary" not in result.content


@pytest.mark.requirement("TOOL-4")
@pytest.mark.parametrize(
    "printed",
    [
        b"%PDF-1.7 caf\xe9\n",
        b"lines\n\0caf\xe9\n",
        bytes(range(128, 256)) * 4,
        b"\x01\x02\x03\x04caf\xe9\n",
    ],
)
async def test_output_that_nobody_could_read_is_described(desk: Desk, printed: bytes) -> None:
    desk, _ = at(desk, prints(printed))
    assert "[binary output: " in (await desk.run("exec", command="go")).content


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"background": True}, "commands in the background are not available here"),
        ({"timeout_s": 601}, "timeout_s: must be at most 600"),
        ({"working_dir": "/etc"}, "is outside of what may be reached"),
        ({"working_dir": "none"}, "none does not exist"),
    ],
)
async def test_what_is_refused_runs_nothing(
    desk: Desk, arguments: dict[str, str | int], said: str
) -> None:
    desk, _ = at(desk, prints(b"ran"))
    with pytest.raises(ToolError, match=said):
        await desk.run("exec", command="go", **arguments)
    assert isinstance(desk.sandbox, FakeSandbox)
    assert desk.sandbox.started == []


async def test_without_a_sandbox_nothing_runs_and_the_model_is_told_why(desk: Desk) -> None:
    class Missing(FakeSandbox):
        async def start(self, command: SandboxCommand) -> FakeProcess:
            raise SandboxUnavailable("there is no confinement.", hint="Install bubblewrap.")

    desk = Desk(desk.workspace, sandbox=Missing(StillClock()))
    with pytest.raises(ToolError, match=r"was not run: .* Install bubblewrap\."):
        await desk.run("exec", command="go")


async def test_a_cancelled_call_ends_the_command(desk: Desk) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def program(stdio: FakeStdio) -> int:
        begun.set()
        try:
            await stdio.terminated.wait()
        finally:
            ended.set()
        return 0

    desk, _ = at(desk, program)
    running = asyncio.create_task(desk.run("exec", command="go"), name="the command under test")
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended.is_set()
