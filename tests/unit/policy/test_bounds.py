"""The bounds of a run: what the operator, the session and the speaker leave of one another."""

from dataclasses import replace

import pytest

from runtime.domain.capabilities import Capabilities, Scope
from runtime.domain.decisions import PermissionMode, SessionMode
from runtime.domain.grants import Grant, GrantKind
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Speaker, Trust
from runtime.domain.routes import AS_IT_IS
from runtime.domain.runs import RunKind, RunState
from runtime.policy.decide import Bounds
from runtime.sessions.bounds import PolicySettings, bounds_for, bounds_of, rule_lists
from runtime.sessions.runs import Run
from runtime.sessions.sessions import Scope as SessionScope
from runtime.sessions.sessions import Session

pytestmark = pytest.mark.requirement("POL-1", "POL-2")

RULES = rule_lists(allow=("exec(ls:*)",), deny=("exec(rm:*)",))
GRANT = Grant(tool="exec", kind=GrantKind.ACTION, key="k", text="it")
CAPABILITIES = Capabilities(network=Scope.of("example.org"))
PLACE = ChatAddress(channel="test", account="A1", chat_id="C1")
SESSION = Session(
    id="ses_1",
    key="test:A1:C1",
    address=PLACE,
    title="",
    status="open",
    mode=SessionMode.PLAN,
    permission_mode=PermissionMode.ACCEPT_EDITS,
    queue_mode="followup",
    model=None,
    generation=AS_IT_IS,
    agent="main",
    grants=(GRANT,),
    scope=SessionScope(frozenset({"exec"}), 7, no_writing=True, capabilities=CAPABILITIES),
    capability_scope=None,
    persona=None,
    created_ms=0,
    updated_ms=0,
    transcript=1,
    kind="conversation",
    parent_id=None,
)
SETTINGS = PolicySettings(PermissionMode.DEFAULT, RULES, sandboxed=False)
BOUNDS = Bounds(
    mode=PermissionMode.DEFAULT,
    session_mode=SessionMode.PLAN,
    trust=Trust.MEMBER,
    group=True,
    sandboxed=False,
    rules=RULES,
    grants=(GRANT,),
    tools=frozenset({"exec"}),
    max_steps=7,
    no_writing=True,
    scope=CAPABILITIES,
)


def run(kind: str, **changes: object) -> Run:
    speaker = Speaker(
        person_id="per_1", channel="test", account="A1", user_id="U1", trust=Trust.MEMBER
    )
    made = Run(
        id="run_1",
        session_id="ses_1",
        seq=1,
        kind=RunKind.MAILBOX_DELIVERY,
        state=RunState.RUNNING,
        collecting=False,
        ready_ms=0,
        target=PLACE.model_copy(update={"chat_kind": kind}),
        reply_to=None,
        speaker=speaker,
        created_ms=0,
    )
    return replace(made, **changes)


def test_all_that_a_session_is_bounded_by_is_in_it() -> None:
    assert bounds_of(SETTINGS, SESSION, trust=Trust.MEMBER, group=True) == BOUNDS


def test_of_two_modes_the_narrower_holds() -> None:
    wide = replace(SETTINGS, mode=PermissionMode.BYPASS)
    assert bounds_of(wide, SESSION, trust=Trust.OWNER, group=False).mode == "acceptEdits"
    free = replace(SESSION, permission_mode=None)
    assert bounds_of(wide, free, trust=Trust.OWNER, group=False).mode == "bypassPermissions"


def test_a_child_is_known_by_its_parent_and_not_by_its_key() -> None:
    child = replace(SESSION, kind="subagent", parent_id="ses_0")
    assert bounds_of(SETTINGS, child, trust=Trust.MEMBER, group=True) == replace(BOUNDS, child=True)
    named = replace(SESSION, key="subagent:ses_1")
    assert bounds_of(SETTINGS, named, trust=Trust.MEMBER, group=True) == BOUNDS


@pytest.mark.parametrize(
    ("kind", "group"), [("direct", False), ("group", True), ("channel", True), ("topic", True)]
)
def test_a_run_adds_who_speaks_where_and_what_it_has_read(kind: str, group: bool) -> None:
    assert bounds_for(SETTINGS, SESSION, run(kind)) == replace(BOUNDS, group=group)
    tainted = bounds_for(SETTINGS, SESSION, run(kind, tainted=True))
    assert tainted == replace(BOUNDS, group=group, tainted=True)
