"""Reading a skill's body on demand; its index is in the prompt (CTX-10)."""

import difflib
from contextlib import suppress
from typing import Final

from pydantic import Field
from typing_extensions import override

from runtime.domain.errors import ToolError
from runtime.domain.tools import Effect, Touches
from runtime.tools.base import Arguments, SkillReader, Tool, ToolContext, ToolOutput
from runtime.tools.builtin.file_context import guard, off_loop
from runtime.tools.paths import shown

USE_SKILL: Final = "use_skill"


class SkillArguments(Arguments):
    name: str = Field(min_length=1, max_length=200)


class UseSkill(Tool[SkillArguments]):
    """A skill's text. It grants nothing."""

    name = USE_SKILL
    description = "Read a skill's instructions."
    arguments = SkillArguments
    effect = Effect.READ
    example = '{"name": "release-notes"}'

    def __init__(self, skills: SkillReader) -> None:
        self._skills = skills

    @override
    def touches(self, arguments: SkillArguments, context: ToolContext) -> Touches:
        return Touches(subject=arguments.name)

    @override
    async def run(self, arguments: SkillArguments, context: ToolContext) -> ToolOutput:
        body = await off_loop(lambda: self._body(arguments.name, context), arguments.name)
        if body is not None:
            return ToolOutput(body)
        names = list(self._skills.names())
        near = difflib.get_close_matches(arguments.name, names, n=3, cutoff=0.4) or names[:10]
        hint = f"the nearest are {', '.join(near)}" if near else "there are none"
        raise ToolError(f"there is no skill named {shown(arguments.name)}; {hint}")

    def _body(self, name: str, context: ToolContext) -> str | None:
        """None also where the skill is a link to what is hidden from the call."""
        guarded = guard(context)
        with suppress(ToolError):
            if guarded.hidden.covers(guarded.resolve(f"skills/{name}/SKILL.md")):
                return None
        return self._skills.read(name)
