"""The folder below ``/usr/share`` in which tests put what only root may read.

It is removed when the whole run ends, and nothing in it earlier: the commands of every worker hide
what their last walk found there, and none can start whose mask lies over something that is gone.
"""

import os
import secrets
import tempfile
from pathlib import Path
from typing import Final

_NAME: Final = "GATEHOUSE_TEST_PLANTED"


def name_folder() -> None:
    """Name it, once for all workers and for the programs that they start."""
    os.environ.setdefault(_NAME, f"/usr/share/gatehouse-tests-{secrets.token_hex(8)}")


def folder() -> Path:
    """Where it is, or would be."""
    return Path(os.environ[_NAME])


def plant() -> Path:
    """A new folder in it that everybody may read. Only root can make one."""
    folder().mkdir(exist_ok=True)
    folder().chmod(0o755)
    made = Path(tempfile.mkdtemp(dir=folder()))
    made.chmod(0o755)
    return made
