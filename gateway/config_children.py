"""The settings of subagents that are no figures: which tools they may have (SUB-18)."""

from typing import Annotated

from pydantic import Field, StringConstraints

from gateway.config_section import Section

ToolPattern = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class ChildTools(Section):
    """`[tools.subagents]`: which tools any subagent may have, by names or patterns. What is set
    holds for those that are started from then on."""

    allow: tuple[ToolPattern, ...] | None = Field(
        None, description="Unset: those of its agent; an empty list: none at all."
    )
    deny: tuple[ToolPattern, ...] = Field((), description="Taken away, whatever `allow` says.")
