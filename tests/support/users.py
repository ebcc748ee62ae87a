"""An ordinary user for programs of the tests, where the tests themselves run as root."""

import os
import subprocess
import sys
import sysconfig
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
NOBODY: Final = 65534


@cache
def python_of_others(*modules: str) -> tuple[str, str]:
    """An interpreter that an ordinary user can run, and the path on which it finds `modules`. Both
    are empty where there is none."""
    path = f"{ROOT}:{sysconfig.get_path('purelib')}"
    if os.geteuid() != 0:
        return sys.executable, path
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        tried = (python, "-c", f"import {', '.join(modules)}")
        try:
            done = subprocess.run(
                tried,
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                env={"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                check=False,
            )
        except OSError:
            continue
        if done.returncode == 0:
            return python, path
    return "", ""


MISSING: Final = (
    f"no Python 3.{sys.version_info.minor} that an ordinary user can run: install it outside of "
    "root's home, as in /usr/bin"
)
"""Why a test is skipped without one."""
