"""The settings of agents: the limits of a turn, and what subagents may be, have and share."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

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


class AgentDepth(Section):
    """`[agents.depth.N]`: subagents N levels below the agent that people talk to."""

    model: str = Field(description="`provider:name`.")


def _depths(given: dict[int, AgentDepth]) -> dict[int, AgentDepth]:
    for depth in given:
        if not 1 <= depth < 10:
            raise ValueError(f"depths are 1 to 9, not {depth}")
    return given


class Agents(Section):
    """`[agents]`: the limits of a turn, and of the subagents that it may start."""

    max_steps: int = Field(40, ge=1, le=1000, description="Model calls of one run at most.")
    window_tokens: int = Field(32_000, ge=1000, description="History that a request may carry.")
    max_output_tokens: int = Field(8192, ge=64, description="The length of one response at most.")
    concurrency: int = Field(
        10,
        ge=0,
        le=1000,
        description="Subagents that run at once, everywhere; 0: any number.",
    )
    max_depth: int = Field(3, ge=1, le=10, description="Levels of agents, the one you talk to too.")
    live_per_parent: int = Field(8, ge=0, description="Live subagents of one agent.")
    live_per_tree: int = Field(24, ge=0, description="Live subagents of a conversation.")
    spawned_per_run: int = Field(16, ge=0, description="Subagents that one run may start.")
    spawned_per_minute: int = Field(60, ge=0, description="Subagents a conversation, in a minute.")
    unattended_runs: int = Field(
        50,
        ge=0,
        description="Runs that results alone began since a person spoke, which start subagents.",
    )
    subagent_model: str | None = Field(
        None, description="The model of subagents; unset: that of the agent that starts them."
    )
    depth: Annotated[dict[int, AgentDepth], AfterValidator(_depths)] = Field(
        default_factory=dict,
        description="`[agents.depth.N]` with `model`: that of subagents N levels down, from 1.",
    )
    auto_background_after: float = Field(
        120.0, gt=0, description="Seconds for which a subagent is awaited; then its agent goes on."
    )
    clarification_timeout: float = Field(
        86_400.0, gt=0, description="Seconds for which a subagent waits for its agent's answer."
    )
    max_retries: int = Field(
        2, ge=0, le=10, description="New tries of a subagent whose model could not be reached."
    )
    idle_timeout: float = Field(
        900.0, ge=120, description="Seconds without progress after which a subagent is ended."
    )
