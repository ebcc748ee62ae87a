"""Building the Dockerfile without a container engine, once for all tests of a checkout.

Debian's buildah builds it on a base that mmdebstrap makes and that bears the name which the
Dockerfile asks for. The base stands for one that is pulled, so the machine keeps it, in `BASES`,
for all its checkouts. What was built is kept in `.cache/image` under a digest of all that goes into
it, so that a second run builds nothing. `python -m tests.image.build` does it ahead of the tests,
and fails where the machine lacks something.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
CACHE: Final = ROOT / ".cache/image"
BASES: Final = Path("/var/cache/gatehouse-tests/images")
NEEDED: Final = {"buildah": "buildah", "crun": "crun", "mmdebstrap": "mmdebstrap"}
"""Program -> Debian package."""
BASE: Final = (
    *("mmdebstrap", "--mode=root", "--variant=apt", "--dpkgopt=force-unsafe-io"),
    "--include=ca-certificates,python3,python3-venv",
    # What a slim base has not.
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=path-exclude=/usr/share/man/*",
)
"""Makes the base; a release and a folder follow."""
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
    folder: str
    volumes: tuple[str, ...]
    health: tuple[str, ...]
    history: str

    @property
    def ids(self) -> tuple[int, int]:
        """The user's and the group's number."""
        uid, _, gid = self.user.partition(":")
        return int(uid), int(gid)


def missing() -> str | None:
    """Why no image can be built here, and what to do; None where one can."""
    packages = [package for name, package in NEEDED.items() if shutil.which(name) is None]
    if packages:
        return f"the image is not built here: apt-get install {' '.join(packages)}"
    return None if os.geteuid() == 0 else "the image is not built here: only root can build it"


@contextmanager
def mounted() -> Iterator[Image]:
    """The image of this checkout, built where it is not yet, and mounted until the block ends."""
    name = build()
    container = _buildah("from", "--pull-never", name)
    try:
        root = Path(_buildah("mount", container))
        yield _described(root, _buildah("inspect", "--type", "image", name))
    finally:
        _buildah("rm", container)


def build() -> str:
    """The name of the image, once it is built. Two that ask at the same time build it once."""
    with _alone(CACHE):
        name = f"localhost/gatehouse:{_digest()}"
        if not _buildah("images", "--quiet", "--filter", f"reference={name}"):
            _remove_images("localhost/gatehouse")
            _buildah(
                *("build-using-dockerfile", "--isolation", "chroot", "--format", "docker"),
                *("--pull-never", "--jobs", "2", "--tag", name, str(ROOT)),
                log=CACHE / "build.log",
            )
    return name


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _digest() -> str:
    """What the image is made of: the Dockerfile, the files that it may see, its base."""
    found = hashlib.sha256(_base().encode())
    seen = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text("utf-8"), re.MULTILINE)
    for name in ("Dockerfile", ".dockerignore", *seen):
        place = ROOT / name
        for file in sorted(place.rglob("*")) if place.is_dir() else (place,):
            if file.is_file() and "__pycache__" not in file.parts:
                found.update(f"{file.relative_to(ROOT)}\0{file.stat().st_mode:o}\0".encode())
                found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.hexdigest()[:16]


def _base() -> str:
    """The id of the base, made where it is not there yet."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    found = re.search(r"^ARG BASE=(\S+-slim-([a-z]+))$", text, re.MULTILINE)
    assert found is not None
    name, recipe = f"docker.io/library/{found[1]}", " ".join((*BASE, found[2]))
    mark = f"localhost/base:{hashlib.sha256(recipe.encode()).hexdigest()[:16]}"
    asked = ("images", "--quiet", "--filter", f"reference={mark}")
    with _alone(BASES):
        if made := _buildah(*asked, store=BASES):
            return made
        _remove_images("localhost/base", store=BASES)
        container = _buildah("from", "scratch", store=BASES)
        try:
            folder = Path(_buildah("mount", container, store=BASES))
            _make_base(folder, found[2])
            _buildah("commit", "--quiet", container, name, store=BASES)
        finally:
            _buildah("rm", container, store=BASES)
        _buildah("tag", name, mark, store=BASES)
        return _buildah(*asked, store=BASES)


def _make_base(folder: Path, release: str) -> None:
    _run(*BASE, release, str(folder), log=BASES / "base.log")
    # As in the base that it stands for, where the standard library is not compiled.
    for compiled in folder.glob("usr/lib/python3*/**/__pycache__"):
        shutil.rmtree(compiled)
    # A network may have an authority of its own: the base trusts whom this machine trusts.
    shutil.copyfile(Path("/") / AUTHORITIES, folder / AUTHORITIES)
    (folder / "etc/pip.conf").write_text(f"[global]\ncert = /{AUTHORITIES}\n", encoding="utf-8")


def _remove_images(repository: str, store: Path = CACHE) -> None:
    """Every image of that name, with all that only it needs."""
    names = _buildah("images", "--format", "{{.Name}}:{{.Tag}}", store=store).split()
    old = [name for name in names if name.startswith(f"{repository}:")]
    if old:
        _buildah("rmi", "--force", *old, store=store)


def _described(root: Path, inspected: str) -> Image:
    described = json.loads(inspected)
    config = described["Docker"]["config"]
    return Image(
        root=root,
        user=config["User"],
        env=tuple(config["Env"]),
        entrypoint=tuple(config["Entrypoint"]),
        command=tuple(config["Cmd"]),
        folder=config["WorkingDir"],
        volumes=tuple(config["Volumes"]),
        health=tuple(config["Healthcheck"]["Test"]),
        history=json.dumps(described["History"]),
    )


def _buildah(*arguments: str, store: Path = CACHE, log: Path | None = None) -> str:
    # Volatile: what a crash of the machine leaves behind is of no use, so nothing waits for a disk.
    options = ["--storage-driver", "overlay", "--storage-opt", "overlay.mountopt=volatile"]
    if store != BASES:
        options += ["--storage-opt", f"additionalimagestore={BASES / 'store'}"]
    places = ("--root", str(store / "store"), "--runroot", str(store / "run"))
    return _run("buildah", *places, *options, *arguments, log=log)


def _run(*command: str, log: Path | None = None) -> str:
    """The standard output of a command that must pass; with `log`, all that it says is there."""
    done = subprocess.run(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        timeout=BUILD_S,
    )
    if log is not None:
        log.write_text(f"{done.stdout}\n{done.stderr}", encoding="utf-8")
    said = f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    assert done.returncode == 0, f"{command[0]} failed:\n{said}"
    return done.stdout.strip()


if __name__ == "__main__":
    reason = missing()
    if reason is not None:
        sys.exit(reason)
    began = time.perf_counter()
    name = build()
    sys.stdout.write(f"{name}: built in {time.perf_counter() - began:.0f} s\n")
