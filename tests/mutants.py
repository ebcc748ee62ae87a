"""What share of small defects the tests of a package find: `make mutants`, or for some of them

    .venv/bin/python -m tests.mutants policy tools

mutmut (3.8 or newer) makes one defect after the other in a copy below `.cache/mutants/` and runs
the tests that reach it. It takes an hour and more for a package; what ran before is not run again.
docs/testing.md has the scores, and says why those that are left do no harm.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.architecture.source import ROOT, project_files

SUITES: Final[Mapping[str, tuple[str, ...]]] = {
    "policy": ("tests/unit/policy",),
    "tools": ("tests/unit/tools",),
    "subagents": ("tests/unit/subagents", "tests/scenario/test_children_in_order.py"),
    "inbox": ("tests/stateful/test_lanes.py", "tests/scenario/test_message_path.py"),
    "domain": ("tests/unit/domain", "tests/unit/policy"),
}
"""The tests by which each package is judged: those in which a defect shows at once."""
MISSING: Final = "mutmut is not installed: .venv/bin/python -m pip install 'mutmut>=3.8,<4'"
FOUND: Final = frozenset({"killed", "timeout", "caught by type check", "segfault"})
_CONFIGURATION: Final = """[mutmut]
source_paths =
    runtime
only_mutate =
    runtime/{package}/*
also_copy =
    {copied}
pytest_add_cli_args =
    -p
    no:benchmark
    -q
pytest_add_cli_args_test_selection =
    {tests}
"""


@dataclass(frozen=True, slots=True)
class Score:
    """How many defects there were by what became of them, and those that no test found."""

    package: str
    counts: Mapping[str, int]
    left: Sequence[str]

    @classmethod
    def of(cls, package: str, results: str) -> "Score":
        """What mutmut lists: a name and what became of it on each line."""
        rows = [line.strip().rpartition(": ") for line in results.splitlines() if ": " in line]
        left = [name for name, _, state in rows if state not in FOUND]
        return cls(package, Counter(state for _, _, state in rows), left)

    def __str__(self) -> str:
        whole = sum(self.counts.values())
        found = whole - len(self.left)
        percent = 100 * found / whole if whole else 0.0
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.counts.items()))
        return f"{self.package}: {found} of {whole} found, {percent:.1f} % ({states})"


def judge(package: str) -> Score:
    """Run the mutants of a package; returns when all have been judged."""
    folder = ROOT / ".cache" / "mutants" / package
    files = [path for path in project_files() if (ROOT / path).is_file()]
    for path in files:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / path, folder / path)
    tops = sorted({path.split("/", 1)[0] for path in files} - {"runtime", "tests"})
    configuration = _CONFIGURATION.format(
        package=package, copied="\n    ".join(tops), tests="\n    ".join(SUITES[package])
    )
    (folder / "setup.cfg").write_text(configuration, encoding="utf-8")
    _mutmut(folder, "run", "--max-children", str(os.cpu_count() or 1))
    score = Score.of(package, _mutmut(folder, "results", "--all", "true", kept=True))
    shown = (_mutmut(folder, "show", name, kept=True) for name in score.left)
    (folder / "left.txt").write_text("\n".join(shown), encoding="utf-8")
    return score


def _mutmut(folder: Path, *arguments: str, kept: bool = False) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE if kept else None,
        text=True,
        check=kept,
    )
    return ran.stdout or ""


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(packages: Sequence[str]) -> int:
    """Judge these packages; 1 where one is unknown or mutmut is not there."""
    unknown = [name for name in packages if name not in SUITES]
    if unknown:
        _say(f"no tests are named for {', '.join(unknown)}; there are {', '.join(SUITES)}")
        return 1
    if importlib.util.find_spec("mutmut") is None:
        _say(MISSING)
        return 1
    for package in packages or ("policy", "tools"):
        _say(f"{judge(package)}\n  what no test found: .cache/mutants/{package}/left.txt")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
