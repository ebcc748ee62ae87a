"""What people and the keeper do to a tree of agents, and how everything comes to its end."""

from functools import partial

from runtime.domain.people import Trust
from runtime.domain.runs import RunState
from runtime.features.subagents import agent_messages, slots
from runtime.features.subagents.agent_messages import How, Word
from runtime.features.subagents.ends import child_stop
from runtime.features.subagents.rows import agents_due
from runtime.features.subagents.settings import Limits
from runtime.features.subagents.spawn import children
from runtime.sessions import run_stop
from runtime.sessions.queue_modes import enqueue
from runtime.sessions.unit import Unit
from tests.stateful import children_rows
from tests.stateful.arriving import deliver
from tests.stateful.bench import inbound, speaker
from tests.stateful.children_bench import LIMITS
from tests.stateful.children_rows import Asked
from tests.stateful.children_work import ChildrenAtWork
from tests.support.kinds import unit_of


class ChildrenPlay(ChildrenAtWork):
    """All that can happen, without a choice of what does."""

    def asks(self, chat: int) -> str:
        """A person says something in a chat; the session."""
        self.messages += 1
        number = self.messages
        queued = self.run(
            lambda conn: deliver(conn, chat, number, Trust.OWNER, queue_mode="followup")
        )
        assert queued is not None
        self.holds()
        return str(self.now.all.run[queued.run_id]["session_id"])

    def tells(self, session: str, trust: Trust, number: int) -> None:
        """Somebody who is trusted so much says something to an agent."""

        def say(unit: Unit) -> None:
            lane, who = unit.lane(session), speaker(trust)
            enqueue(unit, lane, inbound(0, number), who, queue_mode="followup", debounce_ms=0)

        self.run(unit_of(say))
        self.holds()

    def starts(self) -> int:
        """The keeper lets those go on who wait for nobody; how many."""
        found = self.units.run(agents_due.startable)
        for session in found:
            assert self.run(unit_of(partial(children.start, session_id=session)))
            self.holds()
        return len(found)

    def starts_too_early(self) -> None:
        """What one look found may be over when it is acted on: nobody else is started by it."""
        found = self.units.run(agents_due.startable)
        for session in self.now.live - {*found}:
            assert not self.run(unit_of(partial(children.start, session_id=session)))
        self.holds()

    def grants(self) -> int:
        """The keeper gives out slots; how many."""
        given = self.run(unit_of(partial(slots.grant, most=self.most)))
        self.holds()
        return given

    def ends_stopped(self) -> int:
        """The keeper ends those that are to end; how many are over."""
        ended = 0
        for session in sorted(self.units.run(agents_due.stopped), key=lambda one: self.seen[one]):
            self.run(unit_of(partial(child_stop.stop, session_id=session)))
            self.holds()
            ended += session not in self.now.live
        return ended

    def stops(self, session: str) -> None:
        """Somebody stops a session; whoever is below it is to settle."""
        self.doomed |= {*self.now.below(session)}
        if session in self.now.live:
            self.doomed.add(session)
        self.run(
            unit_of(lambda unit: run_stop.stop_session(unit, session, by="Ada", reason="stop"))
        )
        self.holds()

    def stops_run(self, run_id: str) -> None:
        """Somebody stops one run."""
        self.run(unit_of(lambda unit: run_stop.stop_run(unit, run_id, by="Ada", reason="stop")))
        self.holds()

    def says(self, run_id: str, session: str, *, limits: Limits = LIMITS) -> How:
        """A run tells an agent something; one that settled goes on. Raises `Conflict`."""
        self.messages += 1
        word = Word(session, run_id, f"c{self.messages}", "somebody", "Go on.")
        how = self.run(unit_of(lambda unit: agent_messages.tell(unit, word, limits=limits)))
        self.look()
        if how == "continued":
            self.forget_waits(session)
        self.holds()
        return how

    def forget_waits(self, session: str) -> None:
        """Who began waits no more for those in front of it, whoever of them goes on."""
        for one, asked in self.asked.items():
            if not self.now.began(one):
                continue
            gone = {*asked.needs, *asked.before} if one == session else {session}
            self.asked[one] = Asked(
                tuple(other for other in asked.needs if other not in gone),
                tuple(other for other in asked.before if other not in gone),
            )

    def rests(self) -> None:
        """Stopping needs nothing but the keeper and the end of what runs; and then all ends."""
        while self.ends_stopped() or self.end_cancelled():
            pass
        assert not self.doomed & self.now.live, "a descendant of what was stopped goes on"
        while self.turns() or self.end_all():
            pass
        children_rows.the_end_is_whole(self.now)

    def turns(self) -> int:
        """Everything that the keeper and the worker find to do, once."""
        return self.ends_stopped() + self.starts() + self.grants() + self.claims(10)

    def end_cancelled(self) -> int:
        found = [row["id"] for row in self.at_work() if row["cancel"] is not None]
        for run_id in found:
            self.ends(run_id, RunState.CANCELLED)
        return len(found)

    def end_all(self) -> int:
        found = [row["id"] for row in self.at_work()]
        for run_id in found:
            self.goes_on(run_id)
        for run_id in found:
            if self.now.all.state(run_id) is RunState.RUNNING:
                self.ends(run_id, RunState.CANCELLED)
        return len(found)
