"""The gate looks twice at a few failed tests and at nothing else: real runs of made suites."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

ROOT = Path(__file__).parents[2]
SECOND_LOOK = ROOT / ".ci/second_look.py"
ONE_TEST = ["sh", "-c", f'exec "{sys.executable}" -m pytest -q "$TEST"']

UNLUCKY = """
    from pathlib import Path

    def {name}():
        mark = Path(__file__).with_name("{name}.ran")
        ran_before, _ = mark.exists(), mark.touch()
        assert ran_before, "not this time"
"""
"""A test that fails the first time only."""
ALWAYS = """
    def test_always():
        assert 1 == 2
"""


class Gate:
    """A folder with a suite, and what the gate does with it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.report = folder / "report"
        (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")

    def write(self, text: str, name: str = "test_made.py") -> None:
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(dedent(text))

    def run(self, command: list[str]) -> "subprocess.CompletedProcess[str]":
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        return subprocess.run(
            command, cwd=self.folder, env=environment, text=True, capture_output=True, check=False
        )

    def first(self, *options: str) -> "subprocess.CompletedProcess[str]":
        reported = ("-p", "tests.gate.report", f"--gate-report={self.report}")
        return self.run([sys.executable, "-m", "pytest", "-q", *reported, *options])

    def second(self) -> "subprocess.CompletedProcess[str]":
        return self.run([sys.executable, str(SECOND_LOOK), str(self.report), *ONE_TEST])


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    # A checkout's path may hold a blank.
    return Gate(tmp_path / "a suite")


WORKERS = ("-p", "xdist", "--numprocesses=2")


@pytest.mark.parametrize("options", [(), WORKERS], ids=["one process", "two workers"])
def test_what_passes_the_second_time_is_unstable_and_the_run_is_green(
    gate: Gate, options: tuple[str, ...]
) -> None:
    gate.write(UNLUCKY.format(name="test_unlucky"))
    gate.write("def test_fine():\n    pass\n")
    first = gate.first(*options)
    assert first.returncode == 1
    assert "FAILED test_made.py::test_unlucky" in first.stdout
    second = gate.second()
    assert second.returncode == 0, second.stdout
    (line,) = [line for line in second.stdout.splitlines() if line.startswith("unstable: ")]
    assert line.startswith("unstable: test_made.py::test_unlucky (")
    assert " s, first failure: AssertionError: not this time" in line
    assert "test_fine" not in second.stdout


def test_what_fails_twice_is_red_beside_what_does_not(gate: Gate) -> None:
    gate.write(UNLUCKY.format(name="test_unlucky"))
    gate.write(ALWAYS)
    gate.first()
    second = gate.second()
    assert second.returncode == 1
    assert "unstable: test_made.py::test_unlucky" in second.stdout
    assert "failed twice: test_made.py::test_always (exit status 1)" in second.stdout


@pytest.mark.parametrize(("number", "green"), [(9, True), (10, True), (11, False)])
def test_at_most_ten_are_looked_at_again(gate: Gate, number: int, green: bool) -> None:
    for one in range(number):
        gate.write(UNLUCKY.format(name=f"test_{one}"))
    gate.first()
    second = gate.second()
    assert (second.returncode == 0) is green
    assert second.stdout.count("unstable: ") == (number if green else 0)
    assert ("11 tests failed, and at most 10 are looked at again" in second.stdout) is not green


def test_each_runs_alone_with_its_parameters_as_they_are(gate: Gate) -> None:
    """Names of parameters hold whatever a shell would read otherwise, and no test sees another."""
    gate.write(
        """
        import pytest
        from pathlib import Path

        ODD = ["a b", "a[0]::c", "$HOME `id` \\"x\\" 'y'", "żółw", "two\\nlines"]
        SEEN = []

        @pytest.mark.parametrize("word", ODD, ids=ODD)
        def test_odd(word):
            SEEN.append(word)
            mark = Path(__file__).with_name(str(ODD.index(word)))
            ran_before, _ = mark.exists(), mark.touch()
            assert ran_before and SEEN == [word]
        """
    )
    gate.first()
    second = gate.second()
    assert second.returncode == 0, second.stdout
    assert second.stdout.count("unstable: test_made.py::test_odd[") == 5


def test_a_failed_setup_or_teardown_is_a_failed_test(gate: Gate) -> None:
    gate.write(
        """
        import pytest
        from pathlib import Path

        def unlucky(name):
            mark = Path(__file__).with_name(name)
            ran_before, _ = mark.exists(), mark.touch()
            assert ran_before

        @pytest.fixture
        def around():
            unlucky("setup")
            yield
            unlucky("teardown")

        def test_one(around): pass
        def test_two(around): pass
        """
    )
    gate.first()
    second = gate.second()
    assert second.returncode == 0, second.stdout
    assert second.stdout.count("unstable: ") == 2


@pytest.mark.parametrize(
    ("suite", "options", "reason"),
    [
        ("import os\ndef test_dies():\n    os._exit(3)\n", WORKERS, "Not properly terminated"),
        ("import absent_module\n", (), "absent_module"),
        ("def test_stops():\n    raise KeyboardInterrupt\n", (), "pytest ended with the status 2"),
    ],
    ids=["a worker dies", "a file cannot be collected", "the run is interrupted"],
)
def test_after_what_proves_nothing_there_is_no_second_look(
    gate: Gate, suite: str, options: tuple[str, ...], reason: str
) -> None:
    gate.write(suite, "test_broken.py")
    gate.write(UNLUCKY.format(name="test_unlucky"))
    assert gate.first(*options).returncode != 0
    second = gate.second()
    assert second.returncode == 1
    assert reason in second.stdout
    assert "unstable" not in second.stdout


def test_a_process_that_dies_in_the_second_look_is_red(gate: Gate) -> None:
    gate.write(
        """
        import os
        from pathlib import Path

        def test_worse():
            mark = Path(__file__).with_name("ran")
            if mark.exists():
                os._exit(0 + 7)
            mark.touch()
            assert False
        """
    )
    gate.first()
    second = gate.second()
    assert second.returncode == 1
    assert "failed twice: test_made.py::test_worse (exit status 7)" in second.stdout


def test_a_report_that_could_not_be_written_makes_no_run_green(gate: Gate) -> None:
    gate.write(UNLUCKY.format(name="test_unlucky"))
    gate.report = Path("/dev/full")
    first = gate.first()
    assert first.returncode == 1
    assert "cannot be written" in first.stderr
    gate.report = gate.folder / "nothing"
    assert "cannot be read" in gate.second().stdout
    gate.report.touch()
    assert gate.second().returncode == 1
    gate.report.write_text('{"kind": "started"}\n{"kind": "fai', "utf-8")
    assert gate.second().returncode == 1


def test_a_run_that_was_cut_is_not_looked_at_again(gate: Gate) -> None:
    gate.write(ALWAYS)
    gate.first()
    lines = gate.report.read_text("utf-8").splitlines()
    gate.report.write_text("\n".join(lines[:-1]) + "\n", "utf-8")
    second = gate.second()
    assert second.returncode == 1
    assert "not complete" in second.stdout


def test_the_log_says_where_the_time_went(gate: Gate) -> None:
    (gate.folder / "tests/inner").mkdir(parents=True)
    gate.write("def test_work():\n    sum(range(8_000_000))\n", "tests/inner/test_work.py")
    said = gate.first(*WORKERS).stdout
    folders = said.partition("processor seconds by folder")[2]
    assert " tests/inner\n" in folders
    used = float(folders.split()[1])
    assert used > 0
    assert " tests/inner/test_work.py" in folders.partition("longest files")[2]


def test_the_script_looks_again_only_after_everything_else() -> None:
    script = (ROOT / ".ci/run").read_text("utf-8")
    looks = script.index(".ci/second_look.py", script.index("set -euo"))
    assert looks > script.index('wait "$testing"')
    assert looks > script.index('exit "$failed"')
    assert 'stage test REPORT="$report"' in script
    makefile = (ROOT / "Makefile").read_text("utf-8")
    recipe = makefile.partition("\none-test:")[2].partition("\n\n")[0]
    assert '"$$TEST"' in recipe
    assert "PARALLEL" not in recipe
