"""`make run` shows that it is getting on, and its log stays short where nobody watches."""

import os
import pty
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

INSTALL = Path(__file__).parents[3] / ".ci/install"
STEP = "2 of 4: the packages"
PIP = """
echo "$*" >&2
for name in one two three; do echo "Collecting $name==1 (from -r requirements.lock)"; done
echo "Installing collected packages: one, two, three"
exit $CODE
"""


def run(out: int, code: int) -> subprocess.Popen[bytes]:
    """The step with a pip that fetches three packages and ends with `code`."""
    return subprocess.Popen(
        ["sh", INSTALL, STEP, "3", "sh", "-c", PIP, "pip", "install"],
        env={**os.environ, "CODE": str(code)},
        stdout=out,
        stderr=subprocess.PIPE,
    )


def everything(terminal: int) -> str:
    """All that was shown on a terminal whose programs have ended."""
    shown = b""
    with suppress(OSError), os.fdopen(terminal, "rb", buffering=0) as screen:
        while piece := screen.read(4096):
            shown += piece
    return shown.decode()


@pytest.mark.requirement("OPS-11")
@pytest.mark.parametrize("code", [0, 3])
def test_on_a_terminal_one_line_says_how_far_it_is(code: int) -> None:
    ours, theirs = pty.openpty()
    with run(theirs, code) as process:
        os.close(theirs)
        assert process.stderr is not None
        errors = process.stderr.read().decode()
        assert process.wait() == code
    shown = everything(ours)
    assert "2 of about 3 fetched" in shown
    assert "unpacking ..." in shown
    assert shown.count("\n") == int(code == 0)
    assert (f"{STEP}: done" in shown) is (code == 0)
    assert "install --progress-bar off" in errors
    assert (f"{STEP}: failed" in errors) is bool(code)


@pytest.mark.requirement("OPS-11")
def test_in_a_log_there_is_the_name_of_the_step_alone() -> None:
    with run(subprocess.PIPE, 3) as process:
        said, errors = process.communicate()
    assert process.returncode == 3
    assert said.decode().startswith(f"  {STEP} ...\n")
    assert errors.decode() == "install --quiet\n"


@pytest.mark.requirement("OPS-11")
def test_each_step_of_make_run_says_its_number() -> None:
    makefile = INSTALL.parents[1] / "Makefile"
    recipe = makefile.read_text().partition("\n$(VENV)/.ready-run:")[2].partition("\n\n")[0]
    steps = re.findall(r"@(sh \.ci/install|echo) \"\s*(\d) of 4:", recipe)
    shown = "sh .ci/install"
    assert steps == [(shown, "1"), (shown, "2"), (shown, "3"), ("echo", "4")]
