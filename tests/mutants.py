"""What share of small defects the tests of a package find: `make mutants`, or for some of them

    .venv/bin/python -m tests.mutants policy tools
    .venv/bin/python -m tests.mutants tools --sample 400 --seed 2

mutmut makes one defect after the other in a copy below `.cache/mutants/` and runs the tests that
reach it. It takes hours for a package; a defect that was found before is not judged again. A sample
is drawn from all defects of the package alike, and a seed always gives the same one.
docs/testing.md has the scores, and says why those that are left do no harm.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
    "features/subagents": ("tests/unit/subagents", "tests/scenario/subagents/test_dependencies.py"),
    "features/schedules": ("tests/unit/schedules",),
    "sessions": ("tests/stateful/test_lanes.py", "tests/scenario/test_message_path.py"),
    "domain": ("tests/unit/domain", "tests/unit/policy"),
}
"""The tests by which each package is judged: those in which a defect shows at once."""
FOUND: Final = frozenset({"killed", "timeout", "caught by type check", "segfault"})
_PROCESSES: Final = ("--max-children", str(os.cpu_count() or 1))
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
    def of(cls, package: str, states: Mapping[str, str]) -> "Score":
        """The score of those defects whose `states` are given by name."""
        left = [name for name, state in states.items() if state not in FOUND]
        return cls(package, Counter(states.values()), left)

    def __str__(self) -> str:
        whole = sum(self.counts.values())
        found = whole - len(self.left)
        percent = 100 * found / whole if whole else 0.0
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.counts.items()))
        return f"{self.package}: {found} of {whole} found, {percent:.1f} % ({states})"


@dataclass(frozen=True, slots=True)
class Sample:
    """A number of defects drawn at random, each as likely as any other."""

    size: int
    seed: int = 1

    def of(self, names: Iterable[str]) -> Sequence[str]:
        """The names that are drawn. Each has its own place in the draw, so a function that is
        added or taken away changes little of the rest."""
        return sorted(names, key=self._place)[: self.size]

    def _place(self, name: str) -> bytes:
        return hashlib.sha256(f"{self.seed} {name}".encode()).digest()


def states_of(results: str) -> Mapping[str, str]:
    """What mutmut lists: a name and what became of it on each line."""
    lines = (line.strip().rpartition(": ") for line in results.splitlines() if ": " in line)
    return {name: state for name, _, state in lines}


def pytest_runtest_setup() -> None:
    """As a plugin of the runs: each test begins without the results that functions keep. With those
    of the tests before, the code that makes them would not run, and no defect in it would show."""
    for module in [one for name, one in sys.modules.items() if name.startswith("runtime.")]:
        for kept in vars(module).values():
            if isinstance(kept, _lru_cache_wrapper):
                kept.cache_clear()


def judge(package: str, sample: Sample | None = None) -> Score:
    """Run the mutants of a package; returns when all have been judged, or all of a sample.

    Of a sample, those that no test found before are judged again, by the tests of now."""
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
    if sample is None:
        _mutmut(folder, "run", *_PROCESSES)
        states = _states(folder)
    else:
        # mutmut names the defects only once a run has made them. No defect has this name, so this
        # run makes them all, finds out which tests reach them, and fails.
        _mutmut(folder, "run", *_PROCESSES, "none", stderr=subprocess.DEVNULL)
        made = _states(folder)
        drawn = sample.of(made)
        unfound = [name for name in drawn if made[name] not in FOUND]
        if unfound:
            _mutmut(folder, "run", *_PROCESSES, *unfound)
        judged = _states(folder)
        states = {name: judged[name] for name in drawn}
    score = Score.of(package, states)
    shown = (_mutmut(folder, "show", name, kept=True) for name in score.left)
    (folder / "left.txt").write_text("\n".join(shown), encoding="utf-8")
    return score


def _states(folder: Path) -> Mapping[str, str]:
    return states_of(_mutmut(folder, "results", "--all", "true", kept=True))


def _mutmut(folder: Path, *arguments: str, kept: bool = False, stderr: int | None = None) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "mutmut", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE if kept else None,
        stderr=stderr,
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
    parser.add_argument("--sample", type=int, help="how many to judge of all, drawn at random")
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other ones")
    given = parser.parse_args(words)
    unknown = [name for name in given.packages if name not in SUITES]
    if unknown:
        _say(f"no tests are named for {', '.join(unknown)}; there are {', '.join(SUITES)}")
        return 1
    sample = None if given.sample is None else Sample(given.sample, given.seed)
    for package in given.packages:
        left = f".cache/mutants/{package}/left.txt"
        _say(f"{judge(package, sample)}\n  what no test found: {left}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
