"""What a schedule observes: what was said in a session, and what changed under a path.

Nobody has more observed for them than they may read themselves, and nothing private is told to a
wider audience. For the run that is asked about it, what is found is data from outside: it stands in
a fence, and the run counts as one that has read it.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from runtime.domain.counts import counted
from runtime.domain.errors import Forbidden, NotFound, ToolError
from runtime.domain.messages import ChatAddress
from runtime.domain.people import Trust
from runtime.domain.printable import person_name, printable_name
from runtime.domain.transcript import AssistantMessage, UserMessage
from runtime.features.schedules import rows
from runtime.features.schedules.rows import Schedule
from runtime.intake.access import LOCAL
from runtime.policy.decide import RuleLists
from runtime.sessions import people, sessions
from runtime.sessions.lanes import CONVERSATION
from runtime.sessions.sessions import Session
from runtime.store import Connection
from runtime.tools.base import ToolContext
from runtime.tools.binary_files import is_binary
from runtime.tools.builtin.file_context import guard
from runtime.tools.paths import Spot, opened_at, opened_file, shown
from runtime.tools.tree import Entry, Tree
from runtime.workspace.open_folders import FOLDER

MOST_GATHERED: Final = 20_000
"""Characters that one run is given of what is new."""
MOST_GATHERED_BRIEF: Final = 2_000
"""The same for a heartbeat."""
MOST_MESSAGES: Final = 200
MOST_FILES: Final = 5_000
"""Files that are watched under one path."""
MOST_SHOWN: Final = 2_000
"""Characters that are shown of one message or one file."""
MOST_NAMED: Final = 100
"""Changes that are listed."""
_MOST_BYTES: Final = 1024 * 1024
"""Of a file whose content is compared; of a larger one size and time count."""
MOST_READ_BYTES: Final = 64 * 1024 * 1024
"""Of all files together that changed, in one look."""
NOT_ALL: Final = "not everything under the path was looked at: there is too much, or it is too deep"
_SETTLED_MS: Final = 2_000
_DIGITS: Final = 32
_LOOKED_AT: Final = 500
"""Inputs of a session among which a person is looked for."""
_READERS: Final = ("read_file", "grep")
"""Tools that show what a look shows: what a rule keeps from them, it keeps from a look."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What holds for a look beside the reach of the session: the operator's rules, `clean`, which
    masks the gateway's secrets, and the time in ms."""

    rules: RuleLists = field(default_factory=RuleLists)
    clean: Callable[[str], str] = str
    now_ms: int = 0

    def refusing(self, name: str) -> str:
        """The rule that keeps the path of this name from being read, empty where none does. A rule
        that asks does so too, since nobody is there to be asked."""
        rules = (*self.rules.deny, *self.rules.ask)
        found = (rule.text for rule in rules for tool in _READERS if rule.touches(tool, name))
        return next(found, "")


MAY_NOT_READ: Final = "its owner may not read what it observes"
MUST_READ: Final = (
    "must be a session that the owner of the schedule may read: an owner of the gateway any, a "
    "member their direct chat, and a group only for a schedule that speaks in that group"
)
PRIVATE: Final = (
    "is a direct chat: what is said there may only be told in that chat or in a direct chat of the "
    "owner of the schedule; choose such a target_session_id and place"
)
STOPS: Final[Mapping[str, str]] = {
    MUST_READ: MAY_NOT_READ,
    PRIVATE: "it would tell others what is said in the direct chat that it observes",
}
"""Why a schedule is paused that was made before one of these rules was broken."""


@dataclass(frozen=True, slots=True)
class Audience:
    """For whom a schedule observes: its owner, trusted as they are now, and all chats in which it
    is told: the place where its runs speak, and that of the conversation which gets a line of
    it."""

    person_id: str
    trust: Trust
    chats: tuple[ChatAddress, ...]

    def refused(self, conn: Connection, session_id: str) -> str:
        """The rule by which these may not be told what is said in a session; empty where they may.

        Who is in a group now is known to its platform alone. So nothing of a group is told to a
        member elsewhere, whenever they spoke there, and nothing of a direct chat to a group.
        """
        try:
            session = sessions.get(conn, session_id)
        except NotFound:
            return MUST_READ
        here = all(_is_same(chat, session.address) for chat in self.chats)
        direct = session.address.chat_kind == "direct"
        if not self._may_read(conn, session, alone=direct, here=here):
            return MUST_READ
        return PRIVATE if direct and not here and not self._alone(conn) else ""

    def _may_read(self, conn: Connection, session: Session, *, alone: bool, here: bool) -> bool:
        if self.trust is not Trust.MEMBER:
            return self.trust is Trust.OWNER
        if alone:
            spoke = rows.speakers_in(conn, session.id, most=_LOOKED_AT)
            return any(one.person_id == self.person_id for one in spoke)
        return here and session.kind == CONVERSATION

    def _alone(self, conn: Connection) -> bool:
        """Whether nobody but the owner of the schedule is told."""
        known = [account.direct_chat for account in people.of_person(conn, self.person_id)]
        own = [chat for chat in known if chat is not None]
        return all(
            chat.channel in LOCAL or any(_is_same(chat, one) for one in own) for chat in self.chats
        )


def _is_same(one: ChatAddress, other: ChatAddress) -> bool:
    """Whether two addresses are of one chat, whatever the thread."""
    chats = [(chat.channel, chat.account, chat.chat_id) for chat in (one, other)]
    return chats[0] == chats[1]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What is new: the `text` of it, of the `source` that a fence names. `mark` is the number of
    the last message that was looked at."""

    source: str
    text: str
    mark: int = 0


def said_in(
    conn: Connection, schedule: Schedule, session_id: str, after: int, *, most: int
) -> Gathered | None:
    """What people and the agent said in a session behind the message number `after`, in at most
    `most` characters, the newest kept; None where that is nothing."""
    mark = rows.last_message(conn, session_id)
    found, left_out = rows.said_between(
        conn, schedule, session_id, (after, mark), most=MOST_MESSAGES
    )
    lines: list[str] = []
    for message in found:
        if isinstance(message, UserMessage) and message.text.strip():
            lines.append(f"{person_name(message.name)}: {_short(message.text)}")
        elif isinstance(message, AssistantMessage) and message.text.strip():
            lines.append(f"the agent: {_short(message.text)}")
    if not lines:
        return None
    kept: list[str] = []
    room = most
    for line in reversed(lines):
        if len(line) > room:
            break
        room -= len(line) + 1
        kept.append(line)
    left_out += len(lines) - len(kept)
    if left_out:
        kept.append(f"[{counted(left_out, 'earlier message')} left out]")
    return Gathered("what was said in a session", "\n".join(reversed(kept)), mark)


def _short(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]} [cut here]"


@dataclass(frozen=True, slots=True)
class Watched:
    """What is under a path now, as marks by the files' names, and the beginnings of those texts
    that are not those of `before`. `unread` files were compared by size and time, because more
    changed than is read at once; `truncated`: not everything there was looked at."""

    files: Mapping[str, str]
    texts: Mapping[str, str]
    unread: int = 0
    truncated: bool = False


def look_under(path: str, before: Mapping[str, str], context: ToolContext, terms: Terms) -> Watched:
    """Look at what is under a path. Blocks on files. Raises `ToolError` for a path that the session
    does not reach, and where there are too many files, and `Forbidden` for one that a rule keeps
    from being read.

    Every folder is opened by its handle and no link is followed below the path, so that nothing
    that is swapped meanwhile leads out of what the session may read.
    """
    guarded = guard(context)
    look = _Look(path, before, context, terms)
    with guarded.parent(path) as spot:
        if rule := terms.refusing(context.resolved.name(spot.path)):
            raise Forbidden(f"policy does not let it read what it watches ({rule})")
        if spot.missing:
            return Watched({}, {})
        try:
            status = os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False)
        except FileNotFoundError:
            return Watched({}, {})
        if not stat.S_ISDIR(status.st_mode):
            look.at(Entry(spot.path.name, spot.name, spot.directory, status), spot, spot.path)
            return look.seen()
        with opened_at(spot.name, FOLDER, spot.directory, path) as handle:
            tree = Tree(handle, hides=guarded.hidden.below(spot.path))
            for entry in tree:
                look.at(entry, spot, spot.path / entry.path)
    return look.seen(truncated=tree.truncated)


class _Look:
    """One look at a path, file by file.

    A file has a mark: the digest of its content, and the times and the size with which it had that,
    so that the next look need not read it. One that is large, or beyond what is read at once, has
    its size and its time alone.
    """

    def __init__(
        self, path: str, before: Mapping[str, str], context: ToolContext, terms: Terms
    ) -> None:
        self._path = path
        self._before = before
        self._context = context
        self._terms = terms
        self._room = MOST_GATHERED
        self._bytes = MOST_READ_BYTES
        self._unread = 0
        self._files: dict[str, str] = {}
        self._texts: dict[str, str] = {}

    def seen(self, *, truncated: bool = False) -> Watched:
        """What there was. Of files that were not looked at, what was known is known still."""
        files = {**self._before, **self._files} if truncated else self._files
        return Watched(files, self._texts, self._unread, truncated)

    def at(self, entry: Entry, spot: Spot, real: Path) -> None:
        """Look at one entry; folders, links, devices and what is out of scope do not count, nor
        does what a rule keeps from being read."""
        within = self._context.within
        if not entry.is_file or (within is not None and not within(str(real))):
            return
        if self._terms.refusing(self._context.resolved.name(real)):
            return
        if len(self._files) == MOST_FILES:
            raise ToolError(f"there are more than {MOST_FILES:,} files under {shown(self._path)}")
        name = _readable(entry.path)
        known = self._before.get(name, "")
        if known in (_coarse(entry.status), f"{_digest(known)}{_fine(entry.status)}"):
            self._files[name] = known
            return
        try:
            with opened_file(entry.directory, entry.name, entry.path, spot.notes) as handle:
                self._read(name, handle)
        except ToolError:
            # It is gone again, was swapped for a link, or is a private note under another name.
            return

    def _read(self, name: str, handle: int) -> None:
        status = os.fstat(handle)
        if status.st_size > min(_MOST_BYTES, self._bytes):
            self._unread += status.st_size <= _MOST_BYTES
            self._files[name] = _coarse(status)
            return
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(_MOST_BYTES + 1)
        self._bytes -= len(content)
        if len(content) > _MOST_BYTES:
            self._files[name] = _coarse(status)
            return
        digest = hashlib.sha256(content).hexdigest()[:_DIGITS]
        # What was changed just now may be changed again within the same tick of its time.
        settled = status.st_ctime_ns // 1_000_000 < self._terms.now_ms - _SETTLED_MS
        self._files[name] = f"{digest}{_fine(status)}" if settled else digest
        known = _digest(self._before.get(name, ""))
        if known != digest and self._room > 0 and not is_binary(content):
            # Before it is cut: half a secret would be known by nobody.
            whole = self._terms.clean(content.decode(errors="replace"))
            text = whole[: min(MOST_SHOWN, self._room)]
            self._texts[name] = text
            self._room -= len(text)


def _readable(path: str) -> str:
    """A path as it can be kept: a byte that is not UTF-8 is written out."""
    return os.fsencode(path).decode(errors="backslashreplace")


def _coarse(status: os.stat_result) -> str:
    return f"{status.st_size} bytes, {status.st_mtime_ns}"


def _fine(status: os.stat_result) -> str:
    """What cannot stay the same where a file is changed: nobody sets the time of its last change
    by hand."""
    return f";{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}"


def _digest(mark: str) -> str:
    """What of a mark tells one content from another."""
    return mark.partition(";")[0]


def changes_in(
    path: str,
    before: Mapping[str, str],
    now: Watched,
    *,
    most: int,
    clean: Callable[[str], str] = str,
) -> Gathered | None:
    """What is new under a path, in at most `most` characters; None where nothing is. `clean` masks
    the gateway's secrets in the files' names, which others choose."""
    files = now.files
    told = [(name, "new") for name in files if name not in before]
    told += [
        (name, "changed")
        for name in files
        if name in before and _digest(before[name]) != _digest(files[name])
    ]
    told += [(name, "removed") for name in before if name not in files]
    if not told:
        return None
    told.sort()

    def named(name: str) -> str:
        return printable_name(clean(name), 300)

    lines = [f"- {what}: {named(name)}" for name, what in told[:MOST_NAMED]]
    if len(told) > MOST_NAMED:
        lines.append(f"- and {len(told) - MOST_NAMED:,} more")
    if now.unread:
        lines.append(f"[{counted(now.unread, 'file')} compared by size and time alone]")
    if now.truncated:
        lines.append(f"[{NOT_ALL}]")
    for name, what in told:
        if what != "removed" and now.texts.get(name):
            lines.append(f"\n{named(name)} begins with:\n{now.texts[name]}")
    text = "\n".join(lines)
    if len(text) > most:
        text = f"{text[:most]}\n[cut here]"
    return Gathered(f"changes under {path}", text)
