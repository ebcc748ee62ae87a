"""Commands of a session in a read-only mode: what they are granted, where none runs (TOOL-7)."""

from dataclasses import replace

import pytest

from runtime.domain.errors import ToolError
from runtime.ports.sandbox import SandboxCommand
from runtime.tools.base import ToolContext
from runtime.tools.builtin.shell import UNCONFINED, Exec, ExecArguments, ExecSettings
from tests.fakes.sandbox import FakeSandbox, FakeStdio
from tests.unit.tools.support import Desk, StillClock

pytestmark = pytest.mark.requirement("TOOL-7")
GRANTED = ExecSettings(env={"TOKEN": "x", "GIT_PAGER": "sh"}, network=True)


async def prints(stdio: FakeStdio) -> int:
    await stdio.write(b"read\n")
    return 0


def reading(desk: Desk) -> ToolContext:
    return replace(desk.context(), read_only=True)


async def started(desk: Desk) -> SandboxCommand:
    sandbox = FakeSandbox(StillClock(), {"ls": prints})
    output = await Exec(sandbox, GRANTED).run(ExecArguments(command="ls"), reading(desk))
    assert output.content.endswith("read\n")
    assert not output.untrusted, "without a network nothing comes from outside"
    return sandbox.started[-1]


async def test_every_root_is_readable_and_none_can_be_written(desk: Desk) -> None:
    extra = desk.workspace.parent / "extra"
    extra.mkdir()
    desk.extra = (extra,)
    command = await started(desk)
    assert command.writable == ()
    assert command.readable == (str(desk.folder), str(extra))


async def test_nothing_that_the_operator_grants_is_granted(desk: Desk) -> None:
    command = await started(desk)
    assert not command.network
    assert "TOKEN" not in command.env
    assert (command.env["GIT_PAGER"], command.env["GIT_OPTIONAL_LOCKS"]) == ("cat", "0")
    count = int(command.env["GIT_CONFIG_COUNT"])
    keys = {command.env[f"GIT_CONFIG_KEY_{number}"] for number in range(count)}
    assert {"core.fsmonitor", "core.hooksPath", "gpg.program"} <= keys
    assert len([name for name in command.env if name.startswith("GIT_CONFIG_VALUE_")]) == count


def test_policy_sees_what_such_a_command_touches(desk: Desk) -> None:
    tool = Exec(FakeSandbox(StillClock(), {}), GRANTED)
    arguments = ExecArguments(command="ls")
    writes = tool.touches(arguments, desk.context())
    reads = tool.touches(arguments, reading(desk))
    assert (bool(writes.writes), writes.network) == (True, ("*",))
    assert (reads.writes, reads.network) == ((), ())


async def test_where_nothing_confines_commands_none_runs(desk: Desk) -> None:
    class Unconfined(FakeSandbox):
        name = UNCONFINED

    tool = Exec(Unconfined(StillClock(), {"ls": prints}), ExecSettings())
    with pytest.raises(ToolError, match="this session is read-only"):
        await tool.run(ExecArguments(command="ls"), reading(desk))
    assert (await tool.run(ExecArguments(command="ls"), desk.context())).content.endswith("read\n")
