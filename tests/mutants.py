"""What share of small defects the tests of a package find: `make mutants`, or for some of them

    .venv/bin/python -m tests.mutants policy tools
    .venv/bin/python -m tests.mutants tools --sample 7

mutmut makes one defect after the other in a copy below `.cache/mutants/` and runs the tests that
reach it. It takes hours for a package; what ran before is not run again. A sample is those whose
number ends in one of the digits: `7` is about one in ten, and always the same ones.
docs/testing.md has the scores, and says why those that are left do no harm.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import _lru_cache_wrapper
from pathlib import Path
from typing import Final

from tests.architecture.source import ROOT, project_files

SUITES: Final[Mapping[str, tuple[str, ...]]] = {
    "policy": ("tests/unit/policy",),
    "tools": (
        "tests/unit/tools",
        "tests/unit/agent/test_results.py",
        "tests/unit/subagents",
        "tests/unit/workspace/test_skills.py",
        "tests/scenario/test_messaging.py",
    ),
    "subagents": ("tests/unit/subagents", "tests/scenario/test_children_in_order.py"),
    "sessions": ("tests/stateful/test_lanes.py", "tests/scenario/test_message_path.py"),
    "domain": ("tests/unit/domain", "tests/unit/policy"),
}
"""The tests by which each package is judged: those in which a defect shows at once."""
DIGITS: Final = "0123456789"
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
    -p
    tests.mutants
    -q
timeout_multiplier = 5
timeout_constant = 12
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
    def of(cls, package: str, results: str, sample: str = DIGITS) -> "Score":
        """What mutmut lists: a name and what became of it on each line. Those alone count whose
        number ends in a digit of the `sample`."""
        lines = (line.strip().rpartition(": ") for line in results.splitlines() if ": " in line)
        rows = [(name, state) for name, _, state in lines if name.endswith(tuple(sample))]
        left = [name for name, state in rows if state not in FOUND]
        return cls(package, Counter(state for _, state in rows), left)

    def __str__(self) -> str:
        whole = sum(self.counts.values())
        found = whole - len(self.left)
        percent = 100 * found / whole if whole else 0.0
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.counts.items()))
        return f"{self.package}: {found} of {whole} found, {percent:.1f} % ({states})"


def pytest_runtest_setup() -> None:
    """As a plugin of the runs: each test begins without the results that functions keep. With those
    of the tests before, the code that makes them would not run, and no defect in it would show."""
    for module in [one for name, one in sys.modules.items() if name.startswith("runtime.")]:
        for kept in vars(module).values():
            if isinstance(kept, _lru_cache_wrapper):
                kept.cache_clear()


def judge(package: str, sample: str = DIGITS) -> Score:
    """Run the mutants of a package; returns when all have been judged, or all of a sample."""
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
    # With a pattern mutmut judges all that fit anew, also those that it knows.
    chosen = [] if sample == DIGITS else [f"runtime.{package}.*[{sample}]"]
    _mutmut(folder, "run", "--max-children", str(os.cpu_count() or 1), *chosen)
    score = Score.of(package, _mutmut(folder, "results", "--all", "true", kept=True), sample)
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


def main(words: Sequence[str]) -> int:
    """Judge the named packages; 1 where one is unknown."""
    parser = argparse.ArgumentParser(prog="tests.mutants")
    parser.add_argument("packages", nargs="*", default=["policy", "tools"])
    parser.add_argument("--sample", default=DIGITS, help="the last digits of those to judge")
    given = parser.parse_args(words)
    unknown = [name for name in given.packages if name not in SUITES]
    if unknown:
        _say(f"no tests are named for {', '.join(unknown)}; there are {', '.join(SUITES)}")
        return 1
    for package in given.packages:
        left = f".cache/mutants/{package}/left.txt"
        _say(f"{judge(package, given.sample)}\n  what no test found: {left}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
