"""A workspace in a temporary folder, as a person edits it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SKILL = """---
name: {name}
description: {description}
{more}---

{body}
"""


@dataclass(frozen=True)
class Folder:
    """Files below `root`, written and removed by a person."""

    root: Path

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def remove(self, name: str) -> None:
        (self.root / name).unlink()

    def link(self, name: str, target: Path) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def skill(
        self,
        name: str,
        *,
        description: str = "Does a thing.",
        more: Sequence[str] = (),
        body: str = "First do this.",
    ) -> Path:
        lines = "".join(f"{line}\n" for line in more)
        text = SKILL.format(name=name, description=description, more=lines, body=body)
        return self.write(f"skills/{name}/SKILL.md", text)

    def tree(self) -> dict[str, bytes]:
        """Every file that is there, by its path."""
        return {
            path.relative_to(self.root).as_posix(): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }
