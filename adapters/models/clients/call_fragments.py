"""Which tool call a fragment of a stream belongs to. Pure.

OpenAI numbers its calls and names each once. Other servers send every call whole with the index 0,
repeat the name with each fragment, give each fragment an id of its own, or send no index at all.
"""

import json
from dataclasses import dataclass, field
from typing import Final

_NO_ARGUMENTS: Final[tuple[object, ...]] = (None, "", {})


@dataclass(slots=True)
class _Call:
    """A call as far as it came; `number` is its place among the calls of the response."""

    number: int
    index: object
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    whole: bool = False

    @property
    def has_arguments(self) -> bool:
        return self.whole or any(self.pieces)

    @property
    def complete(self) -> bool:
        """Whether its arguments are a JSON object, to which nothing can be added."""
        self.whole = self.whole or _is_object("".join(self.pieces))
        return self.whole


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fragment goes: the call's number, and what of its id and name is new."""

    number: int
    id: str | None
    name: str | None


class CallFragments:
    """Follows the calls of one response."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def place(
        self, *, index: object, identifier: str | None, name: str | None, arguments: object
    ) -> Place:
        """The place of the next fragment: the call with its id, then with its index, then the last.

        A fragment begins a new call where it brings arguments behind complete ones, or another id
        behind a call that is not open.
        """
        call = self._known(index, identifier)
        if call is None or self._is_another(call, index, identifier, name, arguments):
            call = _Call(len(self._calls), index)
            self._calls.append(call)
        fresh = identifier if identifier and not call.id else None
        call.id = call.id or identifier or ""
        named = _new_part(call, name)
        call.name += named or ""
        if isinstance(arguments, str):
            call.pieces.append(arguments)
        elif arguments not in _NO_ARGUMENTS:
            call.whole = True
        return Place(call.number, fresh, named)

    def _known(self, index: object, identifier: str | None) -> _Call | None:
        newest_first = self._calls[::-1]
        if identifier:
            for call in newest_first:
                if call.id == identifier and call.index == index:
                    return call
            for call in newest_first:
                if call.id == identifier:
                    return call
        if index is None:
            return self._calls[-1] if self._calls else None
        return next((call for call in newest_first if call.index == index), None)

    @staticmethod
    def _is_another(
        call: _Call, index: object, identifier: str | None, name: str | None, arguments: object
    ) -> bool:
        if not name:
            # Without a name it is no call: a fragment of the one before, whatever its id is.
            return False
        same_id = not identifier or not call.id or identifier == call.id
        if call.complete:
            return arguments not in _NO_ARGUMENTS or not same_id or name != call.name
        if same_id and call.index == index:
            return False
        # The id or the index is another one. Servers that make one up for each fragment repeat the
        # name, and the arguments go on.
        goes_on = isinstance(arguments, str) and arguments and not _is_object(arguments)
        return name != call.name or not (call.has_arguments or goes_on)


def _is_object(text: str) -> bool:
    """Whether the text is a JSON object. Asked of each fragment that repeats its name, so what
    cannot be one is not read."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _new_part(call: _Call, name: str | None) -> str | None:
    """What a fragment adds to the name of its call: names come once, whole or in pieces."""
    if not name or not call.name:
        return name or None
    if call.has_arguments or name == call.name:
        return None
    return name.removeprefix(call.name)
