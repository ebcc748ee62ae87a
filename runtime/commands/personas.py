"""The word ``/persona``: which identity a conversation has, and another one for it."""

from dataclasses import dataclass
from typing import Final

from runtime.domain.errors import Conflict
from runtime.sessions.personas import bind
from runtime.store import Connection
from runtime.store.lanes import Lane
from runtime.store.sessions import Session
from runtime.workspace.personas import MOST_NAMED, Persona

OFF: Final = "off"
UNREAD: Final = "The workspace cannot be read here."


@dataclass(frozen=True, slots=True)
class Asked:
    """What the workspace holds for somebody who asks: all names, and the persona that was named or
    what is wrong with it."""

    names: tuple[str, ...] = ()
    found: Persona | None = None
    problem: str = ""


def change(
    conn: Connection, lane: Lane, session: Session, asked: Asked | None, *, rest: str, by: str
) -> str:
    """Bind what was asked for; what is said about it."""
    if asked is None:
        return UNREAD
    if not rest:
        return _now(session, asked.names)
    if rest != OFF and asked.found is None:
        return _sentence(f"{rest[:64]!r} cannot be chosen: {asked.problem}")
    try:
        bind(conn, lane, asked.found, by=by)
    except Conflict as error:
        return _sentence(str(error))
    if asked.found is None:
        return "I use the workspace's own identity files again."
    name, files = asked.found.name, ", ".join(asked.found.files)
    return f"From the next message on I am {name} here. I use these files as they are now: {files}."


def _now(session: Session, names: tuple[str, ...]) -> str:
    bound = session.persona
    own = (
        f"The persona is {bound.name}."
        if bound
        else "No persona is chosen. I use the workspace's own files."
    )
    known = ", ".join(names[:MOST_NAMED]) if names else "none"
    return f"{own} I can be: {known}. `/persona {OFF}` goes back to the workspace's own files."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
