"""The check of `doctor` that reads the definitions of subagents (SUB-2)."""

import asyncio

from gateway import wiring
from gateway.agent_type_files import find
from gateway.cli.check_result import Check
from gateway.config import Config
from runtime.domain.counts import counted
from runtime.domain.errors import InvalidInput, Unavailable


async def definitions(config: Config) -> Check:
    """Which files cannot be used as they are, and why. A model that is wrong is another check's."""
    try:
        catalog = await wiring.find_models(config)
    except InvalidInput:
        return Check(
            "subagents", "warn", "not checked, because no model works", "Fix the model first."
        )
    try:
        found = await asyncio.to_thread(find, config, catalog)
    except Unavailable as error:
        return Check("subagents", "fail", str(error), "Make the folder readable.")
    finally:
        await catalog.close()
    problems = found.types.problems
    if problems:
        fix = "Change them; `gatehouse agents types validate FILE` checks one."
        return Check("subagents", "warn", "\n".join(problems), fix)
    usable = [one for one, reason in found.types.known.items() if not reason]
    return Check("subagents", "ok", counted(len(usable), "type"))
