"""`Control`: what the owner does by the API, the page or the command line.

Messages go through `Gatehouse.accept` like everybody's, so there is no side door. Everything else
is one unit of work each.
"""

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from runtime.domain.decisions import PermissionMode, SessionMode, narrower
from runtime.domain.errors import Conflict, Forbidden, InvalidInput
from runtime.domain.events import EventKind
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Trust
from runtime.domain.request_keys import RequestKey, request_key
from runtime.domain.value import JsonObject, Value
from runtime.intake import access_requests, api_decisions, pairing
from runtime.intake.api_decisions import Actor, Reply, Resolution
from runtime.intake.assets import AssetLimits, Assets
from runtime.intake.sessions import SessionControl
from runtime.intake.submissions import ACCOUNT, OWNER, Item, Submitted, Submitter
from runtime.ports.bus import OUTBOX
from runtime.ports.clock import Clock
from runtime.ports.gatehouse import Gatehouse
from runtime.ports.model import ModelListing, ModelLists
from runtime.sessions import audit, idempotency, run_stop, sessions
from runtime.sessions.keys import session_key
from runtime.sessions.lanes import NewSession
from runtime.sessions.people import Pairing
from runtime.sessions.queue_modes import QUEUE_MODES
from runtime.sessions.unit import Unit, Units, Work
from runtime.views.models import PairingView, RunView, SessionView
from runtime.views.reader import one_run, one_session
from runtime.views.shapes import pairing_view

LocalChannel = Literal["web", "terminal", "api"]


@dataclass(frozen=True, slots=True)
class ControlSettings:
    """What the operator set: the bound that no session passes, defaults, and the workspace."""

    workspace: Path
    permission_mode: PermissionMode = PermissionMode.DEFAULT
    mode: SessionMode = SessionMode.EDIT
    queue_mode: str = "collect"
    assets: AssetLimits = field(default_factory=AssetLimits)
    models: tuple[str, ...] = ()
    """Those that a session may choose from; the first is the default."""


@dataclass(frozen=True, slots=True)
class ControlServices:
    """What `Control` works with; `settings` is asked each time, so that changes hold at once."""

    units: Units
    clock: Clock
    gatehouse: Gatehouse
    settings: Callable[[], ControlSettings]
    model_lists: ModelLists | None = None


@dataclass(frozen=True, slots=True)
class NewConversation:
    """A session to be made. The same `key` of the same channel names the same session."""

    channel: LocalChannel = "api"
    key: str | None = None
    title: str = ""
    mode: SessionMode | None = None
    permission_mode: PermissionMode | None = None


@dataclass(frozen=True, slots=True)
class OwnerCode:
    """A new one-time code; `replaced` where one that nobody had used stopped working for it."""

    code: str
    replaced: bool


class StoppedView(Value):
    """What a stop did: runs that are being ended, runs that are over, how many still wait, and how
    many subagents are being ended."""

    stopping: tuple[str, ...]
    ended: tuple[str, ...]
    still_queued: int
    children: int


class Control:
    """The write side of the engine, for its owner."""

    def __init__(self, services: ControlServices, *, actor: Actor | None = None) -> None:
        self._services = services
        self.units = services.units
        self.actor = actor or Actor()
        self.sessions = SessionControl(services.units, self.workspace, self.actor.id)
        self.assets = Assets(
            services.units, services.clock, self.workspace, lambda: services.settings().assets
        )
        self._submitter = Submitter(
            services.units.database,
            services.clock,
            services.gatehouse,
            workspace=self.workspace,
            assets=self.assets,
        )

    def workspace(self) -> Path:
        return self._services.settings().workspace

    async def models(self) -> ModelListing:
        """What a session may choose from, by the providers' own lists; the first is the default."""
        configured = self._services.settings().models
        lists = self._services.model_lists
        if lists is None:
            return ModelListing(configured)
        listing = await lists.listing()
        names = tuple(dict.fromkeys((*configured[:1], *listing.names)))
        return replace(listing, names=names)

    async def create_session(
        self, new: NewConversation, *, idempotency_key: str | None = None
    ) -> tuple[SessionView, bool]:
        """The session, and whether it was made now. Raises `Conflict` for a reused key."""
        settings = self._services.settings()
        if new.permission_mode is not None:
            _check_bound(settings, new.permission_mode)
        asked = [new.channel, new.key, new.title, new.mode, new.permission_mode]
        key = request_key("session", idempotency_key, asked)
        chat_id = new.key or secrets.token_hex(12)
        return await self.units.run(
            lambda unit: _create(unit, settings, new, chat_id, key), name="session"
        )

    async def submit(
        self,
        session_id: str,
        items: Sequence[Item],
        *,
        idempotency_key: str | None = None,
        timezone: str = "",
    ) -> Submitted:
        """Say something in a session; as `Submitter.submit`."""
        return await self._submitter.submit(
            session_id, items, idempotency_key=idempotency_key, timezone=timezone
        )

    async def interrupt(self, session_id: str) -> StoppedView:
        """Stop what a session does, or what it would do next (MSG-13). Raises `NotFound`."""
        by, reason = self.actor, f"stopped by {self.actor.name}"

        def work(unit: Unit) -> StoppedView:
            stopped = run_stop.stop_session(unit, session_id, by=by.id, reason=reason)
            unit.changed(session_id)
            return StoppedView(
                stopping=stopped.running,
                ended=stopped.ended,
                still_queued=stopped.still_queued,
                children=stopped.elsewhere,
            )

        return await self.units.run(work, name="stop")

    async def cancel(self, run_id: str) -> RunView:
        """End one run; doing it twice changes nothing. Raises `NotFound`."""
        by, reason = self.actor, f"stopped by {self.actor.name}"

        def work(unit: Unit) -> RunView:
            run_stop.stop_run(unit, run_id, by=by.id, reason=reason)
            return _run_changed(unit, run_id)

        return await self.units.run(work, name="cancel")

    async def resolve_approvals(self, run_id: str, batch: Sequence[Resolution]) -> RunView:
        """Decide approvals, all or none (RUN-3). Raises as `api_decisions.resolve`."""
        return await self._decide(
            run_id, lambda unit: api_decisions.resolve(unit, run_id, batch, self.actor)
        )

    async def answer_questions(self, run_id: str, batch: Sequence[Reply]) -> RunView:
        """Answer questions, all or none. Raises as `api_decisions.reply`."""
        return await self._decide(
            run_id, lambda unit: api_decisions.reply(unit, run_id, batch, self.actor)
        )

    async def _decide(self, run_id: str, settle: Work[tuple[str, ...]]) -> RunView:
        def work(unit: Unit) -> RunView:
            settle(unit)
            return _run_changed(unit, run_id)

        return await self.units.run(work, name="decide")

    async def end_session(self, session_id: str) -> SessionView:
        """Close a session for good; it stays readable. Raises `Conflict` unless it is idle."""

        def work(unit: Unit) -> SessionView:
            lane = unit.lane(session_id)
            view = one_session(unit.conn, session_id)
            if view.status != "open":
                return view
            if view.state != "idle":
                raise Conflict("the session must be idle before it ends", view.state)
            lane.record(EventKind.SESSION_CHANGED, None, {"status": "ended"})
            sessions.change(unit.conn, session_id, {"status": "ended"})
            return _session_changed(unit, session_id)

        return await self.units.run(work, name="session-end")

    async def change_session(
        self, session_id: str, values: Mapping[str, str | None]
    ) -> SessionView:
        """Set ``mode``, ``permission_mode`` (None follows the operator) or ``queue_mode``.

        Raises `NotFound`, `InvalidInput`, and `Forbidden` for a permission mode that is wider
        than the operator's.
        """
        for name, value in values.items():
            _check(self._services.settings(), name, value)

        def work(unit: Unit) -> SessionView:
            conn, lane = unit.conn, unit.lane(session_id)
            data: JsonObject = json.loads(json.dumps(dict(values)))
            sessions.change(conn, session_id, values)
            lane.record(EventKind.SESSION_CHANGED, None, data)
            audit.append(
                conn,
                actor=self.actor.id,
                action="session.changed",
                session_id=session_id,
                data=data,
            )
            return _session_changed(unit, session_id)

        return await self.units.run(work, name="session-change")

    async def approve_pairing(self, code: str, *, trust: Trust = Trust.MEMBER) -> PairingView:
        """Let a stranger in, and tell them. Raises `NotFound`, `Conflict`, `InvalidInput`."""
        if trust not in (Trust.OWNER, Trust.MEMBER, Trust.GUEST):
            raise InvalidInput("trust", "must be owner, member or guest")

        by, name = self.actor.id, self.actor.name
        return await self.units.run(
            lambda unit: _paired(
                unit, access_requests.let_in(unit.conn, code, by=by, name=name, trust=trust)[0]
            ),
            name="pairing",
        )

    async def deny_pairing(self, code: str) -> PairingView:
        """Turn a stranger away. Raises `NotFound` or `Conflict`."""
        by, name = self.actor.id, self.actor.name
        return await self.units.run(
            lambda unit: _paired(
                unit, access_requests.turn_away(unit.conn, code, by=by, name=name)[0]
            ),
            name="pairing",
        )

    async def new_owner_code(self) -> OwnerCode:
        """A one-time code that makes its sender an owner; an earlier one stops working."""

        def work(unit: Unit) -> OwnerCode:
            audit.append(unit.conn, actor=self.actor.id, action="owner_code.made", data={})
            replaced = pairing.has_owner_code(unit.conn)
            return OwnerCode(pairing.replace_owner_code(unit.conn), replaced)

        return await self.units.run(work, name="owner-code")


def _run_changed(unit: Unit, run_id: str) -> RunView:
    """A run as the unit leaves it; whoever watches its session is told."""
    unit.save()
    view = one_run(unit.conn, run_id)
    unit.changed(view.session_id)
    return view


def _session_changed(unit: Unit, session_id: str) -> SessionView:
    """A session as the unit leaves it; whoever watches it is told."""
    unit.save()
    unit.changed(session_id)
    return one_session(unit.conn, session_id)


def _create(
    unit: Unit,
    settings: ControlSettings,
    new: NewConversation,
    chat_id: str,
    key: RequestKey | None,
) -> tuple[SessionView, bool]:
    conn = unit.conn
    kept = idempotency.claim(conn, key)
    if kept is not None:
        return one_session(conn, str(kept["session_id"])), False
    address = ChatAddress(channel=new.channel, account=ACCOUNT, chat_id=chat_id)
    name = session_key(address, OWNER, scope="room")
    mode = new.mode or settings.mode
    lane = unit.create(
        NewSession(name, address, mode.value, settings.queue_mode, new.title.strip())
    )
    found = sessions.by_key(conn, name) if lane is None else sessions.get(conn, lane.session_id)
    if found is None:
        raise Conflict(f"the session {name} is being made by someone else")
    if lane is not None and new.permission_mode is not None:
        sessions.change(conn, found.id, {"permission_mode": new.permission_mode.value})
    idempotency.keep(conn, key, {"session_id": found.id})
    return _session_changed(unit, found.id), lane is not None


def _check(settings: ControlSettings, name: str, value: str | None) -> None:
    if name == "queue_mode" and value not in QUEUE_MODES:
        raise InvalidInput("queue_mode", f"must be one of {', '.join(QUEUE_MODES)}")
    if name == "mode" and value not in [one.value for one in SessionMode]:
        raise InvalidInput("mode", f"must be one of {', '.join(SessionMode)}")
    if name == "permission_mode" and value is not None:
        if value not in [one.value for one in PermissionMode]:
            raise InvalidInput(name, f"must be one of {', '.join(PermissionMode)}")
        _check_bound(settings, PermissionMode(value))


def _check_bound(settings: ControlSettings, mode: PermissionMode) -> None:
    bound = settings.permission_mode
    if narrower(bound, mode) is not mode:
        raise Forbidden(f"permission_mode: {mode} is wider than the operator's {bound}")


def _paired(unit: Unit, found: Pairing) -> PairingView:
    """A request as it was decided; what its sender is told waits to be sent."""
    unit.say(OUTBOX, {"channel": found.channel, "account": found.account})
    return pairing_view(found)
