"""Runs the tests that failed once more, each alone, and says which of them are only unstable.

    python .ci/second_look.py REPORT COMMAND [ARGUMENT ...]

REPORT is what `tests/gate/report.py` wrote of the first run. COMMAND runs the test whose id is in
the variable TEST of its environment. An exit status of 0 says that every test passed the second
time. What passed is printed as

    unstable: <test> (<seconds>, first failure: <one line>)

A first run after which nothing is certain is not looked at again: more than ten failures, an error
of collection, a worker that died, an error inside pytest, or a report that is missing or cut.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

MOST = 10
FAILED = 1
"""pytest's exit status where tests failed and nothing else happened."""


def say(line: str) -> None:
    """Print a line at once: what runs next prints too."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


class NoSecondLook(Exception):
    """The reason why the first run stands."""


def read_failures(report: Path) -> dict[str, str]:
    """Returns the tests that failed, in order, each with the first line of its failure.

    Raises `NoSecondLook`.
    """
    try:
        lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise NoSecondLook(f"the report of the first run cannot be read: {error}") from error
    failures: dict[str, str] = {}
    for line in lines:
        if line["kind"] == "broken":
            raise NoSecondLook(f"{line['test']} ({line['when']}): {line['why']}")
        if line["kind"] == "failed":
            failures.setdefault(line["test"], line["why"])
    if not lines or lines[-1]["kind"] != "finished":
        raise NoSecondLook("the report of the first run is not complete")
    if lines[-1]["status"] != FAILED:
        raise NoSecondLook(f"pytest ended with the status {lines[-1]['status']}")
    if not failures:
        raise NoSecondLook("the report of the first run names no test")
    if len(failures) > MOST:
        raise NoSecondLook(f"{len(failures)} tests failed, and at most {MOST} are looked at again")
    return failures


def look_again(failures: dict[str, str], command: list[str]) -> list[str]:
    """Run each test alone. Returns those that failed again."""
    failed = []
    for test, why in failures.items():
        began = time.perf_counter()
        environment = os.environ | {"TEST": test}
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, env=environment, check=False)
        seconds = time.perf_counter() - began
        if ended.returncode == 0:
            say(f"unstable: {test} ({seconds:.1f} s, first failure: {why})")
        else:
            say(f"failed twice: {test} (exit status {ended.returncode})")
            failed.append(test)
    return failed


def main(arguments: list[str]) -> int:
    report, *command = arguments
    try:
        failures = read_failures(Path(report))
    except NoSecondLook as reason:
        say(f"No second look: {reason}.")
        return 1
    say(f"== a second look at {len(failures)} failed tests")
    return 1 if look_again(failures, command) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
