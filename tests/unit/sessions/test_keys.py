"""Session keys: stable, readable, and one place's alone (MSG-3)."""

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from runtime.domain.messages import ChatAddress, ChatKind
from runtime.domain.people import Sender
from runtime.sessions.keys import Scope, session_key

ADA = Sender(id="U1", name="Ada")
PLAIN = "ABCxyz0189._-"


def place(channel: str, chat: str, kind: ChatKind, thread: str | None = None) -> ChatAddress:
    account = {"slack": "T1", "telegram": "42"}.get(channel, "local")
    return ChatAddress(
        channel=channel, account=account, chat_id=chat, chat_kind=kind, thread_id=thread
    )


@pytest.mark.requirement("MSG-3")
@pytest.mark.parametrize(
    ("address", "scope", "key"),
    [
        (place("slack", "C1", "channel"), "thread", "slack:T1:C1"),
        (place("slack", "C1", "channel", "17.5"), "thread", "slack:T1:C1:17.5"),
        (place("slack", "C1", "channel", "17.5"), "room", "slack:T1:C1"),
        (place("slack", "C1", "channel", "17.5"), "user", "slack:T1:C1:user:U1"),
        (place("slack", "C1", "channel", "17.5"), "account", "slack:T1"),
        (place("slack", "D9", "direct"), "thread", "slack:T1:dm:U1"),
        (place("telegram", "-100", "group"), "room", "telegram:42:-100"),
        (place("telegram", "-100", "topic", "7"), "room", "telegram:42:-100:7"),
        (place("telegram", "-100", "topic", "7"), "user", "telegram:42:-100:7:user:U1"),
        (place("telegram", "-100", "group", "7"), "room", "telegram:42:-100"),
        (place("telegram", "5", "direct"), "room", "telegram:42:5"),
        (place("web", "desk", "direct"), "room", "web:desk"),
        (place("terminal", "main", "direct"), "account", "terminal:main"),
        (place("api", "build-7", "direct"), "user", "api:build-7"),
    ],
)
def test_a_key_is_readable(address: ChatAddress, scope: Scope, key: str) -> None:
    assert session_key(address, ADA, scope=scope) == key


@pytest.mark.requirement("MSG-3")
@pytest.mark.parametrize("scope", ["room", "thread", "user", "account"])
def test_a_direct_chat_is_its_persons_whatever_the_scope(scope: Scope) -> None:
    assert session_key(place("slack", "D9", "direct"), ADA, scope=scope) == "slack:T1:dm:U1"
    assert session_key(place("telegram", "5", "direct"), ADA, scope=scope) == "telegram:42:5"


@pytest.mark.requirement("MSG-3")
@given(
    st.text(PLAIN, min_size=1).filter(lambda text: text not in ("dm", "user")),
    st.text(PLAIN, min_size=1).filter(lambda text: text not in ("dm", "user")),
)
def test_ordinary_ids_stand_in_a_key_as_they_are(chat: str, thread: str) -> None:
    address = place("slack", chat, "channel", thread)
    assert session_key(address, ADA, scope="thread") == f"slack:T1:{chat}:{thread}"


# Ids that try to look like another place's: separators, escapes, the reserved words.
hard = st.one_of(
    st.sampled_from(["dm", "user", "%64m", "%75ser", "%00", "%3A", ":", "a:b", "a%3Ab", "ü"]),
    st.sampled_from(["\0", "\ud800", ""]),
    st.lists(st.sampled_from(["a", "b", ":", "%", "dm", "user", "/", "3A", "00"]), max_size=5).map(
        "".join
    ),
    st.text(max_size=6),
)
kinds = st.sampled_from(["direct", "group", "channel", "topic"])
addresses = st.builds(
    ChatAddress,
    channel=st.sampled_from(["slack", "telegram", "web", "terminal", "api"]),
    account=hard,
    chat_id=hard,
    chat_kind=kinds,
    thread_id=st.none() | hard,
)
senders = st.builds(Sender, id=hard)
scopes = st.sampled_from(["room", "thread", "user", "account"])


def identity(address: ChatAddress, sender: Sender, scope: Scope) -> tuple[str | None, ...]:
    """What makes a session's place, written as the rule says it and not as a key."""
    channel, account, chat = address.channel, address.account, address.chat_id
    if channel in ("web", "terminal", "api"):
        return ("named", channel, chat)
    if address.chat_kind == "direct":
        who = ("person", sender.id) if channel == "slack" else ("chat", chat)
        return (*who, channel, account, address.thread_id)
    if scope == "account":
        return ("account", channel, account)
    threaded = scope == "thread" or address.chat_kind == "topic"
    thread = address.thread_id if threaded else None
    if scope == "user":
        return ("member", channel, account, chat, thread, sender.id)
    return ("chat", chat, channel, account, thread)


@pytest.mark.requirement("MSG-3")
@given(addresses, senders, scopes, addresses, senders, scopes)
@example(
    place("slack", "dm", "channel", "U1"), ADA, "thread", place("slack", "D", "direct"), ADA, "room"
)
def test_two_places_share_a_key_only_if_they_are_one(
    one: ChatAddress, ada: Sender, here: Scope, other: ChatAddress, bo: Sender, there: Scope
) -> None:
    same_key = session_key(one, ada, scope=here) == session_key(other, bo, scope=there)
    assert same_key == (identity(one, ada, here) == identity(other, bo, there))


@pytest.mark.requirement("MSG-3")
@given(addresses, senders, scopes, st.data())
def test_a_place_that_differs_in_one_part_has_another_key(
    address: ChatAddress, sender: Sender, scope: Scope, data: st.DataObject
) -> None:
    part = data.draw(st.sampled_from(["channel", "account", "chat_id", "thread_id"]))
    values = st.sampled_from(["slack", "telegram", "web"]) if part == "channel" else hard
    other = address.model_copy(update={part: data.draw(values)})
    assume(identity(other, sender, scope) != identity(address, sender, scope))
    assert session_key(other, sender, scope=scope) != session_key(address, sender, scope=scope)


@pytest.mark.requirement("MSG-3")
@given(addresses, senders, scopes)
def test_a_key_depends_on_ids_alone_and_is_one_printable_word(
    address: ChatAddress, sender: Sender, scope: Scope
) -> None:
    renamed = sender.model_copy(update={"name": "Somebody Else", "is_bot": True})
    key = session_key(address, sender, scope=scope)
    assert session_key(address, renamed, scope=scope) == key
    assert key.isascii()
    assert key.isprintable()
    assert " " not in key
