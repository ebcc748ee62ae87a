"""The settings of agents: the limits of a turn, and what subagents may be, have and share."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from gateway.config_section import Section

ToolPattern = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class ChildTools(Section):
    """`[tools.subagents]`: what subagents share with the agent that starts them (their parent), and
    which tools they may have, by names or patterns. A change applies to subagents that start later.
    """

    memory_share_mode: Literal["isolated", "handoff", "inherit-readonly"] = Field(
        "handoff",
        description="`isolated`: the parent is not told the result; `handoff`: it is told; "
        "`inherit-readonly`: it is told, and the subagent also sees the recent "
        "conversation. A single call may choose a stricter value.",
    )
    allow: tuple[ToolPattern, ...] | None = Field(
        None,
        description="The tools that subagents may have. Unset: those of their parent. An empty "
        "list: none.",
    )
    deny: tuple[ToolPattern, ...] = Field(
        (), description="Tools that subagents never have, whatever `allow` says."
    )


class AgentDepth(Section):
    """`[agents.depth.N]`: subagents N levels below the agent that people talk to."""

    model: str = Field(description="The model, as `provider:name`.")


def _depths(given: dict[int, AgentDepth]) -> dict[int, AgentDepth]:
    for depth in given:
        if not 1 <= depth < 10:
            raise ValueError(f"depths are 1 to 9, not {depth}")
    return given


class Agents(Section):
    """`[agents]`: the limits of a turn, and of the subagents that it may start."""

    max_steps: int = Field(
        40,
        ge=1,
        le=1000,
        description="How many times one run may call the model, counted from the last message.",
    )
    window_tokens: int = Field(
        32_000,
        ge=1000,
        description="Tokens of the conversation that a request to the model may carry.",
    )
    max_output_tokens: int = Field(8192, ge=64, description="Tokens of one response.")
    concurrency: int = Field(
        10,
        ge=0,
        le=1000,
        description="Subagents that may run at once, over all gateways. 0: any number.",
    )
    max_depth: int = Field(
        3,
        ge=1,
        le=10,
        description="Levels of agents, with the one that people talk to as the first.",
    )
    live_per_parent: int = Field(
        8, ge=0, description="Subagents of one agent that may be active at once."
    )
    live_per_tree: int = Field(
        24, ge=0, description="Subagents of one conversation that may be active at once."
    )
    spawned_per_run: int = Field(16, ge=0, description="Subagents that one run may start.")
    spawned_per_minute: int = Field(
        60, ge=0, description="Subagents that one conversation may start in a minute."
    )
    unattended_runs: int = Field(
        50,
        ge=0,
        description="How often subagents may start or continue other subagents without a person. "
        "The count starts again when a person writes.",
    )
    subagent_model: str | None = Field(
        None, description="The model of subagents. Unset: the model of their parent."
    )
    depth: Annotated[dict[int, AgentDepth], AfterValidator(_depths)] = Field(
        default_factory=dict,
        description="Models by level: `[agents.depth.N]` with `model` is for subagents N levels "
        "down, from 1.",
    )
    auto_background_after: float = Field(
        120.0,
        gt=0,
        description="Seconds that an agent waits for a subagent. Then it continues without the "
        "result.",
    )
    clarification_timeout: float = Field(
        86_400.0, gt=0, description="Seconds that a subagent waits for an answer of its parent."
    )
    max_retries: int = Field(
        2,
        ge=0,
        le=10,
        description="How often a subagent begins again if its model could not be reached.",
    )
    idle_timeout: float = Field(
        900.0, ge=120, description="Seconds without progress after which a subagent is ended."
    )
