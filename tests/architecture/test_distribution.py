"""What is installed is what was locked, and what is shipped is the whole gateway."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.architecture.source import ROOT, project_files

LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock")
INSTALLER = "requirements-pip.lock"
PIN = re.compile(r"(?P<name>[a-z0-9.-]+)(?:\[[^\]]+\])?==(?P<version>[^\s;]+)(?: ; [^\\]+)? \\")
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")
TOP_LEVEL = frozenset(
    {"adapters", "docs", "gateway", "runtime", "tests", "workspace_template", "CHANGELOG.md"}
    | {"Dockerfile", "LICENSE", "Makefile", "README.md", "pyproject.toml", *LOCKS, INSTALLER}
)


def pins(lock: str) -> dict[str, str]:
    """Name -> version of a lock. A line that is neither a pin nor its hash fails."""
    found: dict[str, str] = {}
    hashed = True
    for line in lock.splitlines():
        if pin := PIN.fullmatch(line):
            assert hashed, f"no hash before {line}"
            found[pin["name"]], hashed = pin["version"], False
        else:
            assert HASH.fullmatch(line), f"neither a pin nor a hash: {line}"
            hashed = True
    assert hashed, "the last pin has no hash"
    return found


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.requirement("SEC-4")
@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_of_a_lock_has_its_hash(lock: str) -> None:
    assert len(pins(read(lock))) > 5


@pytest.mark.requirement("SEC-4")
def test_what_installs_has_its_hash_too() -> None:
    assert pins(read(INSTALLER)).keys() == {"pip"}


@pytest.mark.parametrize(
    "lock",
    ["a==1 \\\nb==2 \\\n    --hash=sha256:" + "0" * 64, "a>=1 \\", "--editable .", "a==1 \\"],
)
def test_a_lock_without_hashes_is_refused(lock: str) -> None:
    with pytest.raises(AssertionError):
        pins(lock)


@pytest.mark.requirement("SEC-4")
def test_the_locks_agree_and_hold_every_dependency() -> None:
    project = tomllib.loads(read("pyproject.toml"))["project"]
    run, dev, build = (pins(read(lock)) for lock in LOCKS)
    assert run.items() <= dev.items()
    assert {name: version for name, version in build.items() if name in dev}.items() <= dev.items()
    extras = project["optional-dependencies"]
    shipped = {*project["dependencies"], *extras["postgres"], *extras["nats"], *extras["speed"]}
    names = {re.split(r"[\[<>=;]", dependency)[0] for dependency in shipped}
    assert names <= run.keys()
    assert {re.split(r"[\[<>=;]", dependency)[0] for dependency in extras["dev"]} <= dev.keys()


def test_the_top_level_holds_nothing_else() -> None:
    present = {path.split("/", 1)[0] for path in project_files()}
    assert {name for name in present if not name.startswith(".")} <= TOP_LEVEL


def test_a_wheel_carries_the_packages_and_the_workspace_template(tmp_path: Path) -> None:
    offline = ["--no-input", "--no-index", "--no-deps", "--no-build-isolation"]
    run = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", *offline, "--wheel-dir", tmp_path, ROOT],
        capture_output=True,
        check=False,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    (wheel,) = tmp_path.glob("gatehouse-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {
        path.replace("workspace_template/", "gateway/workspace_template/", 1)
        for path in project_files()
        if path.startswith(("gateway/", "adapters/", "runtime/", "workspace_template/"))
    }
    assert shipped == expected


@pytest.mark.parametrize("command", [["bash", "-n", ".ci/run"], ["make", "-n", "help", "lint"]])
def test_the_scripts_parse(command: list[str]) -> None:
    run = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
    assert run.returncode == 0, run.stderr


def test_make_run_keeps_the_bytecode_of_what_was_changed() -> None:
    """Whatever the environment says of it elsewhere: else each start after an update compiles."""
    said = subprocess.run(
        ["make", "--no-print-directory", "-n", "run"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    assert said.stdout.endswith("PYTHONDONTWRITEBYTECODE= exec .venv/bin/gatehouse serve\n")
