"""Session rows: a conversation's key, place and settings. Its queue is the lane's business."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection, Row, RowMapping, bindparam, select, update

from runtime.domain.capabilities import Capabilities, Spend, meet
from runtime.domain.decisions import PermissionMode, SessionMode, narrower
from runtime.domain.errors import NotFound
from runtime.domain.grants import Grant
from runtime.domain.messages import ChatAddress
from runtime.domain.routes import AS_IT_IS, Generation
from runtime.sessions.tables import lanes, sessions
from runtime.store.database import now_ms
from runtime.store.payloads import kept
from runtime.store.row_values import from_row
from runtime.store.statements import hot


@dataclass(frozen=True, slots=True)
class Scope:
    """What a session is bounded by of its own, beside its modes (POL-5). `tools` are those that it
    may use, `max_steps` the steps of one run; None where nothing bounds them. `no_writing`: its
    commands get a view of the files that cannot be written. `capabilities` bound the other axes,
    None where nothing does."""

    tools: frozenset[str] | None = None
    max_steps: int | None = None
    no_writing: bool = False
    capabilities: Capabilities | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """The persona that a session was given: its name, and the digest of its files as they were."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation. `grants` are what a person allowed for this session (APR-1). Without
    a `persona` its identity files are the live workspace's (CTX-11). `capability_scope` is what its
    owner narrowed it to, None where nobody did; `scope` is all that bounds it, with that in it."""

    id: str
    key: str
    address: ChatAddress
    title: str
    status: str
    mode: SessionMode
    permission_mode: PermissionMode | None
    queue_mode: str
    model: str | None
    generation: Generation
    agent: str
    grants: tuple[Grant, ...]
    scope: Scope
    capability_scope: Capabilities | None
    persona: Bound | None
    created_ms: int
    updated_ms: int
    transcript: int
    kind: str
    parent_id: str | None

    @property
    def spend(self) -> Spend:
        """What it may use up."""
        return Spend() if self.scope.capabilities is None else self.scope.capabilities.spend


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What a child's session has besides its parent's: its type, a scope of its own, its model with
    how it writes, and its permission mode (None: its parent's)."""

    agent: str
    scope: Scope
    model: str | None = None
    generation: Generation | None = None
    mode: PermissionMode | None = None


_QUERY = select(sessions, lanes.c.transcript, lanes.c.kind, lanes.c.parent_id).join(
    lanes, lanes.c.session_id == sessions.c.id
)
_BY_ID = hot(_QUERY.where(sessions.c.id == bindparam("the_session")))


def get(conn: Connection, session_id: str) -> Session:
    """Raises `NotFound`."""
    row = _BY_ID.first(conn, the_session=session_id)
    if row is None:
        raise NotFound("session", session_id)
    return _session(row)


def get_all(conn: Connection, session_ids: Collection[str]) -> Mapping[str, Session]:
    """Those of these sessions that there are, by their ids."""
    found = conn.execute(_QUERY.where(sessions.c.id.in_(session_ids)))
    return {row.id: _session(row) for row in found}


def by_key(conn: Connection, key: str) -> Session | None:
    """The session of a place."""
    row = conn.execute(_QUERY.where(sessions.c.key == key)).first()
    return None if row is None else _session(row)


def listing(
    conn: Connection, *, limit: int, before: tuple[int, str] | None = None
) -> Sequence[Session]:
    """Newest activity first; `before` is (updated_ms, id) of the last one seen."""
    query = _QUERY.order_by(sessions.c.updated_ms.desc(), sessions.c.id.desc()).limit(limit)
    if before is not None:
        updated, last = before
        query = query.where(
            (sessions.c.updated_ms < updated)
            | ((sessions.c.updated_ms == updated) & (sessions.c.id < last))
        )
    return [_session(row) for row in conn.execute(query)]


def change(conn: Connection, session_id: str, values: Mapping[str, object]) -> None:
    """Change columns of a session."""
    conn.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(updated_ms=now_ms(conn), **values)
    )


def archive(conn: Connection, session_id: str, archived: bool) -> None:
    """Put a session aside, or take it back. What happens in it later takes it back too."""
    now = now_ms(conn)
    conn.execute(
        update(sessions)
        .where(sessions.c.id == session_id)
        .values(updated_ms=now, archived_ms=now if archived else None)
    )


def grant(conn: Connection, session: Session, given: Grant) -> None:
    """Add what a person allowed for this session."""
    if given not in session.grants:
        change(conn, session.id, {"grants": _kept_grants((*session.grants, given))})


def inherit(conn: Connection, session_id: str, parent: Session, own: Inheritance) -> None:
    """Give a child's session what it has of its parent's, as copies, and what is its own. Of the
    two permission modes the narrower holds."""
    mode = parent.permission_mode
    if own.mode is not None:
        mode = narrower(own.mode, mode)
    generation = own.generation
    if generation is None:
        # What was set for one model says nothing about another.
        same = own.model in (None, parent.model)
        generation = parent.generation if same else AS_IT_IS
    change(
        conn,
        session_id,
        {
            "agent": own.agent,
            "permission_mode": mode,
            "grants": _kept_grants(parent.grants),
            "scope": _kept_scope(own.scope),
            "model": own.model or parent.model,
            "generation": kept_generation(generation),
            "persona": parent.persona.name if parent.persona else None,
            "persona_digest": parent.persona.digest if parent.persona else None,
        },
    )


def narrowed(scope: Scope, own: Capabilities | None) -> Scope:
    """What both allow."""
    if own is None:
        return scope
    above = scope.capabilities
    return replace(scope, capabilities=own if above is None else meet(above, own))


def narrow(conn: Connection, session_id: str, own: Capabilities | None) -> None:
    """Keep what the owner narrowed a session to; None where nothing is left of it."""
    text = None if own is None else own.model_dump_json(exclude_defaults=True)
    change(conn, session_id, {"capability_scope": text})


def _session(row: Row[tuple[object, ...]]) -> Session:
    return session_of(row._mapping)


def session_of(found: RowMapping | Mapping[str, Any]) -> Session:
    """A session by the columns of its row, and by its lane's `transcript`, `kind` and
    `parent_id`."""
    mode = found["permission_mode"]
    own = found["capability_scope"]
    # Read strictly, as in `_scope`.
    narrowing = None if own is None else Capabilities.model_validate(json.loads(own))
    return from_row(
        Session,
        found,
        address=kept(ChatAddress, found["address"]),
        mode=SessionMode(found["mode"]),
        permission_mode=None if mode is None else PermissionMode(mode),
        generation=_generation(found["generation"]),
        grants=_grants(found["grants"]),
        scope=narrowed(_scope(found["scope"]), narrowing),
        capability_scope=narrowing,
        persona=_bound(found["persona"], found["persona_digest"]),
    )


def kept_generation(generation: Generation) -> str | None:
    """As the column holds it."""
    return generation.model_dump_json(exclude_none=True) if generation.given else None


def _generation(text: str | None) -> Generation:
    return AS_IT_IS if text is None else kept(Generation, text)


def _kept_grants(grants: Sequence[Grant]) -> str:
    return json.dumps([one.model_dump(mode="json", exclude_defaults=True) for one in grants])


def _grants(text: str) -> tuple[Grant, ...]:
    return tuple(kept(Grant, json.dumps(one)) for one in json.loads(text))


def _kept_scope(scope: Scope) -> str:
    """Always with the tools: a reader that knows no other bound must find these."""
    values: dict[str, object] = {"tools": sorted(scope.tools or ())}
    if scope.max_steps is not None:
        values["max_steps"] = scope.max_steps
    if scope.no_writing:
        values["no_writing"] = True
    if scope.capabilities is not None:
        bounds = scope.capabilities.model_dump(mode="json", exclude_defaults=True)
        values["capabilities"] = bounds
    return json.dumps(values)


def _scope(text: str | None) -> Scope:
    if text is None:
        return Scope()
    values = json.loads(text)
    return Scope(
        tools=frozenset(values["tools"]),
        max_steps=values.get("max_steps"),
        no_writing=values.get("no_writing", False),
        # Read strictly: an axis that is passed over would be no bound.
        capabilities=Capabilities.model_validate(values.get("capabilities", {})),
    )


def _bound(name: str | None, digest: str | None) -> Bound | None:
    return None if name is None or digest is None else Bound(name, digest)
