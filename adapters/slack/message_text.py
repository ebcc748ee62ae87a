"""Slack's way of writing what people typed, turned into text that reads as they saw it. Pure.

Slack escapes `& < >` of people and writes links, people, channels and groups between `<` and `>`.
Names are given by the caller; an unknown id stays an id.
"""

import re
from collections.abc import Mapping

_TOKEN = re.compile(r"<([^<>]+)>|&(amp|lt|gt);")
_PERSON = re.compile(r"<@([UW][A-Z0-9]+)(?:\|[^<>]*)?>")
_CHANNEL = re.compile(r"<#([CG][A-Z0-9]+)\|?>")
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">"}


def people_in(text: str) -> frozenset[str]:
    """The ids of everybody who is mentioned."""
    return frozenset(_PERSON.findall(text))


def channels_in(text: str) -> frozenset[str]:
    """The ids of the channels that are named without their name."""
    return frozenset(_CHANNEL.findall(text))


def without_leading_mention(text: str, user_id: str) -> str:
    """`text` without the mentions of `user_id` at its start: they say to whom, not what."""
    return re.sub(rf"\A\s*(?:<@{re.escape(user_id)}(?:\|[^<>]*)?>[\s,:]*)+", "", text)


def without_quotes(text: str) -> str | None:
    """`text` without the lines that it quotes; None where it quotes nothing.

    Slack writes a quoted line as `&gt; words`, and `&gt;&gt;&gt;` before words quotes all to the
    end. Of a pasted `> words` Slack makes the same.
    """
    head, mark, _ = text.partition("&gt;&gt;&gt;")
    if mark and head.rpartition("\n")[2].strip():
        head, mark = text, ""
    lines = head.split("\n")
    own = [line for line in lines if not line.lstrip().startswith("&gt;")]
    return "\n".join(own) if mark or len(own) < len(lines) else None


def readable(text: str, names: Mapping[str, str]) -> str:
    """Decode once, from left to right, so that an escaped `&lt;@U1&gt;` stays what was typed."""

    def decoded(found: re.Match[str]) -> str:
        inner, entity = found[1], found[2]
        return _ENTITIES[entity] if entity else _reference(inner, names)

    return _TOKEN.sub(decoded, text)


def _reference(inner: str, names: Mapping[str, str]) -> str:
    target, _, label = inner.partition("|")
    label = _unescaped(label)
    if target.startswith("@"):
        return f"@{names.get(target[1:]) or label or target[1:]}"
    if target.startswith("#"):
        return f"#{label or names.get(target[1:]) or target[1:]}"
    if target.startswith("!"):
        return _special(target[1:], label)
    address = _unescaped(target)
    bare = address.removeprefix("mailto:").removeprefix("tel:")
    if not label or label in (address, bare) or address in (f"http://{label}", f"https://{label}"):
        return bare
    return f"{label} ({bare})"


def _special(name: str, label: str) -> str:
    if name.startswith("date^"):
        return label or name
    if name.startswith("subteam^"):
        return f"@{label.removeprefix('@') or name.removeprefix('subteam^')}"
    return f"@{name}" if name in ("channel", "everyone", "here") else label or f"@{name}"


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
