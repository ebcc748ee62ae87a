"""What a check of `doctor` says."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """What a check found; `fix` is empty where nothing needs one."""

    name: str
    state: State
    found: str
    fix: str = ""
