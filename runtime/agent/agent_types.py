"""The types of subagents that there are, and what a child of one is given (SUB-1, SUB-2, SUB-3).

Three are built in. A definition adds one, which is a `general` of fewer tools with a prompt of its
own; it can take away and never add, because a child's tools are those of its parent at most.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from runtime.domain.tools import Effect
from runtime.subagents.children import Profile
from runtime.subagents.isolation import Defined
from runtime.tools.base import AnyTool
from runtime.tools.builtin.spawning import SPAWN
from runtime.workspace.definitions import Definitions

GENERAL: Final = "general"
MAY: Final[Mapping[str, frozenset[str]]] = {
    "explore": frozenset({"explore"}),
    "plan": frozenset({"explore"}),
}
"""What a child of a type may spawn; everybody else may spawn every type."""
READS: Final = frozenset(MAY)
NEVER: Final = frozenset({"ask_user", "send_file"})
"""A child does not talk to people, and posts nothing in their chats."""
COMMANDS: Final = frozenset({"exec"})
"""In a session that only reads these get a view that cannot be written (TOOL-7)."""
BUILT_IN: Final[Mapping[str, str]] = {
    GENERAL: "All tools of the agent that starts it.",
    "explore": "Reads files and the web, and runs commands that only read.",
    "plan": "As explore; its result is a plan.",
}


@dataclass(frozen=True, slots=True)
class Types:
    """What one spawner may use: `profiles` by name, `may` and `known` as in `Spawner`, and a line
    about each for people and models."""

    profiles: Mapping[str, Profile]
    may: frozenset[str]
    known: Mapping[str, str]
    about: Mapping[str, str]


def types_for(
    tools: Sequence[AnyTool],
    definitions: Definitions,
    *,
    own: frozenset[str] | None,
    kind: str,
    deepest: bool,
) -> Types:
    """The types for a spawner of type `kind` whose tools are `own` (None: all); a child that would
    be at the `deepest` level spawns nothing."""
    there = [tool for tool in tools if own is None or tool.name in own]
    kept = NEVER | {SPAWN} if deepest else NEVER
    usable = tuple(tool.name for tool in there if tool.name not in kept)
    reads = {tool.name for tool in there if tool.effect is Effect.READ} | COMMANDS
    profiles = {
        name: Profile(
            tools=tuple(one for one in usable if name not in READS or one in reads),
            read_only=name in READS,
        )
        for name in BUILT_IN
    }
    known, about = dict.fromkeys(BUILT_IN, ""), dict(BUILT_IN)
    for one in definitions.items:
        known[one.name] = one.reason
        about[one.name] = one.description
        wanted = usable if one.tools is None or "*" in one.tools else one.tools
        base = profiles.get(one.name, profiles[GENERAL])
        profiles[one.name] = Profile(
            tools=tuple(
                name for name in base.tools if name in wanted and name not in one.disallowed_tools
            ),
            read_only=base.read_only or one.permission_mode == "plan",
            prompt=one.prompt,
            model=one.model,
            isolation=Defined(None, worktree=True)
            if one.isolation == "worktree"
            else Defined(one.isolation),
        )
    may = MAY.get(kind, frozenset(known))
    return Types(profiles, may, known, about)
