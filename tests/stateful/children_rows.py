"""Everything about children at one moment, beside what was asked for, and what must hold of both.

What was asked for is kept by the machine, not read from the engine's own rows of who waits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlalchemy import Connection, select

from runtime.domain.runs import ACTIVE, WAITING, RunState
from runtime.features.subagents.spawn.spawn_arguments import AgentRequest
from runtime.features.subagents.tables import agent_slots, agents
from runtime.sessions.lanes import OPEN, SHUT
from tests.stateful import invariants, snapshot
from tests.stateful.snapshot import Record, Snapshot

LIVE = ACTIVE | {RunState.QUEUED}
GENERAL = (
    invariants.one_active_run_a_lane,
    invariants.no_call_without_a_decision,
    invariants.numbers_are_dense,
    invariants.transcripts_are_well_formed,
    invariants.parked_runs_wait_for_somebody,
    invariants.holders_are_those_of_running_runs,
    invariants.the_last_event_says_the_state,
)
"""What holds of every lane, whosever it is."""


@dataclass(frozen=True)
class Asked:
    """How one agent was asked for: whose results it needs, and who of its group came before it; by
    their sessions."""

    needs: tuple[str, ...]
    before: tuple[str, ...]


@dataclass(frozen=True)
class Town:
    """All rows, with those of agents and slots, and what was asked for by session."""

    all: Snapshot
    agents: Mapping[str, Record]
    slots: Sequence[Record]
    asked: Mapping[str, Asked]

    @cached_property
    def lane(self) -> Mapping[str, Record]:
        """Lanes by their session."""
        return {row["session_id"]: row for row in self.all.lanes}

    @cached_property
    def live(self) -> frozenset[str]:
        """Agents that have not settled."""
        return frozenset(one for one, row in self.agents.items() if row["settled_ms"] is None)

    @cached_property
    def named(self) -> Mapping[tuple[str, str], str]:
        """Agents by their tree and name."""
        return {(row["tree_id"], row["name"]): one for one, row in self.agents.items()}

    @cached_property
    def settled(self) -> frozenset[str]:
        """Agents that have."""
        return frozenset(self.agents) - self.live

    def runs_of(self, session: str) -> Sequence[Record]:
        """A session's runs in their order."""
        return self.all.runs_of.get(session, ())

    def began(self, session: str) -> bool:
        """Whether anything of an agent ever ran."""
        return any(row["started_ms"] is not None for row in self.runs_of(session))

    def children(self, session: str) -> Sequence[str]:
        """Those that a session spawned."""
        return [one for one, row in self.agents.items() if row["parent_id"] == session]

    def below(self, session: str) -> Iterator[str]:
        """Live descendants of a session, over live ones."""
        for one in self.children(session):
            if one in self.live:
                yield one
                yield from self.below(one)

    def all_below(self, session: str) -> Sequence[Record]:
        """All descendants, also those that settled."""
        found = [session]
        for one in found:
            found += self.children(one)
        return [self.agents[one] for one in found[1:]]

    def broken(self, session: str) -> bool:
        """Whether something that an agent needs has ended otherwise than well."""
        needed = [self.agents[one] for one in self.asked[session].needs]
        return any(one["status"] not in (None, "completed") for one in needed)

    def waits(self) -> Mapping[str, frozenset[str]]:
        """Whom each live agent waits for before it settles: a parent for its children, awaited or
        not, because it is run again by each of them."""
        return {
            one: frozenset((*self.asked[one].needs, *self.asked[one].before, *self.children(one)))
            & self.live
            for one in self.live
        }

    def would_wait(
        self, parent: str, wanted: Sequence[AgentRequest]
    ) -> Mapping[str, frozenset[str]]:
        """The same with children more of `parent`."""
        tree = self.agents[parent]["tree_id"] if parent in self.agents else parent
        found = dict(self.waits())
        named = {name: one for (of, name), one in self.named.items() if of == tree}
        named |= {one.id: one.id for one in wanted if one.id is not None}
        ahead = {one: self.agents[one]["group_name"] for one in self.live & {*named.values()}}
        for one in wanted:
            before = {name for name, group in ahead.items() if group and group == one.group}
            needs = {named[need] for need in one.depends_on if need in named}
            found[one.id or ""] = before | needs - self.settled
            ahead[one.id or ""] = one.group
        if parent in found:
            found[parent] |= {one.id or "" for one in wanted}
        return found


def take(conn: Connection, asked: Mapping[str, Asked]) -> Town:
    """Read everything, as a unit."""
    rows = conn.execute(select(agents).order_by(agents.c.tree_id, agents.c.place)).mappings().all()
    slots = conn.execute(select(agent_slots)).mappings().all()
    return Town(snapshot.take(conn), {row["session_id"]: row for row in rows}, slots, asked)


def circle(waits: Mapping[str, frozenset[str]]) -> frozenset[str]:
    """Those who wait for each other, or for such; none where everybody can have their turn."""
    left = dict(waits)
    while free := [one for one, others in left.items() if not others & left.keys()]:
        for one in free:
            del left[one]
    return frozenset(left)


def check(now: Town, *, most: int) -> None:
    """Assert what holds of agents after every unit, with `most` slots."""
    slots_are_those_of_open_lanes(now, most)
    for session in now.agents:
        a_lane_says_what_its_agent_does(now, session)
        nobody_begins_too_early(now, session)
    groups_go_one_at_a_time(now)
    assert not circle(now.waits()), "these wait for each other for ever"


def check_lanes(now: Town) -> None:
    """Assert what holds of every lane, a person's or a child's."""
    for general in GENERAL:
        general(now.all)


def slots_are_those_of_open_lanes(now: Town, most: int) -> None:
    """SUB-13: as many as there may be, each for a lane that runs, or is to at once."""
    held = [row["session_id"] for row in now.slots if row["session_id"] is not None]
    there = [row["session_id"] for row in now.all.lanes if row["gate"] == OPEN]
    assert sorted(held) == sorted(there)
    assert len(there) <= most
    assert not {*there} - now.agents.keys(), "a person's turn takes no slot"
    for session in there:
        states = {RunState(row["state"]) for row in now.runs_of(session)} & LIVE
        assert states, "a slot for nothing"
        assert not states & WAITING, "a waiter holds a slot"


def a_lane_says_what_its_agent_does(now: Town, session: str) -> None:
    """It runs, wants to, is held, or has nothing to do; one that settled has nothing for good."""
    lane, agent = now.lane[session], now.agents[session]
    live = [row for row in now.runs_of(session) if RunState(row["state"]) in LIVE]
    queued = [row for row in live if row["state"] == "queued"]
    head = queued[0]["ready_ms"] if queued and not lane["active_run"] else None
    assert (lane["ready_ms"] is not None) == (lane["gate"] == OPEN and head is not None)
    assert lane["wants_ms"] == (head if lane["gate"] == SHUT else None)
    if agent["settled_ms"] is not None:
        assert not live, f"{agent['name']} has settled and goes on"
    elif not live and agent["stop"] is None:
        assert [one for one in now.children(session) if one in now.live], "nothing will end it"
    if any(row["state"] == "running" for row in live):
        assert lane["gate"] == OPEN, "it runs without a slot"


def nobody_begins_too_early(now: Town, session: str) -> None:
    """SUB-11, SUB-12: what an agent needs is there before it begins, and its group's turn."""
    agent, asked = now.agents[session], now.asked[session]
    began = [row["started_ms"] for row in now.runs_of(session) if row["started_ms"] is not None]
    if began:
        for other in (*asked.needs, *asked.before):
            settled = now.agents[other]["settled_ms"]
            assert settled is not None, f"{agent['name']} began before {now.agents[other]['name']}"
            assert settled <= min(began)
        assert not (now.broken(session) and agent["on_failure"] == "fail")
    elif agent["status"] == "failed":
        assert now.broken(session)
        assert agent["on_failure"] == "fail"
    elif agent["status"] is not None:
        asked_to_end = any(row["cancel"] is not None for row in now.runs_of(session))
        assert (agent["status"], asked_to_end) == ("cancelled", True), "it was never run"


def groups_go_one_at_a_time(now: Town) -> None:
    """SUB-12: who of a group is at work comes after all that ended, and before all that wait."""
    at_work: dict[tuple[str, str], list[str]] = {}
    for session in now.live:
        row = now.agents[session]
        if row["group_name"] is not None and now.began(session):
            at_work.setdefault((row["tree_id"], row["group_name"]), []).append(row["name"])
    for names in at_work.values():
        assert len(names) == 1, f"{names} of one group run together"


def the_end_is_whole(now: Town) -> None:
    """After everything ran out: who was asked for has settled, and everybody was told once."""
    check_lanes(now)
    assert not now.live
    assert not [row for row in now.slots if row["session_id"] is not None]
    assert not [row for row in now.all.open_calls if row["state"] == "open"]
    assert not [row for row in now.all.runs if RunState(row["state"]) in LIVE]
    told = {
        session: row
        for row in now.all.inputs
        for session, agent in now.agents.items()
        if row["identity"] == f"handoff:{session}:{agent['settled_ms']}"
    }
    for session, agent in now.agents.items():
        due = agent["mode"] == "background" and not agent["quiet"]
        assert (session in told) == due, f"{agent['name']} is told {'never' if due else 'twice'}"
        if due:
            assert told[session]["session_id"] == agent["parent_id"]
            run = now.all.run[told[session]["run_id"]]
            assert told[session]["state"] == "taken" or run["state"] == "cancelled"
        elif agent["mode"] == "await":
            calls_hold_their_children(now, agent)


def calls_hold_their_children(now: Town, agent: Record) -> None:
    """The call that awaited an agent gives its result, unless it was withdrawn."""
    rows = now.all.calls_of[agent["run_id"], agent["step"]]
    row = next(one for one in rows if one["place"] == agent["call_place"])
    result = snapshot.result_of(row)
    assert result is not None
    if result["status"] == "ok":
        header = f"The subagent {agent['name']} ({agent['type']}) {agent['status']} after"
        assert result["content"].count(header) == 1
    else:
        assert result["status"] == "cancelled"
        assert now.all.run[agent["run_id"]]["state"] == "cancelled", "who asked was stopped"
