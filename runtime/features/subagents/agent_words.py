"""Words and figures about agents, for people and models. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from runtime.domain.counts import counted
from runtime.domain.printable import one_line
from runtime.features.subagents.rows.agents import Agent

_MARKS: Final = re.compile(r"([!-/:-@\[-`{-~])")
"""The characters that Markdown lets a backslash take the meaning from (CommonMark 2.4)."""


def in_words(status: str) -> str:
    """How an agent stands or ended, as people read it."""
    return status.replace("_", " ")


def labelled(agent: Agent) -> str:
    """An agent's label behind its name. Whoever spawned it chose the words, and may be an agent
    that says nothing to people itself: they are words alone, without links or marks."""
    return _behind(agent.label)


def about(agent: Agent, most: int) -> str:
    """What an agent is there for, as `labelled`: its label, a line about it, or how its task
    begins; at most so many characters of it."""
    words = agent.label or agent.description or agent.task[: 4 * most]
    return _behind(one_line(words, most))


def _behind(words: str) -> str:
    # In quotes that it cannot close: it must not read as something that the gateway says.
    plain = _MARKS.sub(r"\\\1", words.replace('"', "'"))
    return f' ("{plain}")' if plain else ""


def used(steps: int, tokens: int, cost: float | None) -> str:
    """Steps, tokens and, where it is known, money."""
    money = "" if cost is None else f", ${cost:.4f}"
    return f"{counted(steps, 'step')}, {counted(tokens, 'token')}{money}"


def total_cost(costs: Iterable[float | None]) -> float | None:
    """The sum of what is known; None where nothing is."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def retried(times: int) -> str:
    """How often somebody began anew, behind other figures; empty where nobody did."""
    return "" if not times else f", {counted(times, 'retry', 'retries')}"


def took(seconds: int) -> str:
    """A span of time as people say it."""
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
