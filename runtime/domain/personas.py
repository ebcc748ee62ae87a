"""The identity that a session may be given instead of the workspace's own."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Persona:
    """A persona as its files are now: texts by file name, at least one. `digest` is of the files
    alone, so that two personas that say the same share one."""

    name: str
    files: Mapping[str, str]
    digest: str
