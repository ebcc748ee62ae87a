"""The word ``/persona``: which identity a conversation has, and another one for it."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runtime.commands.table import Call, Command, LookedFor, Lookups
from runtime.domain.errors import Conflict, InvalidInput
from runtime.domain.personas import Persona
from runtime.domain.printable import quoted
from runtime.sessions.personas import bind
from runtime.sessions.sessions import Session
from runtime.workspace.personas import MOST_NAMED, persona_names, read_persona

OFF: Final = "off"
UNREAD: Final = "The workspace cannot be read here."


@dataclass(frozen=True, slots=True)
class Asked:
    """What the workspace holds for somebody who asks: all names, and the persona that was named or
    what is wrong with it."""

    names: tuple[str, ...] = ()
    found: Persona | None = None
    problem: str = ""


async def _look_up(lookups: Lookups, wanted: LookedFor) -> object:
    if lookups.workspace is None:
        return None
    return await asyncio.to_thread(_look, lookups.workspace.root, wanted.rest)


def _look(root: Path, name: str) -> Asked:
    names = tuple(persona_names(root))
    if name in ("", OFF):
        return Asked(names)
    try:
        return Asked(names, found=read_persona(root, name))
    except InvalidInput as error:
        return Asked(names, problem=error.rule)


def _change(call: Call) -> str:
    """Bind what was asked for; what is said about it."""
    asked, rest = call.found, call.rest
    if not isinstance(asked, Asked):
        return UNREAD
    if not rest:
        return _now(call.session, asked.names)
    if rest != OFF and asked.found is None:
        return _sentence(f"{quoted(rest, 64)} cannot be chosen: {asked.problem}")
    try:
        bind(call.unit.conn, call.lane, asked.found, by=call.speaker.person_id)
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


PERSONA: Final = Command(
    "persona",
    "`NAME` chooses who I am here; `off`: myself again",
    _change,
    owners=True,
    look_up=_look_up,
)
