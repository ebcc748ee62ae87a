"""One turn: a claimed run from where it stands to its end, or to where a person must answer.

Every step is durable before the next begins (MSG-7). The same code runs a new run and one that
was taken up after a crash or an answer: what is left to do is read from the rows alone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import structlog

from runtime.agent import response_ends, turn_ends, turn_spans
from runtime.agent.attachment_text import with_troubles
from runtime.agent.attachments import FileServices
from runtime.agent.context import (
    PresentFacts,
    PromptFacts,
    build_present,
    build_system,
    dated,
    fenced,
    people_in,
)
from runtime.agent.guest import Guests
from runtime.agent.model_call import ModelCaller
from runtime.agent.prompt_blocks import Audience, PromptBlocks
from runtime.agent.prompt_identity import Identity
from runtime.agent.settings import AgentSettings
from runtime.agent.tool_step import StepRunner
from runtime.agent.turn_budget import Budgets
from runtime.agent.turn_ends import NOTHING_PENDING, WAITING, Pending, TurnState
from runtime.agent.wait_requests import Parking
from runtime.domain.errors import ModelRejected, ModelRetry
from runtime.domain.messages import ChatAddress, OutboundMessage
from runtime.domain.people import Trust
from runtime.domain.runs import Holder, RunState, Usage
from runtime.domain.transcript import (
    AssistantMessage,
    NoticeMessage,
    ToolMessage,
    TranscriptMessage,
    UserMessage,
)
from runtime.ports import tracing
from runtime.ports.bus import EVENTS, OUTBOX
from runtime.ports.clock import Clock
from runtime.ports.metrics import NO_OBSERVER, Observer
from runtime.ports.model import ModelRequest, ModelResponse
from runtime.ports.tracing import NO_TRACER, Tracer
from runtime.sessions import run_steps
from runtime.sessions.bounds import PolicySettings, bounds_for
from runtime.sessions.calls import settle_crashed
from runtime.sessions.claims import Claimed
from runtime.sessions.live_text import LiveStep
from runtime.sessions.run_steps import Finish, Finished, ModelStep
from runtime.sessions.transcripts import Line
from runtime.sessions.unit import Units
from runtime.sessions.window import (
    Window,
    WindowCache,
    fitted,
    since_answer,
    window_start,
    without_refused,
)
from runtime.tools.executor import Planned

log = structlog.get_logger(__name__)

Offer = Callable[[ChatAddress], Holder | None]
"""A deliverer in this process that may send to a place at once."""

EMPTY_ANSWER = "The model gave no answer. Please ask again, perhaps in other words."
CONTINUE = "Your last response was empty. Answer the person now."


@dataclass(frozen=True, slots=True)
class TurnServices:
    """What every turn uses; made once by the composition root."""

    units: Units
    clock: Clock
    caller: ModelCaller
    steps: StepRunner
    identity: Identity
    blocks: PromptBlocks
    cache: WindowCache
    settings: AgentSettings
    budgets: Budgets
    files: FileServices
    parking: Parking
    guests: Guests
    observer: Observer = NO_OBSERVER
    tracer: Tracer = NO_TRACER


class Turn:
    """Runs one claimed run. `offer` gives a local, idle deliverer's claim on the reply, if any."""

    def __init__(
        self,
        services: TurnServices,
        claimed: Claimed,
        holder: Holder,
        *,
        policy: PolicySettings,
        offer: Offer,
    ) -> None:
        self._services = services
        self._run = claimed.run
        self._session = claimed.session
        self._alone = claimed.alone
        self._holder = holder
        self._policy = policy
        self._bounds = bounds_for(policy, claimed.session, claimed.run)
        self._guest = services.guests.of(claimed)
        self._offer = offer
        self._budget = services.budgets.of(claimed.run, holder, claimed.session.spend)
        self._files = services.files.of(claimed.run, holder)
        self._group = claimed.run.target.chat_kind != "direct"
        self.live = LiveStep(
            services.units.bus,
            services.clock,
            session_id=claimed.session.id,
            run_id=claimed.run.id,
            target=claimed.run.target,
        )
        self._state = self._start(claimed)
        self._blocks: tuple[str, ...] | None = None

    def _start(self, claimed: Claimed) -> TurnState:
        lines = claimed.window.lines
        most = _window_tokens(self._services, claimed.session.model)
        start = window_start(lines, max_tokens=most)
        window_from = lines[start].seq if start < len(lines) else claimed.window_from
        done = {
            line.step
            for line in lines
            if line.run_id == claimed.run.id and isinstance(line.message, ToolMessage)
        }
        fresh = claimed.run.step and claimed.run.step not in done
        pending = Pending(settle_crashed(claimed.calls)) if fresh else NOTHING_PENDING
        state = TurnState(
            replace(claimed.window, lines=lines[start:]),
            window_from if start else claimed.window_from,
            claimed.run.step,
            pending,
        )
        own = since_answer(lines, claimed.run.id)
        state.texts = [
            line.message.text
            for line in own
            if isinstance(line.message, AssistantMessage) and line.message.text
        ]
        state.heard = max(
            (line.step for line in own if isinstance(line.message, UserMessage)), default=0
        )
        return state

    async def run(self) -> OutboundMessage | None:
        """Run to the end or to a wait; the reply, if it is this process's to send at once.

        Raises `StaleLease` when the run became another worker's, `StoreUnavailable` when the
        store went away, and lets a cancellation through.
        """
        run, services = self._run, self._services
        if run.started_ms is not None and run.step == 0 and run.attempt == 0:
            services.observer.started((run.started_ms - run.created_ms) / 1000)
        resumed = run.step > 0 or run.attempt > 0
        with services.tracer.span(
            "invoke_agent", run.id, "main", turn_spans.turn_facts(run), resumed=resumed
        ) as span:
            reply = await self._alternate()
            span.note(tracing.STATE, self._state.outcome)
            return reply

    async def _alternate(self) -> OutboundMessage | None:
        """Model and tools in turn, from where the rows stand."""
        self.live.activity("thinking")
        try:
            self._services.steps.places.enter(self._session.id, alone=self._alone)
            await self._guest.enter(self._state)
            while True:
                if self._state.pending.rows:
                    if not await self._tools():
                        return None
                    continue
                end = await self._next()
                finished = None if end is None else await self._finish(end)
                if finished is not None and finished.state is not RunState.RUNNING:
                    return finished.reply if finished.claimed else None
        except (ModelRetry, ModelRejected) as error:
            log.error("run_failed", run_id=self._run.id, cause=error.cause, reason=str(error))
            services = self._services
            alone = not self._group and self._run.speaker.trust is Trust.OWNER
            end = turn_ends.failed(self._state, self._run.id, error, owner_alone=alone)
            retry = self._guest.retry(error, services.caller.jitter())
            finished = await self._finish(replace(end, retry=retry))
            return finished.reply if finished.claimed else None
        finally:
            self.live.activity("done")

    async def _next(self) -> Finish | None:
        """Ask the model; how the run ends, None where its step goes on."""
        state = self._state
        end = self._guest.cut(state)
        if end is not None:
            return end
        most = self._guest.max_steps(
            self._services.settings.steps_of(self._session.scope.max_steps)
        )
        if state.step >= self._guest.counted_from(state) + most:
            return turn_ends.at_limit(state, most)
        response = await self._ask_model()
        return response if isinstance(response, Finish) else await self._take(response)

    @property
    def session_id(self) -> str:
        """The session of its run."""
        return self._run.session_id

    @property
    def finished(self) -> bool:
        """Whether it has ended its run; one that waits for somebody, or was put back, has not."""
        return self._state.outcome != WAITING

    def is_idle(self, now: float) -> bool:
        """Whether it made no progress for as long as its guest lets it, by the clock's `now`."""
        return self._guest.idle_s is not None and self.live.moved <= now - self._guest.idle_s

    async def stop(self, reason: str, *, idle: bool = False) -> None:
        """End the run as cancelled, keeping what it wrote (MSG-13); or one that is `idle`, with
        what it has (SUB-21)."""
        idle_s = self._guest.idle_s if idle else None
        if idle_s is None:
            await self._finish(turn_ends.stopped(self._state, self.live.text, reason))
        else:
            await self._finish(turn_ends.idle(self._state, self.live.text, idle_s))

    async def fail(self, reason: str) -> None:
        """End the run as failed after a defect of ours: the person must not wait in silence."""
        log.error("run_failed", run_id=self._run.id, reason=reason)
        error = ModelRejected(reason, "Something went wrong inside.", cause="defect")
        await self._finish(turn_ends.failed(self._state, self._run.id, error))

    async def _ask_model(self) -> ModelResponse | Finish:
        """The model's response; or the end of the run, where its budget leaves no further call."""
        services, state = self._services, self._state
        state.append(*await self._files.take(state.window.lines))
        state.began = services.clock.monotonic()
        self.live.begin(state.step + 1)
        snapshot = self._guest.shown(await services.identity.snapshot(self._session.persona))
        specs = services.steps.specs(self._bounds)
        facts = PromptFacts(
            channel=self._run.target.channel,
            session_key=self._session.key,
            group=self._group,
            trust=self._run.speaker.trust,
        )
        present = PresentFacts(
            now_ms=services.clock.now_ms(),
            zone=services.settings.timezone,
            mode=self._session.mode,
            people=people_in([line.message for line in state.window.lines]),
            trust=self._run.speaker.trust,
            late=self._run.late,
            blocks=await self._told_by_features(),
        )
        history = _history(state.window, self._run.id, services.settings, group=self._group)
        messages = services.steps.registry.as_made((*history, *state.extra))
        request = ModelRequest(
            system=build_system(snapshot, facts, specs).text,
            messages=messages,
            present=build_present(present),
            tools=specs,
            max_output_tokens=self._max_output_tokens,
            run_id=self._run.id,
            step=state.step + 1,
            enclosed=await self._files.enclosed(messages),
            generation=self._session.generation,
        )
        chosen = self._session.model
        over = await self._budget.reserve(request, services.caller.order(chosen))
        if over is not None:
            return turn_ends.over_budget(state, over)
        return await services.caller.respond(request, chosen=chosen, on_text=self.live.write)

    @property
    def _max_output_tokens(self) -> int:
        """Tokens of one response."""
        return self._session.generation.tokens(self._services.settings.max_output_tokens)

    async def _told_by_features(self) -> tuple[str, ...]:
        """Their blocks as they are when the turn begins: its steps tell the model the same."""
        if self._blocks is None:
            audience = Audience(self._session, self._run.speaker, self._bounds.notes)
            self._blocks = await self._services.blocks.of_turn(audience)
        return self._blocks

    async def _take(self, response: ModelResponse) -> Finish | None:
        """Keep a response with calls and go on, or say how the run ends."""
        state = self._state
        calls = self._services.steps.registry.meant(response.tool_calls)
        message = AssistantMessage(
            text=response.text,
            tool_calls=calls,
            model=response.model,
            thoughts=response.thoughts,
        )
        if response.alone:
            state.forget_older(self._run.id)
        end = response_ends.end_of(response, self._max_output_tokens)
        if not end.good:
            log.warning(
                "response_cut",
                run_id=self._run.id,
                model=response.model,
                reason=end.reason,
                word=end.word,
            )
        if calls and end.good:
            await self._commit_model(message, response.usage)
            return None
        if calls and state.cut < response_ends.CUT_CALLS:
            state.cut += 1
            self._budget.unsaid(response)
            state.extra = [NoticeMessage(text=end.told(calls))]
            return None
        text = end.shown(response.text)
        if text:
            said = (line.message for line in state.window.lines)
            text = "\n\n".join([text, *response_ends.notes_of(response, said)])
        message = message.model_copy(update={"text": text, "tool_calls": ()})
        if not text:
            state.empty += 1
            if state.empty == 1:
                self._budget.unsaid(response)
                state.extra = [NoticeMessage(text=CONTINUE)]
                return None
            return turn_ends.completed(state, message, EMPTY_ANSWER, response.usage)
        return turn_ends.completed(state, message, text, response.usage)

    async def _commit_model(self, message: AssistantMessage, usage: Usage) -> None:
        services, state = self._services, self._state
        lines = state.window.lines
        self._bounds = await services.steps.bounded(
            self._bounds, self._session, lines, message.tool_calls
        )
        planned = await services.steps.plan(
            message.tool_calls, self._session.id, self._run.id, state.step + 1, self._bounds
        )
        planned = services.steps.first_states(planned)
        rows = tuple(one.row for one in planned)
        charge = self._budget.charge(usage, message.model)
        step = ModelStep(message, rows, usage, state.window_from, charge, tainted=state.tainted)
        line = await services.units.run(
            lambda unit: run_steps.commit_model(unit, self._holder, self._run.id, step),
            name="step",
        )
        services.steps.watch.decided(rows)
        if message.text:
            state.texts.append(message.text)
        state.append(line)
        state.step += 1
        state.pending = Pending(rows, planned)
        state.extra = []
        state.empty = state.cut = 0
        self._events()

    async def _tools(self) -> bool:
        """Run what may run of the pending step; False when a person must answer first."""
        services, state = self._services, self._state
        if not state.pending.planned:
            calls = [row.call for row in state.pending.rows]
            lines = state.window.lines
            self._bounds = await services.steps.bounded(self._bounds, self._session, lines, calls)
        outcome = await services.steps.execute(
            state.pending,
            holder=self._holder,
            session_id=self._session.id,
            bounds=self._bounds,
            live=self.live,
            kept=self._events,
            guest=self._guest,
        )
        if outcome.waits:
            return await self._park(outcome.waits)
        state.append(*outcome.lines)
        _tell_step(services, state)
        if outcome.session is not None:
            self._session = outcome.session
            self._bounds = bounds_for(self._policy, outcome.session, self._run)
        state.pending = NOTHING_PENDING
        return True

    async def _park(self, planned: Sequence[Planned]) -> bool:
        """Open what calls wait for; False where the run waits, True where it can go on."""
        services, state = self._services, self._state
        parked = await services.parking.park(
            self._holder,
            self._run,
            self._session,
            planned,
            window_from=state.window_from,
            bounds=self._bounds,
        )
        self._events()
        if not parked.waits:
            state.pending = Pending(tuple(parked.rows))
            return True
        self._remember(state.window.lines)
        return False

    async def _finish(self, end: Finish) -> Finished:
        """Keep the end of the run; or an answer behind which it goes on, because people said more
        while it was written."""
        services = self._services
        end = await self._guest.before_end(end)
        # Asked at the last moment: an offer holds only as long as the deliverer's lease.
        claim = self._offer(self._run.target) if end.parts else None
        end = with_troubles(end, self._state.window.lines, self._run.id)
        charge = self._budget.charge_at_end(end, self.live.text)
        end = replace(end, charge=charge, tainted=self._state.tainted)
        finished = await services.units.run(
            lambda unit: run_steps.finish(unit, self._holder, self._run.id, end, claim=claim),
            name="finish",
        )
        _tell_step(services, self._state)
        if finished.state is RunState.RUNNING:
            most = _window_tokens(services, self._session.model)
            self._state.answered(finished.lines, max_tokens=most)
            self.live.anew()
            self._events([None])
            return finished
        self._state.outcome = finished.state.value
        services.observer.ended(finished.state)
        self._remember((*self._state.window.lines, *finished.lines))
        # A run that ends without a reply may owe a word about its files.
        self._events([] if end.parts else [None])
        return finished

    def _remember(self, lines: Sequence[Line]) -> None:
        window = replace(self._state.window, lines=tuple(lines))
        self._services.cache.put(self._session.id, window)

    def _events(self, sends: Sequence[ChatAddress | None] = ()) -> None:
        """Tell that something was kept, and the deliverers where something is to be sent; None is
        the chat of the run."""
        bus = self._services.units.bus
        bus.publish(EVENTS, {"session_id": self._session.id})
        for target in (one or self._run.target for one in sends):
            bus.publish(OUTBOX, {"channel": target.channel, "account": target.account})


def _window_tokens(services: TurnServices, chosen: str | None) -> int:
    """Tokens of the conversation in a request: what is set, or what the model has room for."""
    room = services.caller.history_tokens(chosen)
    most = services.settings.window_tokens
    return most if room is None else min(most, room)


def _history(
    window: Window, run_id: str, settings: AgentSettings, *, group: bool
) -> Sequence[TranscriptMessage]:
    lines = without_refused(window.lines, run_id)
    messages = [fenced(line.message, group=group) for line in lines]
    # After the fence, so that nobody's words look like the mark.
    messages = [dated(message, settings.timezone) for message in messages]
    if sum(line.tokens for line in window.lines) <= settings.window_tokens:
        return messages
    return fitted(messages, max_tokens=settings.window_tokens)


def _tell_step(services: TurnServices, state: TurnState) -> None:
    if state.began is not None:
        services.observer.stepped(services.clock.monotonic() - state.began)
        state.began = None
