"""Whether somebody other than the model gave a whole web address (POL-10). Pure.

Whoever controls the model could send out what it has read in the address of a page. So an address
counts where it stands, whole, in a person's message, or in a result that came from outside: a page
that was fetched, a file that somebody sent, an answer of a search. What a model can make appear
does not count: its own texts and arguments, the output of commands, files that it may write
without asking, the words of its subagents, and what it had itself asked at a later time. Nor does
an address in a result count that the model had written itself before, because a page can give back
what it was asked for.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from runtime.domain.transcript import (
    AssistantMessage,
    ToolMessage,
    TranscriptMessage,
    UserMessage,
)

_INSIDE = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_~/?&=%+$@*!.,;:'"
)
"""Characters by which an address goes on; a letter of another script counts as well."""
_RUN = re.compile(r"[.,;:!?']*")
"""Characters that end a sentence where nothing of an address follows them."""


def given_address(messages: Iterable[TranscriptMessage], address: str) -> bool:
    """Whether `address` was given in these messages, which are in their order."""
    forms = _forms(address)
    wrote: list[str] = []
    for message in messages:
        match message:
            case UserMessage(by_model=True):
                wrote.append(message.text)
            case UserMessage():
                if _stands(message.text, (*forms, *_bare(forms))):
                    return True
            case AssistantMessage():
                wrote.append(message.text)
                for call in message.tool_calls:
                    wrote += (call.arguments, *_strings(call.arguments))
            case ToolMessage():
                told = [one.content for one in message.results if one.outside]
                if any(_stands(text, forms) for text in told) and not _wrote(wrote, forms):
                    return True
            case _:
                continue
    return False


def _strings(arguments: str) -> list[str]:
    """The texts in a call's arguments, whatever is escaped in their JSON."""
    found: list[str] = []

    def keep(pairs: list[tuple[str, object]]) -> None:
        for key, value in pairs:
            found.extend((key, *_texts(value)))

    with suppress(ValueError, RecursionError):
        found.extend(_texts(json.loads(arguments, object_pairs_hook=keep)))
    return found


def _texts(value: object) -> list[str]:
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    return [value] if isinstance(value, str) else []


def same_address(address: str) -> str:
    """An address without what is never sent, and with its host in small letters."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.lower(), fragment="").geturl()


def _forms(address: str) -> tuple[str, ...]:
    """How an address may be written without being another one."""
    whole = same_address(address)
    parts = urlsplit(whole)
    if parts.path in ("", "/") and not parts.query:
        root = f"{parts.scheme}://{parts.netloc}"
        return root, f"{root}/"
    return (whole,)


def _bare(forms: Iterable[str]) -> Iterator[str]:
    """As people write it: without the scheme."""
    return (form.partition("://")[2] for form in forms)


def _stands(text: str, forms: Iterable[str]) -> bool:
    """Whether one of the forms is a whole address in `text`; hosts may be in capitals."""
    return any(_ends_at(text, place + len(form)) for form in forms for place in _places(text, form))


def _places(text: str, form: str) -> Iterator[int]:
    scheme, found, rest = form.partition("://")
    host = (rest if found else form).split("/", 1)[0].split("?", 1)[0]
    head = f"{scheme}://{host}" if found else host
    lower = text.lower() if text.lower().isascii() or len(text.lower()) == len(text) else text
    place = lower.find(head)
    while place >= 0:
        begins = place == 0 or not (text[place - 1].isalnum() or text[place - 1] in "-_.@/=%&?")
        if begins and text[place + len(head) :].startswith(form[len(head) :]):
            yield place
        place = lower.find(head, place + 1)


def _ends_at(text: str, place: int) -> bool:
    """Whether an address that was read up to `place` goes no further."""
    # A full stop belongs to the sentence, unless something follows that is no space.
    ends = _RUN.match(text, place)
    after = place if ends is None else ends.end()
    return after >= len(text) or not _goes_on(text[after])


def _goes_on(char: str) -> bool:
    return char in _INSIDE or char.isalnum()


def _wrote(texts: Iterable[str], forms: Iterable[str]) -> bool:
    """Whether the model had written an address before, also encoded or without its scheme."""
    bare = [form.partition("://")[2].rstrip("/") for form in forms]
    return any(part in said for text in texts for part in bare for said in (text, unquote(text)))
