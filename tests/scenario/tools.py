"""Tools for scenarios: they count their effects and stop where the test wants to look."""

from runtime.domain.tools import Effect, Touches
from runtime.tools.base import Arguments, Tool, ToolContext, ToolOutput
from tests.fakes.model import Gate


class NoteArguments(Arguments):
    """What the note says."""

    text: str = ""


class Note(Tool[NoteArguments]):
    """Keeps notes in memory; with a gate it waits there before it keeps anything."""

    arguments = NoteArguments
    description = "Keep a note."
    example = '{"text": "milk"}'

    def __init__(
        self,
        name: str = "note",
        *,
        effect: Effect = Effect.ONCE,
        gate: Gate | None = None,
        command: bool = False,
    ) -> None:
        self.name = name
        self.effect = effect
        self.gate = gate
        self.command = command
        self.kept: list[str] = []
        self.begun = 0

    def touches(self, arguments: NoteArguments, context: ToolContext) -> Touches:
        """A command, so that policy asks about it; or nothing at all."""
        if self.command:
            return Touches(command=arguments.text, subject=arguments.text)
        return Touches(subject=arguments.text)

    async def run(self, arguments: NoteArguments, context: ToolContext) -> ToolOutput:
        """Keep the note, once the gate is open."""
        self.begun += 1
        if self.gate is not None:
            await self.gate.wait()
        self.kept.append(arguments.text)
        return ToolOutput(f"kept {arguments.text}")
