"""Calls and bounds for the tests of decisions."""

from dataclasses import replace

from hypothesis import strategies as st

from runtime.domain.decisions import PermissionMode, SessionMode
from runtime.domain.grants import Grant, GrantKind
from runtime.domain.people import Trust
from runtime.domain.tools import Effect, Touches
from runtime.policy.decide import Bounds, CallFacts, RuleLists, decide
from runtime.policy.rules import Rule

WIDEST_FIRST = (
    PermissionMode.BYPASS,
    PermissionMode.ACCEPT_EDITS,
    PermissionMode.DEFAULT,
    PermissionMode.DONT_ASK,
    PermissionMode.PLAN,
)
WIDTH = {"deny": 0, "ask": 1, "allow": 2}
GRANTS = tuple(
    Grant(tool=tool, kind=GrantKind.PATH, key=key, text=tool)
    for tool, key in (("exec", "ls -l"), ("exec", "make"), ("write_file", "notes/a.md"))
)
PATTERNS = ("exec(ls:*)", "exec(rm:*)", "exec", "write_file(notes/**)", "*", "read_file(=a)")


def rules(**lists: tuple[str, ...]) -> RuleLists:
    """Rule lists from patterns."""
    return RuleLists(**{name: tuple(map(Rule.parse, texts)) for name, texts in lists.items()})


def reads(path: str = "notes/a.md", **changes: bool) -> CallFacts:
    """A call that reads a file."""
    return CallFacts("read_file", Effect.READ, Touches(reads=(path,), subject=path), **changes)


def writes(path: str = "notes/a.md", **changes: bool) -> CallFacts:
    """A call that writes a file."""
    touches = Touches(writes=(path,), subject=path)
    return CallFacts("write_file", Effect.IDEMPOTENT, touches, **changes)


def runs(command: str = "ls -l", **changes: bool) -> CallFacts:
    """A call that runs a command."""
    return CallFacts("exec", Effect.ONCE, Touches(command=command, subject=command), **changes)


def makes(**changes: bool) -> CallFacts:
    """A call that runs a command which nobody knows to be harmless."""
    return runs("make", **changes)


def sends() -> CallFacts:
    """A call that says something to somebody."""
    return CallFacts("send_message", Effect.ONCE, Touches(sends=("U1",), subject="U1"))


def replies(path: str = "notes/a.md", **changes: bool) -> CallFacts:
    """A call that sends a file to the chat of its own session."""
    touches = Touches(reads=(path,), replies=True, subject=path)
    return CallFacts("send_file", Effect.IDEMPOTENT, touches, **changes)


def fetches() -> CallFacts:
    """A call that reads a page."""
    host = "example.org"
    return CallFacts("web_fetch", Effect.READ, Touches(network=(host,), subject=host))


def asks_for(address: str = "https://example.org/a") -> CallFacts:
    """A call that fetches an address."""
    host = "example.org"
    touches = Touches(network=(host,), address=address, subject=host)
    return CallFacts("web_fetch", Effect.READ, touches)


def posts() -> CallFacts:
    """A call that changes something over the network."""
    host = "example.org"
    return CallFacts("mcp__x__post", Effect.ONCE, Touches(network=(host,), subject=host))


def no_wider(call: CallFacts, narrow: Bounds, wide: Bounds) -> bool:
    """Whether `narrow` says no more to a call than `wide` does.

    A command that only reads is in a read-only mode what a read is, because it runs where it cannot
    write. So it is held to what `wide` says of a read.
    """
    after = decide(call, narrow)
    if after.verdict == "allow" and after.rule.startswith("mode: "):
        touches = call.touches.model_copy(update={"command": None})
        call = replace(call, effect=Effect.READ, touches=touches)
    return WIDTH[after.verdict] <= WIDTH[decide(call, wide).verdict]


def facts() -> st.SearchStrategy[CallFacts]:
    """Any call."""
    return st.builds(
        lambda make, outside, private: make(outside_workspace=outside, private=private),
        st.sampled_from([reads, writes, runs, makes, replies]),
        st.booleans(),
        st.booleans(),
    ) | st.sampled_from([sends(), fetches(), posts()])


def rule_lists() -> st.SearchStrategy[RuleLists]:
    """Any short lists of rules."""
    some = st.lists(st.sampled_from(PATTERNS), max_size=2).map(tuple)
    return st.builds(lambda a, b, c: rules(allow=a, ask=b, deny=c), some, some, some)


def bounds() -> st.SearchStrategy[Bounds]:
    """Any bounds."""
    return st.builds(
        Bounds,
        mode=st.sampled_from(WIDEST_FIRST),
        session_mode=st.sampled_from(list(SessionMode)),
        trust=st.sampled_from(list(Trust)),
        group=st.booleans(),
        sandboxed=st.booleans(),
        rules=rule_lists(),
        grants=st.lists(st.sampled_from(GRANTS), max_size=1).map(tuple),
        tools=st.none() | st.frozensets(st.sampled_from(["exec", "read_file"])),
    )
