"""What a confined command cannot reach: files, the network, its host (TOOL-5)."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox import process_tree
from adapters.sandbox.backend import Backend
from adapters.sandbox.command_process import launch_command
from adapters.system.clock import SystemClock
from runtime.domain.errors import InvalidInput
from runtime.ports.sandbox import SandboxExit, SandboxUnavailable
from tests.contract.sandbox.conftest import Bench, drain, read_until

CONNECT = "import socket; socket.create_connection(('127.0.0.1', {port}), 10).close()"


NAMED = (
    "import ctypes, signal; ctypes.CDLL(None).prctl(15, b'watched'); print('up', flush=True); "
    "signal.pause()"
)
LIBC = "import ctypes; raise SystemExit(ctypes.CDLL(None)"


@asynccontextmanager
async def listener() -> AsyncIterator[tuple[int, list[None]]]:
    """A real listener on this host's loopback, and a list that grows with each connection."""
    seen: list[None] = []

    def connected(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(None)
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], seen


def text_of(path: str) -> str:
    return Path(path).read_text()


def names_in(path: str) -> list[str]:
    return [each.name for each in Path(path).iterdir()]


def failed(ended: SandboxExit) -> bool:
    return ended.code not in (0, None)


@pytest.mark.requirement("TOOL-5")
async def test_the_workspace_can_be_written(confined: Bench) -> None:
    _, ended = await confined.run("mkdir -p a/b && echo hi > a/b/c && mv a/b/c d && ln -s d e")
    assert ended.code == 0
    assert (confined.workspace / "d").read_text() == "hi\n"


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    "path",
    [
        "{outside}/file",
        "../outside/file",
        "link/file",
        "/proc/self/root{outside}/file",
        "/proc/self/cwd/../outside/file",
        "/proc/1/root{outside}/file",
        "/usr/file-of-a-test",
        "/etc/file-of-a-test",
        "/file-of-a-test",
        "/dev/file-of-a-test",
    ],
)
async def test_nothing_outside_can_be_written(confined: Bench, path: str) -> None:
    (confined.workspace / "link").symlink_to(confined.outside)
    _, ended = await confined.run(f"echo x > {path.format(outside=confined.outside)}")
    assert failed(ended)
    assert list(confined.outside.iterdir()) == []


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    "change",
    [
        "echo x > link",
        "echo x >> link",
        "truncate -s 0 link",
        "rm {file}",
        "mv {file} .",
        "ln {file} hard && echo x > hard",
        "mv made {file}",
        "cp --remove-destination made {file}",
    ],
)
async def test_a_file_outside_cannot_be_changed_or_replaced(confined: Bench, change: str) -> None:
    file = confined.outside / "file"
    file.write_text("kept\n")
    (confined.workspace / "link").symlink_to(file)
    (confined.workspace / "made").write_text("made\n")
    command = confined.command(change.format(file=file))
    _, ended = await confined.run(replace(command, readable=(str(confined.outside),)))
    assert failed(ended)
    assert file.read_text() == "kept\n"


@pytest.mark.requirement("TOOL-5")
async def test_a_readable_root_can_be_read_and_not_written(confined: Bench) -> None:
    (confined.outside / "file").write_text("shown\n")
    command = confined.command(f"cat {confined.outside}/file; echo x > {confined.outside}/new")
    output, ended = await confined.run(replace(command, readable=(str(confined.outside),)))
    assert output.startswith("shown\n")
    assert failed(ended)
    assert not (confined.outside / "new").exists()


@pytest.mark.requirement("TOOL-5")
async def test_what_takes_the_place_of_a_folder_that_must_be_no_link_is_not_shown(
    confined: Bench,
) -> None:
    """It is put there after the look and before the mount."""
    folder, secret = confined.base / "folder", confined.outside / "secret"
    folder.mkdir()
    (folder / "mine").write_text("mine\n")
    secret.write_text("the secret\n")
    command = confined.command(f"cat {folder}/mine; cat {folder}/secret {secret}")
    command = replace(command, unlinked=(str(folder),))
    output, _ = await confined.run(command)
    assert output.startswith("mine\n")
    assert isinstance(confined.sandbox, Backend)
    plan = confined.sandbox.plan(command)
    folder.rename(confined.base / "was")
    folder.symlink_to(confined.outside)
    output = ""
    with suppress(SandboxUnavailable):
        async with await launch_command(plan, command, clock=SystemClock()) as process:
            output = await drain(process)
            await process.wait()
    assert "the secret\n" not in output


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("how", ["path", "relative", "link", "descriptor", "proc"])
async def test_modes_outside_cannot_be_changed(confined: Bench, how: str) -> None:
    """Landlock does not see chmod(2), so this is more than a corollary."""
    file = confined.outside / "file"
    file.write_text("kept\n")
    file.chmod(0o640)
    (confined.workspace / "link").symlink_to(file)
    script = {
        "path": f"os.chmod({str(file)!r}, 0o777)",
        "relative": "os.chmod('../outside/file', 0o777)",
        "link": "os.chmod('link', 0o777)",
        "descriptor": f"os.fchmod(os.open({str(file)!r}, os.O_RDONLY), 0o777)",
        "proc": f"os.chmod('/proc/self/root{file}', 0o777)",
    }[how]
    command = confined.python(f"import os; {script}")
    readable = (*command.readable, str(confined.outside))
    _, ended = await confined.run(replace(command, readable=readable))
    assert failed(ended)
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.requirement("TOOL-5")
async def test_modes_in_the_workspace_can_be_changed(confined: Bench) -> None:
    script = (
        "cp /bin/true x && chmod 600 x && chmod +x ./x && ./x && mkdir d && chmod 700 $PWD/d"
        " && cd d && chmod 644 ../x && stat -c %a ../x ."
    )
    output, ended = await confined.run(script)
    assert (output, ended.code) == ("644\n700\n", 0)
    descriptor = "import os; f = os.open('x', os.O_WRONLY); os.fchmod(f, 0o604)"
    _, ended = await confined.run(confined.python(descriptor))
    assert ended.code == 0
    assert (confined.workspace / "x").stat().st_mode & 0o7777 == 0o604


@pytest.mark.requirement("TOOL-5")
async def test_without_a_writable_root_the_workspace_is_read_only(confined: Bench) -> None:
    (confined.workspace / "file").write_text("shown\n")
    asked = confined.command("cat file; touch new")
    command = replace(asked, readable=(str(confined.workspace),), writable=())
    output, ended = await confined.run(command)
    assert output.startswith("shown\n")
    assert failed(ended)
    assert not (confined.workspace / "new").exists()


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("how", ["outside", "masked", "file"])
async def test_what_is_hidden_cannot_be_read(confined: Bench, how: str) -> None:
    """Outside every root; a folder inside a readable root; a single file inside one."""
    data = confined.outside / "data"
    data.mkdir()
    (data / "secret").write_text("made-up-secret\n")
    (confined.workspace / "link").symlink_to(data)
    hidden = {"outside": (), "masked": (str(data),), "file": (str(data / "secret"),)}[how]
    readable = () if how == "outside" else (str(confined.outside),)
    tries = (f"cat {data}/secret", "cat link/secret", f"cat /proc/self/root{data}/secret")
    command = replace(confined.command("; ".join(tries)), readable=readable, hidden=hidden)
    output, ended = await confined.run(command)
    # The mask of a file may read as empty; what counts is that its content does not show.
    assert "made-up-secret" not in output
    assert ended.signal is None


@pytest.mark.requirement("TOOL-5")
async def test_the_innermost_root_decides(confined: Bench) -> None:
    inner = confined.outside / "data" / "workspace"
    inner.mkdir(parents=True)
    (confined.outside / "data" / "secret").write_text("made-up-secret\n")
    (confined.outside / "plain").write_text("shown\n")
    command = replace(
        confined.command("cat ../../plain ../secret; echo hi > file"),
        cwd=str(inner),
        readable=(str(confined.outside),),
        hidden=(str(confined.outside / "data"),),
        writable=(str(inner),),
    )
    output, ended = await confined.run(command)
    assert "shown" in output
    assert "made-up-secret" not in output
    assert ended.code == 0
    assert (inner / "file").read_text() == "hi\n"


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("path", ["/etc/shadow", "~root/.profile", "/run", "/home", "/var/lib"])
async def test_homes_and_secrets_of_the_host_are_hidden(confined: Bench, path: str) -> None:
    output, _ = await confined.run(f"if test -d {path}; then ls -A {path}; else cat {path}; fi")
    lines = [line for line in output.splitlines() if "No such file" not in line]
    assert all("ermission denied" in line for line in lines)


@pytest.mark.requirement("TOOL-5")
async def test_the_gateway_itself_is_out_of_reach(confined: Bench) -> None:
    """Its environment may hold secrets; its memory and its life are its own."""
    own = os.getpid()
    marker = "PATH=" if "PATH" in os.environ else "HOME="
    output, _ = await confined.run(f"tr '\\0' '\\n' < /proc/{own}/environ; cat /proc/{own}/maps")
    assert marker not in output
    assert "libc" not in output
    _, ended = await confined.run(f"kill -0 {own}")
    assert failed(ended)


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("path", ["/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness"])
async def test_the_kernel_cannot_be_reconfigured(confined: Bench, path: str) -> None:
    same = text_of(path)
    # Writes back what is there, so that even a sandbox that leaks changes nothing.
    _, ended = await confined.run(f"cat {path} > copy; cat copy > {path}")
    assert failed(ended)
    assert text_of(path) == same


@pytest.mark.requirement("TOOL-5")
async def test_there_is_no_network_by_default(confined: Bench) -> None:
    async with listener() as (port, seen):
        _, ended = await confined.run(confined.python(CONNECT.format(port=port)))
        assert failed(ended)
        assert seen == []


@pytest.mark.requirement("TOOL-5")
async def test_the_network_can_be_granted(confined: Bench) -> None:
    async with listener() as (port, seen):
        command = replace(confined.python(CONNECT.format(port=port)), network=True)
        output, ended = await confined.run(command)
        assert (output, ended.code) == ("", 0)
        assert len(seen) == 1


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize("network", [False, True])
async def test_sockets_of_the_host_in_the_file_system_are_out_of_reach(
    confined: Bench, network: bool
) -> None:
    """As Docker's: who may talk to it owns the host.

    With namespaces of its own a command may have such sockets itself, so there it is the view that
    shuts this one out; in the other cases it stays shut even inside a readable root.
    """
    path = confined.outside / "daemon.sock"
    server = await asyncio.start_unix_server(lambda _reader, writer: writer.close(), path)
    async with server:
        script = f"import socket; socket.socket(socket.AF_UNIX).connect({str(path)!r})"
        command = replace(confined.python(script), network=network)
        if network or confined.sandbox.name == "landlock":
            command = replace(command, readable=(*command.readable, str(confined.outside)))
        output, ended = await confined.run(command)
    assert failed(ended)
    assert "PermissionError" in output or "FileNotFoundError" in output


@pytest.mark.requirement("TOOL-5")
@pytest.mark.parametrize(
    "script",
    [
        f"{LIBC}.ptrace(0, 0, 0, 0) != 0)",
        f"{LIBC}.unshare(0x10000000) != 0)",
        f"{LIBC}.mount(0, b'/tmp', 0, 32, 0) != 0)",
        "import os; os.chmod('.', 0o4755)",
        "import os; os.close(os.open('new', os.O_CREAT | os.O_WRONLY, 0o6755))",
        "import socket; socket.socket(17, socket.SOCK_RAW)",
    ],
    ids=["ptrace", "unshare", "mount", "chmod-suid", "create-suid", "packet-socket"],
)
async def test_ways_out_through_system_calls_are_refused(confined: Bench, script: str) -> None:
    (confined.workspace / "control").write_text("")
    _, control = await confined.run(confined.python("import os; os.chmod('control', 0o755)"))
    assert control.code == 0
    _, ended = await confined.run(confined.python(script))
    assert failed(ended)
    assert not any(path.stat().st_mode & 0o6000 for path in confined.workspace.iterdir())


@pytest.mark.requirement("TOOL-5")
async def test_no_capability_and_no_new_privilege(confined: Bench) -> None:
    command = confined.python(NAMED)
    async with asyncio.timeout(180), await confined.sandbox.start(command) as process:
        await read_until(process, "up")
        tree = [each.pid for each in process_tree.find_tree(process.identity)]
        (pid,) = [each for each in tree if text_of(f"/proc/{each}/comm") == "watched\n"]
        status = text_of(f"/proc/{pid}/status")
    values = dict(line.split(":\t") for line in status.splitlines() if ":\t" in line)
    assert values["NoNewPrivs"] == "1"
    assert values["Seccomp"] == "2"
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert int(values[name], 16) == 0


@pytest.mark.requirement("TOOL-5")
async def test_the_temporary_directory_is_its_own_and_goes_with_it(confined: Bench) -> None:
    output, ended = await confined.run('echo hi > "$TMPDIR/x" && cat "$TMPDIR/x"; echo "$TMPDIR"')
    assert (output.splitlines()[0], ended.code) == ("hi", 0)
    used = output.splitlines()[1]
    assert used == "/tmp" or used.rpartition("/")[2] not in names_in("/tmp")
    second, _ = await confined.run('ls -A "$TMPDIR" | grep -x x')
    assert second == ""


@pytest.mark.requirement("TOOL-5")
async def test_a_tmpdir_that_the_operator_sets_opens_nothing_of_the_host(
    confined: Bench, tmp_path: Path
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir()
    command = replace(confined.command('echo no > "$TMPDIR/x"'), env={"TMPDIR": str(closed)})
    await confined.run(command)
    assert not list(closed.iterdir())


@pytest.mark.requirement("TOOL-5")
async def test_a_bad_root_or_directory_is_refused_before_anything_runs(confined: Bench) -> None:
    good = confined.command("true")
    bad = {
        "cwd": replace(good, cwd=str(confined.outside)),
        "writable": replace(good, writable=("workspace",)),
        "readable": replace(good, readable=(str(confined.base / "absent"),)),
    }
    for field, command in bad.items():
        with pytest.raises(InvalidInput) as refused:
            await confined.sandbox.start(command)
        assert refused.value.field == field
    with pytest.raises(InvalidInput, match="kernel"):
        await confined.sandbox.start(replace(good, writable=("/proc/sys",)))
