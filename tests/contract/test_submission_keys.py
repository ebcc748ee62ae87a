"""One key, one answer: the run that a request is told of is the one that answers (RUN-4).

Two requests with one key are held at the door behind the look for an earlier answer, so each of
them believes that it is the first; what happens between their entries is the test's.
"""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from adapters.system.clock import SystemClock
from runtime.bus.memory import MemoryBus
from runtime.domain.errors import Conflict
from runtime.domain.messages import ButtonPress, Deletion, InboundMessage, Move, TextPart
from runtime.domain.people import Sender
from runtime.domain.request_keys import RequestKey
from runtime.domain.runs import Holder, RunState, Usage
from runtime.domain.transcript import AssistantMessage, UserMessage
from runtime.intake.control import Control, ControlServices, ControlSettings, NewConversation
from runtime.intake.gatehouse import Intake, IntakeSettings
from runtime.intake.submissions import Submitted
from runtime.ports.gatehouse import Accepted, Home, Pressed
from runtime.sessions import claims, run_steps, run_stop, transcripts
from runtime.sessions.run_steps import Finish
from runtime.sessions.unit import Units, in_unit
from runtime.sessions.window import WindowCache
from runtime.store import Connection, Database, leases
from runtime.views.reader import Views
from tests.conftest import FailAfter
from tests.fakes.model import Gate
from tests.support.kinds import KINDS

WORKER = "w1"


class Door:
    """The gateway's door, which lets messages in one by one, as the test opens their gates."""

    def __init__(self, intake: Intake, gates: Sequence[Gate]) -> None:
        self._intake = intake
        self._gates = list(gates)

    async def accept(
        self,
        message: InboundMessage,
        *,
        session_id: str | None = None,
        key: RequestKey | None = None,
    ) -> Accepted:
        await self._gates.pop(0).wait()
        return await self._intake.accept(message, session_id=session_id, key=key)

    async def press(self, press: ButtonPress) -> Pressed:
        return await self._intake.press(press)

    async def revise(self, message: InboundMessage) -> Accepted:
        return await self._intake.revise(message)

    async def withdraw(self, deletion: Deletion) -> Accepted:
        return await self._intake.withdraw(deletion)

    async def move(self, move: Move) -> None:
        await self._intake.move(move)

    async def home(self, *, channel: str, account: str, sender: Sender) -> Home:
        return await self._intake.home(channel=channel, account=account, sender=sender)


def control_of(store: Database, path: Path, *gates: Gate) -> Control:
    """A process's own `Control`: a second one stands for a restart."""
    units = Units(store, MemoryBus(), KINDS)
    intake = Intake(units, IntakeSettings())
    door = Door(intake, gates) if gates else intake
    settings = ControlSettings(workspace=path)
    return Control(ControlServices(units, SystemClock(), door, settings=lambda: settings))


async def at_work(store: Database, control: Control, mode: str) -> tuple[str, str, Holder]:
    """(session, run, its worker) of a run whose model is asked."""
    session, _ = await control.create_session(NewConversation())
    await control.change_session(session.id, {"queue_mode": mode})
    first = await control.submit(session.id, ["one"])

    def claim(conn: Connection) -> Holder:
        name = f"{leases.PROCESS}{WORKER}"
        holder = Holder(WORKER, leases.acquire(conn, name=name, holder=WORKER, ttl_ms=60_000) or 0)
        taken = in_unit(
            conn, KINDS, lambda unit: claims.claim(unit, holder, most=1, cache=WindowCache())
        )
        assert [one.run.id for one in taken.runs] == [first.run_id]
        return holder

    return session.id, first.run_id or "", await store.write(claim, name="claim")


def ends(state: RunState) -> Callable[[Connection, Holder, str], None]:
    """An end of a run that heard nothing of what came meanwhile."""
    answered = state is RunState.COMPLETED
    message = AssistantMessage(text="the answer") if answered else None
    parts = () if state is RunState.CANCELLED else (TextPart(markdown="the answer"),)

    def end(conn: Connection, holder: Holder, run_id: str) -> None:
        if state is RunState.CANCELLED:
            in_unit(
                conn,
                KINDS,
                lambda unit: run_stop.stop_run(unit, run_id, by="Ada", reason="stopped"),
            )
        finish = Finish(state, Usage(), 1, message, parts, "why")
        in_unit(
            conn, KINDS, lambda unit: run_steps.finish(unit, holder, run_id, finish, claim=None)
        )

    return end


async def both_submit(
    store: Database,
    control: Control,
    session: str,
    gates: Sequence[Gate],
    between: Callable[[], object],
) -> tuple[Submitted, Submitted]:
    """Two requests with one key; `between` happens once one of them is in."""
    async with asyncio.TaskGroup() as group:
        parties = [
            group.create_task(
                control.submit(session, ["two"], idempotency_key="k"), name=f"party {n}"
            )
            for n in range(2)
        ]
        for gate in gates:
            await gate.reached.wait()
        gates[0].open.set()
        done, _ = await asyncio.wait(parties, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        await between()
        gates[1].open.set()
    first = done.pop()
    other = next(party for party in parties if party is not first)
    return first.result(), other.result()


@pytest.mark.requirement("RUN-4", "MSG-5")
async def test_a_steered_message_names_the_run_that_answers_it(
    store: Database, tmp_path: Path, fail_after: FailAfter
) -> None:
    """Also where that has its answer to the message before, between the two requests."""
    gates = [Gate(), Gate()]
    session, run_id, holder = await at_work(store, control_of(store, tmp_path), "steer")
    end = ends(RunState.COMPLETED)
    async with fail_after():
        first, second = await both_submit(
            store,
            control_of(store, tmp_path, *gates),
            session,
            gates,
            lambda: store.write(lambda conn: end(conn, holder, run_id), name="finish"),
        )
    assert first == second
    assert first.run_id == run_id
    lines = await store.read(lambda conn: transcripts.since(conn, session, transcript=1, first=1))
    said = [(one.message.text, one.run_id) for one in lines if isinstance(one.message, UserMessage)]
    assert said == [("one", run_id), ("two", run_id)]
    run = await Views(store).run(run_id)
    assert (run.state, run.passed_on_to) == (RunState.RUNNING, None)
    await store.write(lambda conn: end(conn, holder, run_id), name="finish")
    assert (await Views(store).run(run_id)).state is RunState.COMPLETED
    again = control_of(store, tmp_path)
    assert await again.submit(session, ["two"], idempotency_key="k") == first


@pytest.mark.requirement("RUN-4", "MSG-5")
@pytest.mark.parametrize("state", [RunState.FAILED, RunState.CANCELLED])
async def test_a_run_that_ends_unheard_says_which_one_answers(
    store: Database, tmp_path: Path, fail_after: FailAfter, state: RunState
) -> None:
    gates = [Gate(), Gate()]
    session, run_id, holder = await at_work(store, control_of(store, tmp_path), "steer")
    end = ends(state)
    async with fail_after():
        first, second = await both_submit(
            store,
            control_of(store, tmp_path, *gates),
            session,
            gates,
            lambda: store.write(lambda conn: end(conn, holder, run_id), name="finish"),
        )
    assert first == second
    assert first.run_id == run_id
    run = await Views(store).run(run_id)
    assert run.state is state
    after = await Views(store).run(run.passed_on_to or "")
    assert (after.state, after.id == run_id) == (RunState.QUEUED, False)
    again = control_of(store, tmp_path)
    assert await again.submit(session, ["two"], idempotency_key="k") == first


@pytest.mark.requirement("RUN-4", "MSG-5")
@pytest.mark.parametrize("mode", ["collect", "followup", "interrupt"])
async def test_two_requests_with_one_key_make_one_run_in_every_mode(
    store: Database, tmp_path: Path, fail_after: FailAfter, mode: str
) -> None:
    gates = [Gate(), Gate()]
    session, run_id, holder = await at_work(store, control_of(store, tmp_path), mode)
    state = RunState.CANCELLED if mode == "interrupt" else RunState.COMPLETED
    end = ends(state)
    async with fail_after():
        first, second = await both_submit(
            store,
            control_of(store, tmp_path, *gates),
            session,
            gates,
            lambda: store.write(lambda conn: end(conn, holder, run_id), name="finish"),
        )
    assert first == second
    assert first.run_id != run_id
    assert (await Views(store).run(first.run_id or "")).state is RunState.QUEUED
    assert (await Views(store).runs(session_id=session)).total_count == 2


@pytest.mark.requirement("RUN-4")
async def test_a_repeat_is_answered_as_before_also_when_the_session_has_ended(
    store: Database, tmp_path: Path
) -> None:
    control = control_of(store, tmp_path)
    session, _ = await control.create_session(NewConversation())
    first = await control.submit(session.id, ["/status"], idempotency_key="k")
    assert (first.disposition, first.run_id) == ("command", None)
    await control.end_session(session.id)
    again = control_of(store, tmp_path)
    assert await again.submit(session.id, ["/status"], idempotency_key="k") == first
    with pytest.raises(Conflict, match="ended"):
        await again.submit(session.id, ["/status"], idempotency_key="other")
