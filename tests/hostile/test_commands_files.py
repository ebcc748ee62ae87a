"""Files that commands may not have (SEC-6, TOOL-5): other names for them, and what root keeps."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.sandbox.bubblewrap import Bubblewrap
from adapters.sandbox.cgroups import Cgroups
from adapters.sandbox.closed_folders import ClosedPaths
from adapters.sandbox.landlock import Landlock
from tests.contract.sandbox.conftest import Bench, HandClock, clock, confined, groups
from tests.support import planting

__all__ = ["clock", "confined", "groups"]
SECRET = "made-up-secret"
OTHER_NAMES = {
    "link": "import os; os.link(NOTE, 'mine')",
    "opened": "import os; f = os.open(NOTE, os.O_PATH); os.link(f'/proc/self/fd/{f}', 'mine', "
    "follow_symlinks=True)",
    "exchange": "import ctypes; open('mine', 'w').write('x'); ctypes.CDLL(None).syscall("
    "NUMBER, -100, b'mine', -100, NOTE.encode(), 2)",
    "rename": "import os; os.rename(NOTE, 'mine')",
}
_RENAMEAT2 = {"x86_64": 316}.get(os.uname().machine, 276)


@pytest.mark.requirement("SEC-6", "TOOL-5")
@pytest.mark.parametrize("shown", [True, False], ids=["owner", "group"])
@pytest.mark.parametrize("how", OTHER_NAMES)
async def test_a_note_gets_no_other_name_in_the_working_folder(
    confined: Bench, how: str, shown: bool
) -> None:
    """In the owner's chat a command reads the note: a later group must not find it in `files/`."""
    home = confined.workspace
    (home / "files").mkdir()
    note = home / "USER.md"
    note.write_text(SECRET)
    note.chmod(0o666)
    script = f"NOTE = {str(note)!r}; NUMBER = {_RENAMEAT2}\n{OTHER_NAMES[how]}"
    command = confined.python(script)
    files = str(home / "files")
    await confined.run(
        replace(
            command,
            cwd=files,
            writable=(files,),
            readable=(*command.readable, *((str(note),) if shown else ())),
        )
    )
    assert (note.read_text(), note.lstat().st_nlink) == (SECRET, 1)
    assert all(path.read_text() != SECRET for path in (home / "files").iterdir())


CHANGES = """
import os
opened = os.open(DEVICE, os.O_WRONLY)
for target in (DEVICE, opened, f'/proc/self/fd/{opened}'):
    for change in (
        lambda: os.chmod(target, 0o600),
        lambda: os.utime(target, (1, 1)),
        lambda: os.utime(target),
        lambda: os.chown(target, os.getuid(), os.getgid()),
        lambda: os.setxattr(target, 'system.posix_acl_access', bytes([2, 0, 0, 0])),
    ):
        try:
            change()
            print('changed')
        except OSError:
            print('refused')
try:
    os.write(opened, b'x')
except OSError as error:
    print(error.strerror)
print(len(os.read(os.open('/dev/zero', os.O_RDONLY), 9)), os.read(0, 9))
open('/dev/null', 'w').write('x')
"""


def changed_at(path: Path) -> int:
    return path.stat().st_ctime_ns


@pytest.fixture
def device() -> Iterator[Path]:
    """A device of the host, which is put right afterwards."""
    if os.geteuid() != 0:
        pytest.skip("an ordinary user owns no device: run the tests as root")
    path = Path("/dev/full")
    before = path.stat()
    yield path
    if path.stat().st_ctime_ns != before.st_ctime_ns:
        os.chown(path, before.st_uid, before.st_gid)
        path.chmod(before.st_mode & 0o7777)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.requirement("SEC-6")
async def test_the_hosts_devices_can_be_used_but_not_changed(confined: Bench, device: Path) -> None:
    """The commands of a root gateway own them."""
    before = changed_at(device)
    output, ended = await confined.run(confined.python(f"DEVICE = {str(device)!r}\n{CHANGES}"))
    assert output.split("\n") == ["refused"] * 15 + ["No space left on device", "9 b''", ""]
    assert ended.code == 0
    assert changed_at(device) == before


@pytest.mark.requirement("SEC-6")
async def test_no_device_of_the_host_comes_in_through_an_open_file(
    confined: Bench,
) -> None:
    """Not even to set what it has already, which only its owner may."""
    script = """
import glob, os, stat
for path in ('/dev/stdin', *glob.glob('/proc/[0-9]*/fd/*'), *glob.glob('/dev/*')):
    try:
        found = os.stat(path)
    except OSError:
        continue
    # Terminals are its own.
    if not stat.S_ISCHR(found.st_mode) or path == '/dev/ptmx':
        continue
    try:
        os.chmod(path, stat.S_IMODE(found.st_mode))
    except OSError:
        print(path, 'fixed')
    else:
        print(path, 'changeable')
"""
    output, _ = await confined.run(confined.python(script))
    assert "/dev/stdin fixed" in output
    assert [line for line in output.splitlines() if not line.endswith(" fixed")] == []


@pytest.fixture
def service() -> Path:
    """A folder of the system, with nothing closed in it yet."""
    if os.geteuid() != 0:
        pytest.skip("only root can put something there: run the tests as root")
    top = planting.plant()
    (top / "a/b/c").mkdir(parents=True)
    (top / "a/b/c/open").write_text("open\n")
    for folder in (top / "a", top / "a/b", top / "a/b/c"):
        folder.chmod(0o755)
    (top / "a/b/c/open").chmod(0o644)
    return top


def looking_at(folder: Path, confined: Bench, clock: HandClock) -> Bench:
    """The same backend, to which this folder is the whole system."""
    kind = Bubblewrap if confined.sandbox.name == "bubblewrap" else Landlock
    closed = ClosedPaths((str(folder),))
    return Bench(kind(clock, cgroups=Cgroups(), closed=closed), clock, confined.base)


@pytest.mark.requirement("SEC-6")
async def test_what_others_may_not_read_is_hidden_however_deep(
    confined: Bench, clock: HandClock, service: Path
) -> None:
    """What is beside it can be read and its folder listed; what is closed later is found later."""
    bench = looking_at(service, confined, clock)
    deep = service / "a/b/c"
    (deep / "key").write_text(SECRET)
    (deep / "key").chmod(0o640)
    look = f"ls {deep} /usr/share > /dev/null && echo listed; cat {deep}/open {deep}/key {deep}/new"
    output, _ = await bench.run(look)
    assert SECRET not in output
    assert output.startswith("listed\nopen\n")
    (deep / "new").write_text(SECRET)
    (deep / "new").chmod(0o600)
    clock.advance(601)
    output, _ = await bench.run(look)
    assert SECRET not in output
    assert output.startswith("listed\nopen\n")


@pytest.mark.requirement("SEC-6")
async def test_what_the_operator_granted_is_granted_with_what_is_closed_in_it(
    confined: Bench, clock: HandClock, service: Path
) -> None:
    bench = looking_at(service, confined, clock)
    (service / "a/key").write_text("granted")
    (service / "a/key").chmod(0o600)
    asked = bench.command(f"cat {service}/a/key")
    output, _ = await bench.run(replace(asked, readable=(str(service / "a"),)))
    assert output == "granted"


@pytest.mark.requirement("SEC-6")
def test_the_folders_of_the_system_are_all_walked() -> None:
    """The default walk looks where every command is shown something."""
    assert {os.path.realpath("/usr"), os.path.realpath("/opt")} <= set(ClosedPaths().folders)


@pytest.mark.requirement("SEC-6")
async def test_a_socket_in_a_granted_folder_can_be_reached_only_with_namespaces(
    confined: Bench,
) -> None:
    """Whoever grants a folder grants its sockets under bubblewrap, which `describe` says."""
    path = str(confined.outside / "socket")
    connections: list[None] = []

    def connected(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(None)
        writer.close()

    script = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
    asked = confined.python(script)
    async with await asyncio.start_unix_server(connected, path):
        await confined.run(asked)
        assert connections == []
        await confined.run(replace(asked, readable=(*asked.readable, str(confined.outside))))
    said = "sockets in folders that are granted can be connected to" in confined.sandbox.describe()
    assert (connections == [None]) == said
    assert said == (confined.sandbox.name == "bubblewrap")
