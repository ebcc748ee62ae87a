"""How far a turn has come, and the ways in which it ends. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from runtime.domain.counts import counted
from runtime.domain.errors import ModelRejected, ModelRetry
from runtime.domain.messages import TextPart
from runtime.domain.runs import RunState, Usage
from runtime.domain.transcript import (
    AssistantMessage,
    TranscriptMessage,
    UserMessage,
    has_untrusted,
)
from runtime.sessions.calls import CallRow
from runtime.sessions.run_steps import AT_LIMIT, OVER_BUDGET, Finish
from runtime.sessions.transcripts import Line
from runtime.sessions.window import Window, window_start
from runtime.tools.executor import Planned


@dataclass(frozen=True, slots=True)
class Pending:
    """The calls of a step as they are kept. `planned` are the same as this turn has just decided
    them; none where they are to be decided anew."""

    rows: tuple[CallRow, ...]
    planned: tuple[Planned, ...] = ()


NOTHING_PENDING = Pending(())

WAITING: Final = "waiting"


@dataclass(slots=True)
class TurnState:
    """How far a turn has come; every value that counts can be read from the rows again.

    `texts` are what it said since its last answer, `heard` is the step behind which it last heard a
    person. `began`: when its step did, by the clock, None where that was in another turn. `outcome`
    is the state in which it left its run, `WAITING` as long as it has not ended it. `empty` and
    `cut` count the last responses that said nothing, and whose calls were cut.
    """

    window: Window
    window_from: int
    step: int
    pending: Pending = NOTHING_PENDING
    extra: list[TranscriptMessage] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    heard: int = 0
    empty: int = 0
    cut: int = 0
    began: float | None = None
    outcome: str = WAITING

    @property
    def tainted(self) -> bool:
        """Whether the model is given something untrusted."""
        return any(has_untrusted(line.message) for line in self.window.lines)

    def append(self, *lines: Line) -> None:
        """Put lines that are durable at the window's end."""
        self.window = replace(self.window, lines=(*self.window.lines, *lines))
        said = [line.step for line in lines if isinstance(line.message, UserMessage)]
        self.heard = max([self.heard, *said])

    def forget_older(self, run_id: str) -> None:
        """Let the window begin with a run: what came before it is refused (MDL-5)."""
        lines = self.window.lines
        start = next((place for place, line in enumerate(lines) if line.run_id == run_id), 0)
        if start:
            self.window = replace(self.window, lines=lines[start:])
            self.window_from = self.window.lines[0].seq

    def answered(self, lines: Sequence[Line], *, max_tokens: int) -> None:
        """Go on behind an answer, with what people said meanwhile."""
        self.append(*lines)
        self.step += 1
        self.texts, self.extra, self.empty, self.cut = [], [], 0, 0
        start = window_start(self.window.lines, max_tokens=max_tokens)
        if start:
            self.window = replace(self.window, lines=self.window.lines[start:])
            self.window_from = self.window.lines[0].seq


def completed(state: TurnState, message: AssistantMessage, text: str, usage: Usage) -> Finish:
    """The model answered; `text` is what the person is told."""
    kept = message if message.text.strip() else message.model_copy(update={"text": text})
    return Finish(RunState.COMPLETED, usage, state.window_from, kept, (TextPart(markdown=text),))


def at_limit(state: TurnState, limit: int) -> Finish:
    """The iteration limit: what there is so far, and a word that it ends here (MSG-15)."""
    so_far = state.texts[-1] if state.texts else "I have no result yet."
    text = f"{so_far}\n\n(I stopped here: this took more than {counted(limit, 'step')}.)"
    return _cut_short(state, text, AT_LIMIT)


def over_budget(state: TurnState, line: str) -> Finish:
    """A budget is used up: what there is so far, and one line that says which and until when."""
    text = f"{state.texts[-1]}\n\n({line})" if state.texts else line
    return _cut_short(state, text, OVER_BUDGET)


def _cut_short(state: TurnState, text: str, reason: str) -> Finish:
    return Finish(
        RunState.COMPLETED,
        Usage(),
        state.window_from,
        AssistantMessage(text=text),
        (TextPart(markdown=text),),
        reason=reason,
        cut_short=True,
    )


def idle(state: TurnState, written: str, seconds: float) -> Finish:
    """A run that made no progress for so long: what it has (SUB-21)."""
    so_far = written.strip() or (state.texts[-1] if state.texts else "There is no result yet.")
    text = f"{so_far}\n\n(It was ended here: it made no progress for {seconds:g} s.)"
    return Finish(
        RunState.CANCELLED,
        Usage(),
        state.window_from,
        AssistantMessage(text=text, partial=True),
        reason=f"no progress for {seconds:g} s",
        over=True,
        written_at=state.step,
    )


def failed(
    state: TurnState, run_id: str, error: ModelRetry | ModelRejected, *, owner_alone: bool = False
) -> Finish:
    """Plain sentences and an id to quote; the provider's words stay in the log (MSG-14). Nobody
    but an owner is told where a model is, and only where no others read it."""
    refused = None
    if isinstance(error, ModelRejected):
        public = error.public
        if error.content:
            # What was refused once is refused again: it stands in no later prompt (MDL-5).
            refused = AssistantMessage(text=public, refused=True)
    else:
        named = f" {error.model}" if error.model else ""
        where = f" at {error.host}" if owner_alone and error.host else ""
        public = (
            f"The model{named}{where} {_happened(error)}, although I tried several times. "
            "The operator can look into it with `gatehouse doctor`."
        )
    text = f"{public} If it happens again, quote `{run_id}` to whoever runs me."
    return Finish(
        RunState.FAILED,
        Usage(),
        state.window_from,
        refused,
        (TextPart(markdown=text, names_commands=True),),
        error=str(error),
    )


def _happened(error: ModelRetry) -> str:
    """What became of the last try, for people (MDL-6)."""
    if error.cause == "timeout":
        bound = f" within {error.waited_s:g} s (`models.timeout_s`)" if error.waited_s else ""
        return f"sent nothing{bound}"
    if error.cause == "busy":
        return "has too much to do, or takes no more requests from this gateway for now"
    if error.cause == "cut":
        return "broke off its answer"
    if error.status:
        return f"answered with an error (HTTP {error.status})"
    return "could not be reached"


def stopped(state: TurnState, written: str, reason: str) -> Finish:
    """Somebody stopped it; what was written stays (MSG-13)."""
    return Finish(
        RunState.CANCELLED,
        Usage(),
        state.window_from,
        AssistantMessage(text=written, partial=True) if written else None,
        reason=reason,
        written_at=state.step,
    )
