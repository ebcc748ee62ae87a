"""Building the image and running it without a container engine: buildah, debootstrap, bubblewrap.

The base is a Debian that debootstrap makes, under the name that the Dockerfile asks for. A run is
what the image's own configuration says (user, environment, entry point), as process 1 of its own
process namespace, with the image read-only and a folder as its one volume.
"""

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.scenario.process.program import ROOT, Program

NEEDED: Final = {
    "buildah": "buildah",
    "bwrap": "bubblewrap",
    "crun": "crun",
    "debootstrap": "debootstrap",
    "nsenter": "util-linux",
}
"""Program -> Debian package."""
PACKAGES: Final = "ca-certificates,python3,python3-venv"
AUTHORITIES: Final = Path("etc/ssl/certs/ca-certificates.crt")
BUILD_S: Final = 1200


@dataclass(frozen=True)
class Image:
    """A built image, mounted at `root`. `user` is "uid:gid"."""

    root: Path
    user: str
    env: tuple[str, ...]
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    volumes: tuple[str, ...]
    health: tuple[str, ...]
    history: str

    @property
    def ids(self) -> tuple[int, int]:
        """The user's and the group's number."""
        uid, _, gid = self.user.partition(":")
        return int(uid), int(gid)


@dataclass
class Container:
    """A running image. `pid` is process 1 of its namespace, as this machine numbers it."""

    program: Program
    image: Image
    pid: int
    port: int

    async def execute(self, *command: str) -> tuple[int, str]:
        """(exit code, output) of a command inside, as the image's user."""
        uid, gid = self.image.ids
        process = await asyncio.create_subprocess_exec(
            *("nsenter", "--target", str(self.pid), "--mount", "--pid", "--ipc", "--uts"),
            *("--setuid", str(uid), "--setgid", str(gid), "env", "--ignore-environment"),
            *variables(self.image, self.port),
            *command,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        return process.returncode or 0, output.decode()


def variables(image: Image, port: int) -> list[str]:
    """What a container's environment holds, as ``NAME=value``."""
    return [*image.env, f"GATEHOUSE_HTTP__PORT={port}", "GATEHOUSE_MODELS__DEFAULT=offline:offline"]


def run(*command: str | Path) -> str:
    """The standard output of a command that must pass."""
    done = subprocess.run(
        [str(one) for one in command],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
        timeout=BUILD_S,
    )
    said = f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    assert done.returncode == 0, f"{command[0]} failed:\n{said}"
    return done.stdout.strip()


@contextmanager
def built(place: Path) -> Iterator[Image]:
    """The image of this checkout, mounted; nothing of it is left at the end."""
    missing = [package for name, package in NEEDED.items() if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.fail(f"the image check needs root and: apt-get install {' '.join(missing)}")
    buildah = ("buildah", "--root", str(place / "store"), "--runroot", str(place / "run"))
    try:
        _make_base(place / "base", buildah)
        run(
            *(*buildah, "build-using-dockerfile", "--isolation", "chroot", "--format", "docker"),
            *("--pull-never", "--tag", "localhost/gatehouse:check", ROOT),
        )
        container = run(*buildah, "from", "--pull-never", "localhost/gatehouse:check")
        root = Path(run(*buildah, "mount", container))
        yield _image(root, run(*buildah, "inspect", "--type", "image", "localhost/gatehouse:check"))
    finally:
        # Unmounts what it mounted; removing the folder before would empty the image's layers.
        subprocess.run([*buildah, "rm", "--all"], check=False, capture_output=True)
        subprocess.run([*buildah, "rmi", "--all", "--force"], check=False, capture_output=True)
        shutil.rmtree(place, ignore_errors=True)


def _make_base(folder: Path, buildah: Sequence[str]) -> None:
    text = (ROOT / "Dockerfile").read_text("utf-8")
    found = re.search(r"^ARG BASE=(\S+-slim-([a-z]+))$", text, re.MULTILINE)
    assert found is not None
    run("debootstrap", "--variant=minbase", f"--include={PACKAGES}", found[2], folder)
    # A slim base has no pages of manuals and no folders for them, which some packages stumble over.
    shutil.rmtree(folder / "usr/share/man")
    # A network may have an authority of its own: the base trusts whom this machine trusts.
    shutil.copyfile(Path("/") / AUTHORITIES, folder / AUTHORITIES)
    (folder / "etc/pip.conf").write_text(f"[global]\ncert = /{AUTHORITIES}\n", encoding="utf-8")
    base = run(*buildah, "from", "scratch")
    run(*buildah, "add", "--quiet", base, folder, "/")
    run(*buildah, "commit", "--quiet", base, f"docker.io/library/{found[1]}")
    run(*buildah, "rm", base)
    shutil.rmtree(folder)


def _image(root: Path, inspected: str) -> Image:
    described = json.loads(inspected)
    config = described["Docker"]["config"]
    return Image(
        root=root,
        user=config["User"],
        env=tuple(config["Env"]),
        entrypoint=tuple(config["Entrypoint"]),
        command=tuple(config["Cmd"]),
        volumes=tuple(config["Volumes"]),
        health=tuple(config["Healthcheck"]["Test"]),
        history=json.dumps(described["History"]),
    )


@asynccontextmanager
async def running(image: Image, volume: Path, *arguments: str) -> AsyncIterator[Container]:
    """The image at work on `volume`; killed when the block ends before it does."""
    port = _free_port()
    uid, gid = image.ids
    settings = [part for one in variables(image, port) for part in ("--setenv", *one.split("=", 1))]
    process = await asyncio.create_subprocess_exec(
        *("bwrap", "--ro-bind", str(image.root), "/", "--bind", str(volume), image.volumes[0]),
        *("--perms", "1777", "--tmpfs", "/tmp"),
        *("--proc", "/proc", "--dev", "/dev", "--clearenv", *settings),
        *("--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--die-with-parent"),
        *("--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--cap-add", "CAP_SETPCAP"),
        *("--chdir", image.volumes[0], "setpriv", f"--reuid={uid}", f"--regid={gid}"),
        *("--clear-groups", "--bounding-set=-all", "--no-new-privs"),
        *(*image.entrypoint, *(arguments or image.command)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    program = Program(process)
    readers = (
        asyncio.create_task(program.read(process.stdout, program.out), name="stdout"),
        asyncio.create_task(program.read(process.stderr, program.err), name="stderr"),
    )
    try:
        await program.url()
        (child,) = _children(process.pid)
        yield Container(program, image, child, port)
    finally:
        if process.returncode is None:
            # Changing the user undid --die-with-parent, so the child is ended by its id.
            for child in _children(process.pid):
                os.kill(child, signal.SIGKILL)
            process.kill()
        await process.wait()
        await asyncio.gather(*readers)


def _children(pid: int) -> list[int]:
    """What bubblewrap started: process 1 of the namespace, while it lives."""
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
