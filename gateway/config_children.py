"""The settings of subagents that are no figures: what they may have and share (SUB-16, SUB-18)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from gateway.config_section import Section

ToolPattern = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class ChildTools(Section):
    """`[tools.subagents]`: what subagents share with the agent that starts them, and which tools
    any of them may have, by names or patterns. What is set holds for those that are started from
    then on."""

    memory_share_mode: Literal["isolated", "handoff", "inherit-readonly"] = Field(
        "handoff",
        description="`isolated`: nothing comes back by itself; `handoff`: the result does; "
        "`inherit-readonly`: it is shown the recent conversation as well. A spawn may say less.",
    )
    allow: tuple[ToolPattern, ...] | None = Field(
        None, description="Unset: those of its agent; an empty list: none at all."
    )
    deny: tuple[ToolPattern, ...] = Field((), description="Taken away, whatever `allow` says.")
