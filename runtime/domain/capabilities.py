"""What a session may reach and use, as a point in a lattice, and the meet of two such points.

The lattice is tools x paths x network x secrets x channels x spend x depth x mode. On each axis
None says "no bound of its own" and an empty list says "nothing at all"; neither is ever read as the
other. Every operation narrows: there is none that widens, and a session's set is the meet of all
that bounds it. A child gets the meet of its parent's set and what was asked for it, and what would
be more than the parent has is refused by the name of its axis (POL-5, SUB-18).

Paths are compared as text: where links lead is settled by whoever resolves a path, before it asks.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, NonNegativeInt

from runtime.domain.decisions import PermissionMode
from runtime.domain.printable import quoted
from runtime.domain.value import Value

Axis = Literal["tools", "paths", "network", "secrets", "channels", "spend", "depth", "mode"]
_WIDEST_FIRST = tuple(PermissionMode)
_WILD = re.compile(r"[*?]")
_NAME = re.compile(r"[^\s()]+")
_HOST = re.compile(r"\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|[0-9a-f:.]+")


class Scope(Value):
    """What one axis is bounded to: a thing is inside if every one of `lists` names it.

    Each list is what one bound said, in patterns, so that a meet loses nothing and needs no
    intersection of patterns. An empty list names nothing. Held in one form: sorted, without a list
    that another makes needless.
    """

    lists: Annotated[
        tuple[tuple[str, ...], ...], Field(min_length=1), AfterValidator(lambda one: _least(one))
    ]

    @classmethod
    def of(cls, *patterns: str) -> "Scope":
        """The scope of one bound; without patterns it holds nothing."""
        return cls(lists=(patterns,))

    @property
    def empty(self) -> bool:
        """Whether nothing at all is inside."""
        return self.lists == ((),)


def _least(lists: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
    found = {frozenset(one) for one in lists}
    least = [one for one in found if not any(other < one for other in found)]
    return tuple(sorted(tuple(sorted(one)) for one in least))


def _names(scope: Scope) -> Scope:
    return _checked(scope, "a name, in which * and ? stand for anything", _NAME.fullmatch)


def _hosts(scope: Scope) -> Scope:
    return _checked(scope, "a host in small letters, *.domain or *", _HOST.fullmatch)


def _paths(scope: Scope) -> Scope:
    rule = "an absolute path without . and .. parts; * and ? for parts of a name, ** for any depth"
    return _checked(scope, rule, lambda text: text if _parts(text) is not None else None)


def _checked(scope: Scope, rule: str, fits: Callable[[str], object]) -> Scope:
    for pattern in {pattern for one in scope.lists for pattern in one}:
        if not pattern or len(pattern) > 1000 or fits(pattern) is None:
            raise ValueError(f"{quoted(pattern)} must be {rule}")
    return scope


Names = Annotated[Scope, AfterValidator(_names)]
Hosts = Annotated[Scope, AfterValidator(_hosts)]
Paths = Annotated[Scope, AfterValidator(_paths)]


Denied = Annotated[
    tuple[str, ...],
    AfterValidator(lambda one: _least((one,))[0]),
    AfterValidator(lambda one: _names(Scope.of(*one)).lists[0]),
]


class Spend(Value):
    """What may be used up; None is no bound of its own. Money in millionths of a dollar."""

    tokens: NonNegativeInt | None = None
    micro_usd: NonNegativeInt | None = None
    steps: NonNegativeInt | None = None


class Capabilities(Value):
    """One point of the lattice.

    `tools` (names such as `mcp__github__*`), `secrets` and `channels` are patterns of names;
    `denied_tools` is taken away from `tools`, whatever these say. A path without a pattern stands
    for itself and all below it. `network` holds hosts; `*.example.org` is its subdomains and not
    itself. `depth` is how many levels of children may follow. `mode` is the widest that is left.
    """

    tools: Names | None = None
    denied_tools: Denied = ()
    paths: Paths | None = None
    network: Hosts | None = None
    secrets: Names | None = None
    channels: Names | None = None
    spend: Spend = Spend()
    depth: NonNegativeInt | None = None
    mode: PermissionMode | None = None


class Need(Value):
    """What somebody is about to reach or use; None asks nothing of that axis."""

    tool: str | None = None
    path: str | None = None
    host: str | None = None
    secret: str | None = None
    channel: str | None = None
    spend: Spend = Spend()
    depth: NonNegativeInt | None = None
    mode: PermissionMode | None = None


class Widening(Value):
    """One axis on which a request is more than its parent has; `rule` is for whoever asked."""

    axis: Axis
    rule: str


def meet(one: Capabilities, other: Capabilities) -> Capabilities:
    """What both allow. Commutative, associative and idempotent; never wider than either."""
    return Capabilities(
        tools=_both(one.tools, other.tools),
        denied_tools=(*one.denied_tools, *other.denied_tools),
        paths=_both(one.paths, other.paths),
        network=_both(one.network, other.network),
        secrets=_both(one.secrets, other.secrets),
        channels=_both(one.channels, other.channels),
        spend=Spend(
            tokens=_less(one.spend.tokens, other.spend.tokens),
            micro_usd=_less(one.spend.micro_usd, other.spend.micro_usd),
            steps=_less(one.spend.steps, other.spend.steps),
        ),
        depth=_less(one.depth, other.depth),
        mode=_narrower_mode(one.mode, other.mode),
    )


def allows(held: Capabilities, need: Need) -> bool:
    """Whether `held` covers everything that `need` names."""
    return refusing(held, need) is None


def refusing(held: Capabilities, need: Need) -> Axis | None:
    """The first axis on which `held` does not cover `need`, or None."""
    asked: tuple[tuple[Axis, bool], ...] = (
        ("tools", _tool_inside(held, need.tool)),
        ("paths", _inside(held.paths, need.path, _path_matches)),
        ("network", _inside(held.network, need.host and need.host.lower(), _host_matches)),
        ("secrets", _inside(held.secrets, need.secret, _name_matches)),
        ("channels", _inside(held.channels, need.channel, _name_matches)),
        ("spend", all(_at_most(n, h) for _, n, h in _amounts(need.spend, held.spend))),
        ("depth", _at_most(need.depth, held.depth)),
        ("mode", need.mode is None or _narrower_mode(need.mode, held.mode) is need.mode),
    )
    return next((axis for axis, inside in asked if not inside), None)


def widenings(parent: Capabilities, request: Capabilities) -> tuple[Widening, ...]:
    """Every axis on which `request` is more than `parent` has, in the order of the axes."""
    return tuple(Widening(axis=axis, rule=rule) for axis, rule in _more(parent, request))


def explain(held: Capabilities) -> Mapping[Axis, str]:
    """One sentence for each axis, for people."""
    tools = _told(held.tools, "tool")
    if held.denied_tools:
        tools += f", and never {', '.join(held.denied_tools)}"
    amounts = [f"{n} {name}" for name, n, _ in _amounts(held.spend, held.spend) if n is not None]
    levels = "children to any depth" if held.depth is None else f"{held.depth} levels of children"
    return {
        "tools": f"{tools}.",
        "paths": f"{_told(held.paths, 'path')}.",
        "network": f"{_told(held.network, 'host')}.",
        "secrets": f"{_told(held.secrets, 'secret')}.",
        "channels": f"{_told(held.channels, 'channel')}.",
        "spend": f"At most {', '.join(amounts)}." if amounts else "No extra limit on spending.",
        "depth": "No children." if held.depth == 0 else f"May have {levels}.",
        "mode": f"At most {held.mode.value}." if held.mode else "No extra limit on the mode.",
    }


def _both(one: Scope | None, other: Scope | None) -> Scope | None:
    if one is None:
        return other
    return one if other is None else Scope(lists=(*one.lists, *other.lists))


def _less(one: int | None, other: int | None) -> int | None:
    return min((each for each in (one, other) if each is not None), default=None)


def _narrower_mode(
    one: PermissionMode | None, other: PermissionMode | None
) -> PermissionMode | None:
    given = (each for each in (one, other) if each is not None)
    return max(given, key=_WIDEST_FIRST.index, default=None)


def _amounts(one: Spend, other: Spend) -> tuple[tuple[str, int | None, int | None], ...]:
    return (
        ("tokens", one.tokens, other.tokens),
        ("millionths of a dollar", one.micro_usd, other.micro_usd),
        ("steps", one.steps, other.steps),
    )


def _at_most(amount: int | None, bound: int | None) -> bool:
    return amount is None or bound is None or amount <= bound


def _inside(scope: Scope | None, thing: str | None, matches: "_Matches") -> bool:
    if scope is None or thing is None:
        return True
    return all(any(matches(pattern, thing) for pattern in one) for one in scope.lists)


def _tool_inside(held: Capabilities, tool: str | None) -> bool:
    if tool is None:
        return True
    return not _matched(held.denied_tools, tool) and _inside(held.tools, tool, _name_matches)


def _more(parent: Capabilities, request: Capabilities) -> Iterator[tuple[Axis, str]]:
    scopes: tuple[tuple[Axis, Scope | None, Scope | None, _Matches], ...] = (
        ("tools", parent.tools, request.tools, _name_covers),
        ("paths", parent.paths, request.paths, _path_covers),
        ("network", parent.network, request.network, _host_covers),
        ("secrets", parent.secrets, request.secrets, _name_covers),
        ("channels", parent.channels, request.channels, _name_covers),
    )
    for axis, held, asked, covers in scopes:
        beyond = None if held is None or asked is None else _beyond(held, asked, covers)
        if beyond is not None:
            yield axis, f"{beyond[:80]} is more than the parent has; leave it out"
    denied = next((n for n in _literal(request.tools) if _matched(parent.denied_tools, n)), None)
    if denied is not None:
        yield "tools", f"{denied[:80]} is denied to the parent; leave it out"
    for name, asked_for, bound in _amounts(request.spend, parent.spend):
        if not _at_most(asked_for, bound):
            yield "spend", f"{asked_for} {name} are more than the parent's {bound}"
    if not _at_most(request.depth, parent.depth):
        yield "depth", f"{request.depth} levels are more than the parent's {parent.depth}"
    if request.mode and _narrower_mode(request.mode, parent.mode) is not request.mode:
        yield "mode", f"{request.mode.value} is wider than the parent's {parent.mode}"


def _literal(scope: Scope | None) -> Iterator[str]:
    """The names that are asked for by themselves, and not by a pattern."""
    lists = () if scope is None else scope.lists
    return (name for one in lists for name in one if not _WILD.search(name))


def _matched(patterns: Sequence[str], name: str) -> bool:
    return any(_name_matches(pattern, name) for pattern in patterns)


def _beyond(held: Scope, asked: Scope, covers: "_Matches") -> str | None:
    """A pattern by which `asked` may reach out of `held`, or None.

    It stays inside of a list of `held` if all of some list of its own does.
    """
    for bound in held.lists:
        out = [
            next((one for one in own if not any(covers(b, one) for b in bound)), None)
            for own in asked.lists
        ]
        if all(one is not None for one in out):
            return out[0]
    return None


def _told(scope: Scope | None, what: str) -> str:
    if scope is None:
        return f"Any {what}: no extra limit"
    if scope.empty:
        return f"No {what} at all"
    return "Only " + " and also only ".join(", ".join(one) for one in scope.lists)


_Matches = Callable[[str, str], bool]


def _name_matches(pattern: str, name: str) -> bool:
    return _glob(pattern, name, star="*", same=lambda one, char: one in ("?", char))


def _name_covers(pattern: str, other: str) -> bool:
    """Whether all that `other` names is named by `pattern`, as far as that can be seen."""
    if not _WILD.search(other):
        return _name_matches(pattern, other)
    head, star, tail = pattern.partition("*")
    plain = star and not tail and not _WILD.search(head)
    return pattern == other or bool(plain and _WILD.split(other)[0].startswith(head))


def _host_matches(pattern: str, host: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and len(host) >= len(pattern)
    return pattern in ("*", host)


def _host_covers(pattern: str, other: str) -> bool:
    return pattern in ("*", other) or (
        pattern.startswith("*.") and other.endswith(pattern[1:]) and len(other) > len(pattern) - 1
    )


def _path_matches(pattern: str, path: str) -> bool:
    wanted, parts = _parts(pattern), _parts(path)
    if wanted is None or parts is None:
        return False
    if not _WILD.search(pattern):
        return parts[: len(wanted)] == wanted
    return _glob(wanted, parts, star="**", same=_name_matches)


def _path_covers(pattern: str, other: str) -> bool:
    held, asked = _parts(pattern), _parts(other)
    if held is None or asked is None:
        return False
    fixed = _fixed(asked)
    if not _WILD.search(pattern):
        return fixed[: len(held)] == held
    base = held[:-1]
    everything = held[-1] == "**" and not any(_WILD.search(part) for part in base)
    return held == asked or (everything and fixed[: len(base)] == base)


def _fixed(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The parts before the first that is a pattern."""
    wild = next((place for place, part in enumerate(parts) if _WILD.search(part)), len(parts))
    return parts[:wild]


def _parts(path: str) -> tuple[str, ...] | None:
    """The names of an absolute path; None for one that is relative, climbs or holds a NUL."""
    if not path.startswith("/") or "\0" in path:
        return None
    parts = tuple(part for part in path.split("/") if part)
    return None if any(part in (".", "..") for part in parts) else parts


def _glob(
    pattern: Sequence[str], things: Sequence[str], *, star: str, same: Callable[[str, str], bool]
) -> bool:
    """Whether `pattern` is all of `things`; `star` stands for any number of them.

    Only the last star is ever tried again, so no pattern takes more than the product of both.
    """
    place = at = mark = 0
    back: int | None = None
    while at < len(things):
        if place < len(pattern) and pattern[place] == star:
            back, mark = place, at
            place += 1
        elif place < len(pattern) and same(pattern[place], things[at]):
            place, at = place + 1, at + 1
        elif back is not None:
            mark += 1
            place, at = back + 1, mark
        else:
            return False
    return all(one == star for one in pattern[place:])
