"""Capability sets and needs for the property tests: few names, so that they meet."""

from hypothesis import strategies as st

from runtime.domain.capabilities import Capabilities, Need, Scope, Spend
from runtime.domain.decisions import PermissionMode

TOOLS = ("exec", "read_file", "mcp__git__log", "mcp__git__push", "mcp__x__y", "mcp__github__z")
TOOL_PATTERNS = (*TOOLS, "*", "mcp__*", "mcp__git__*", "mcp__*__y", "e?ec", "read*file")
PATHS = ("/", "/a", "/ab", "/a/b", "/a/b/c.md", "/a/c.md", "/a/*", "/x", "a", "/a/../x", "/a//b/")
PATH_PATTERNS = (
    "/",
    "/a",
    "/a/",
    "/ab",
    "/a/b",
    "/a/*",
    "/a/**",
    "/**",
    "/a/*.md",
    "/*/b",
    "/a/**/c.md",
)
HOSTS = ("example.org", "a.example.org", "b.a.example.org", "xexample.org", "org", "A.example.ORG")
HOST_PATTERNS = ("*", "example.org", "*.example.org", "*.a.example.org", "a.example.org", "*.org")


def _scopes(patterns: tuple[str, ...]) -> st.SearchStrategy[Scope | None]:
    lists = st.lists(st.sampled_from(patterns), max_size=3).map(tuple)
    return st.none() | st.lists(lists, min_size=1, max_size=2).map(
        lambda found: Scope(lists=tuple(found))
    )


def spends() -> st.SearchStrategy[Spend]:
    """Bounds of spend, and amounts."""
    amount = st.none() | st.integers(0, 4)
    return st.builds(Spend, tokens=amount, micro_usd=amount, steps=amount)


def modes() -> st.SearchStrategy[PermissionMode | None]:
    """Any mode or none."""
    return st.none() | st.sampled_from(list(PermissionMode))


def sets() -> st.SearchStrategy[Capabilities]:
    """Any point of the lattice."""
    return st.builds(
        Capabilities,
        tools=_scopes(TOOL_PATTERNS),
        denied_tools=st.lists(st.sampled_from(TOOL_PATTERNS), max_size=2).map(tuple),
        paths=_scopes(PATH_PATTERNS),
        network=_scopes(HOST_PATTERNS),
        secrets=_scopes(TOOL_PATTERNS),
        channels=_scopes(TOOL_PATTERNS),
        spend=spends(),
        depth=st.none() | st.integers(0, 3),
        mode=modes(),
    )


def needs() -> st.SearchStrategy[Need]:
    """Any thing that may be asked of any axes."""
    return st.builds(
        Need,
        tool=st.none() | st.sampled_from(TOOLS),
        path=st.none() | st.sampled_from(PATHS),
        host=st.none() | st.sampled_from(HOSTS),
        secret=st.none() | st.sampled_from(TOOLS),
        channel=st.none() | st.sampled_from(TOOLS),
        spend=spends(),
        depth=st.none() | st.integers(0, 3),
        mode=modes(),
    )


def single_needs() -> st.SearchStrategy[Need]:
    """One thing on one axis, so that one axis alone decides."""
    return st.one_of(
        st.builds(Need, tool=st.sampled_from(TOOLS)),
        st.builds(Need, path=st.sampled_from(PATHS)),
        st.builds(Need, host=st.sampled_from(HOSTS)),
        st.builds(Need, secret=st.sampled_from(TOOLS)),
        st.builds(Need, channel=st.sampled_from(TOOLS)),
        st.builds(Need, spend=spends()),
        st.builds(Need, depth=st.integers(0, 3)),
        st.builds(Need, mode=st.sampled_from(list(PermissionMode))),
    )
