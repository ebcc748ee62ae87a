"""The form of a request: what of OpenAI's format a server takes, learnt from refusals (MDL-4).

A refusal that names a field, a part or a feature is answered by the form without it. What then
works is kept for this server and model, with the time, and tried anew later: servers are updated.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Literal

from runtime.ports.model import Feature

KEPT_S: Final = 3600.0
"""How long a plainer form is used before the usual one is tried again."""
MOST_STEPS: Final = 6
"""Plainer forms that are tried for one request."""
_STATUSES: Final = frozenset({400, 404, 405, 415, 422, 500, 501})

Bound = Literal["max_completion_tokens", "max_tokens", ""]
Thoughts = Literal["calls", "all", "none"]


@dataclass(frozen=True, slots=True)
class Form:
    """What a request carries. As it is made, it is the usual form.

    `bound` is the name of the field for the limit of the response, None for the library's choice,
    and `most` the highest limit in tokens. `thoughts`: with which of its messages a model gets its
    thoughts back. `system`: instructions stand in a message of their own. `null`: what has no text
    may be null.
    """

    usage: bool = True
    tools: bool = True
    pictures: bool = True
    sampling: bool = True
    effort: bool = True
    system: bool = True
    null: bool = True
    stream: bool = True
    bound: Bound | None = None
    most: int | None = None
    thoughts: Thoughts = "calls"

    @property
    def missing(self) -> frozenset[Feature]:
        """The features that a person should know of: the model is asked without them."""
        off: dict[Feature, bool] = {"pictures": not self.pictures, "tools": not self.tools}
        return frozenset(name for name, is_off in off.items() if is_off)


USUAL: Final = Form()


@dataclass(frozen=True, slots=True)
class Carried:
    """What a refused request held, so that nothing is taken for its cause that was not in it."""

    tools: bool = False
    pictures: bool = False
    sampling: bool = False
    effort: bool = False
    thoughts: bool = False
    system: bool = False


_UNSUPPORTED: Final = re.compile(
    r"not? (?:\w+ )?(?:support|endpoint|allow|enabl|permit|available|implement|accept)|unsupported"
    r"|unrecogni[sz]ed|unknown|unexpected|extra|requires?\b|invalid|does not (?:take|have)|cannot|"
    r"disabled|forbidden|mmproj"
)
_PICTURES: Final = re.compile(r"image|vision|picture|multi-?modal|mmproj")
_TOOLS: Final = re.compile(r"\btools?\b|tool[ _-](?:use|choice|call)|function[ _-]?call|--jinja")
_THOUGHTS: Final = re.compile(r"reasoning|thinking|thought")
_WANTED: Final = re.compile(r"missing|must|required|passed back|expected")
_SYSTEM: Final = re.compile(r"system (?:role|message|prompt)|(?:role|')\W*(?:system|developer)")
_STREAM: Final = re.compile(r"\bstream(?:ing)?\b")
_TEXT: Final = re.compile(r"content\b.*(?:null|none\b|string|empty|required|missing)")
_BOUND: Final = re.compile(r"max_(?:completion_|output_|new_)?tokens")
_MOST: Final = re.compile(
    r"(?:at most|maximum|less than or equal to|<=|up to|limit(?:ed)? (?:of|to)|exceed\w*)"
    r"\D{0,40}?(\d[\d,]*)"
)


def plainer(form: Form, status: int, said: str, carried: Carried) -> Form | None:
    """The form without what a refusal names; None where it names nothing that could be left out.

    `said` is the provider's own text, of any length.
    """
    if status not in _STATUSES:
        return None
    text = said[:4000].lower()
    if "stream_options" in text or "include_usage" in text:
        return replace(form, usage=False) if form.usage else None
    if bounded := _bounded(form, text):
        return bounded
    for step in (_without_pictures, _with_thoughts, _without_tools, _with_plain_fields):
        found = step(form, text, carried)
        if found is not None and found != form:
            return found
    return None


def _bounded(form: Form, text: str) -> Form | None:
    """Another name for the limit of the response, or a lower one."""
    named = _BOUND.search(text)
    if named is None or "context" in text:
        return None
    most = _MOST.search(text)
    if most is not None and 16 <= (number := int(most[1].replace(",", ""))) < (form.most or 2**31):
        return replace(form, most=number)
    if not _UNSUPPORTED.search(text):
        return None
    if named[0] == "max_completion_tokens" and form.bound in (None, "max_completion_tokens"):
        return replace(form, bound="max_tokens")
    if named[0] == "max_tokens" and form.bound is None:
        return replace(form, bound="max_completion_tokens")
    return replace(form, bound="") if form.bound else None


def _without_pictures(form: Form, text: str, carried: Carried) -> Form | None:
    named = carried.pictures and _PICTURES.search(text) and _UNSUPPORTED.search(text)
    return replace(form, pictures=False) if named else None


def _with_thoughts(form: Form, text: str, carried: Carried) -> Form | None:
    if not _THOUGHTS.search(text):
        return None
    if carried.effort and ("effort" in text or not carried.thoughts):
        return replace(form, effort=False)
    if _WANTED.search(text) and form.thoughts == "calls":
        return replace(form, thoughts="all")
    return replace(form, thoughts="none") if carried.thoughts else None


def _without_tools(form: Form, text: str, carried: Carried) -> Form | None:
    named = carried.tools and _TOOLS.search(text) and _UNSUPPORTED.search(text)
    return replace(form, tools=False) if named else None


def _with_plain_fields(form: Form, text: str, carried: Carried) -> Form | None:
    if carried.sampling and ("temperature" in text or "top_p" in text):
        return replace(form, sampling=False)
    if carried.system and _SYSTEM.search(text):
        return replace(form, system=False)
    if form.null and _TEXT.search(text):
        return replace(form, null=False)
    if _STREAM.search(text) and _UNSUPPORTED.search(text):
        return replace(form, stream=False)
    return None


class KnownForm:
    """The form that one server's model takes, as far as it is known. `now` counts seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._form = USUAL
        self._since = 0.0

    @property
    def current(self) -> Form:
        """The form to ask in now."""
        if self._form != USUAL and self._now() - self._since >= KEPT_S:
            self._form = USUAL
        return self._form

    def keep(self, form: Form) -> bool:
        """Remember a form that worked; whether it is another one than before."""
        if form == self.current:
            return False
        self._form, self._since = form, self._now()
        return True
