"""A skipped test is named with its reason, and is a failure where CI runs the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.source import ROOT

SUITE = """
import pytest

def test_passes():
    pass

@pytest.mark.skipif(True, reason="chromium is missing: apt-get install chromium")
def test_page():
    pass

def test_bus():
    pytest.skip("no NATS: set GATEHOUSE_TEST_NATS_URL")

@pytest.mark.xfail(reason="known")
def test_known():
    assert False
"""
LATE = """
import pytest
pytest.importorskip("a_library_that_nobody_has", reason="a_library is missing")
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    conftest = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    (tmp_path / "conftest.py").write_text(conftest, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (tmp_path / "test_suite.py").write_text(SUITE, encoding="utf-8")
    return tmp_path


def run_pytest(suite: Path, *, ci: str | None) -> tuple[int, str]:
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(suite)],
        cwd=suite,
        # What decides is in the conftest alone, and plugins take long to load.
        env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | ({"CI": ci} if ci else {}),
        capture_output=True,
        check=False,
        text=True,
    )
    return run.returncode, run.stdout + run.stderr


def test_a_person_is_told_what_was_skipped_and_why(suite: Path) -> None:
    code, output = run_pytest(suite, ci=None)
    assert code == 0, output
    assert "not tested here" in output
    assert (
        "1 x chromium is missing: apt-get install chromium\n    test_suite.py::test_page" in output
    )
    assert "1 x no NATS: set GATEHOUSE_TEST_NATS_URL\n    test_suite.py::test_bus" in output
    assert "test_known" not in output


def test_ci_fails_on_a_skip(suite: Path) -> None:
    code, output = run_pytest(suite, ci="true")
    assert code == 1, output
    assert "1 failed, 1 passed, 1 xfailed, 1 error" in output
    assert "CI skips nothing: no NATS: set GATEHOUSE_TEST_NATS_URL" in output


def test_ci_fails_on_a_file_that_skips_itself(suite: Path) -> None:
    (suite / "test_late.py").write_text(LATE, encoding="utf-8")
    code, output = run_pytest(suite, ci="true")
    assert code == 2, output
    assert "CI skips nothing: a_library is missing" in output
    assert run_pytest(suite, ci=None)[0] == 0
