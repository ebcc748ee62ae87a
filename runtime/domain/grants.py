"""What a person allowed for the rest of a session: one action, one path, or one host."""

from enum import StrEnum

from runtime.domain.value import Value


class GrantKind(StrEnum):
    """How far a grant reaches. ``action``: exactly the same action again, with the same files that
    it runs. ``path``: the tool on one path. ``host``: pages of one host."""

    ACTION = "action"
    PATH = "path"
    HOST = "host"


class Grant(Value):
    """`key` is the action's digest, the path or the host; `text` is it in words, for people.
    `files` are absolute paths that the action runs as code."""

    tool: str
    kind: GrantKind
    key: str
    text: str
    files: tuple[str, ...] = ()

    def covers(self, tool: str, *, action: str, subject: str) -> bool:
        """Whether it is for this call: its action's digest, and what the call is about."""
        held = action if self.kind is GrantKind.ACTION else subject
        return tool == self.tool and bool(held) and held == self.key
