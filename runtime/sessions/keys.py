"""Session keys: stable, readable, and never shared by two different places (MSG-3)."""

from typing import Final, Literal

from runtime.domain.messages import ChatAddress, escape_component
from runtime.domain.people import Sender

Scope = Literal["room", "thread", "user", "account"]
OF_USER: Final = ":user:"


def session_key(address: ChatAddress, sender: Sender, *, scope: Scope) -> str:
    """The key of the session that a message belongs to.

    A direct chat is its person's, whatever the scope; the web page, the terminal and the API
    name their sessions by the chat id alone. A thread that joins its chat has the chat's session.
    """
    address = address.of_session
    if address.channel in ("web", "terminal", "api"):
        return _join(address.channel, address.chat_id)
    if address.chat_kind == "direct":
        return _direct(address, sender)
    if scope == "account":
        return _join(address.channel, address.account)
    parts = [address.channel, address.account, address.chat_id]
    if address.thread_id is not None and (scope == "thread" or address.chat_kind == "topic"):
        parts.append(address.thread_id)
    key = _join(*parts)
    return f"{key}{OF_USER}{escape_component(sender.id)}" if scope == "user" else key


def is_of_person(key: str, channel: str, account: str, user_id: str) -> bool:
    """Whether a session is of one person alone: their direct chat, or their own in a group."""
    place = _join(channel, account)
    direct = ChatAddress(channel=channel, account=account, chat_id=user_id)
    own = session_key(direct, Sender(id=user_id), scope="user")
    if key == own or key.startswith(f"{own}:"):
        return True
    return key.startswith(f"{place}:") and key.endswith(f"{OF_USER}{escape_component(user_id)}")


def place_of(key: str) -> str:
    """What of a key names the place, without the person whose session it is there."""
    return key.partition(OF_USER)[0]


def _direct(address: ChatAddress, sender: Sender) -> str:
    if address.channel == "slack":
        place = _join(address.channel, address.account)
        key = f"{place}:dm:{escape_component(sender.id)}"
    else:
        key = _join(address.channel, address.account, address.chat_id)
    if address.thread_id is not None:
        key = f"{key}:{escape_component(address.thread_id)}"
    return key


def _join(*parts: str) -> str:
    return ":".join(escape_component(part) for part in parts)
