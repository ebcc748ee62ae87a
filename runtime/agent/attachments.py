"""The files of a run: fetched before the model is asked, kept, and handed to it (MSG-19).

Each file is a step of its own: its content is on the disk under its digest before the line that
says so is durable, so whoever takes the run up after a crash fetches what has no line yet and
nothing twice. Whatever goes wrong with a file becomes a line too; the run goes on.

The newest files go along with a request themselves, within bounds (CTX-3). A bound that slid with
every new picture would change what stands before it, and providers' caches with it. So the files
grow to the bound and then the older half is left out at once; what is left out stays as a line with
its path.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import structlog

from runtime.agent import attachment_text
from runtime.agent.attachment_download import Allowance, Fetcher, Missing, narrowest, within
from runtime.agent.attachment_text import Bringer, Heard
from runtime.agent.settings import AgentSettings
from runtime.domain.errors import Forbidden, ToolError, Unavailable
from runtime.domain.files import ReceivedFile, safe_name, size_text
from runtime.domain.messages import Attachment
from runtime.domain.runs import Holder
from runtime.domain.transcript import NoticeMessage, TranscriptMessage, UserMessage
from runtime.ports.clock import Clock
from runtime.ports.transcription import Transcriber
from runtime.sessions.received_files import keep_facts
from runtime.sessions.runs import Run
from runtime.sessions.transcripts import Line
from runtime.sessions.unit import Units
from runtime.tools import upload_folders as shelf
from runtime.tools.file_types import Contents, recognise

log = structlog.get_logger(__name__)

MOST_BYTES: Final = 16 * 1024 * 1024
"""Of all enclosed files, before base64: the narrowest provider takes 32 MB a request."""


class KeptFor(Protocol):
    """Puts files on the disk that the lines of one run tell of, and that no person sent."""

    async def keep(self, lines: Sequence[Line], workspace: Path) -> None:
        """Write what was told of since the last time. Raises `StoreUnavailable`."""


@dataclass(frozen=True, slots=True)
class FileServices:
    """What the files of every run are handled with. Without a `transcriber` speech stays sound.
    `kept_for` are features that put files on the disk for a run to read."""

    units: Units
    clock: Clock
    workspace: Path
    fetcher: Fetcher
    settings: AgentSettings
    transcriber: Transcriber | None = None
    kept_for: Sequence[Callable[[Run], KeptFor]] = ()

    def of(self, run: Run, holder: Holder) -> "RunFiles":
        """The files of one run in this worker's hands."""
        return RunFiles(self, run, holder)


@dataclass(frozen=True, slots=True)
class _Came:
    """One attachment of a message that no line tells of yet."""

    message: Bringer
    place: int
    attachment: Attachment

    @property
    def blank(self) -> ReceivedFile:
        return ReceivedFile(
            input_id=self.message.input_id or "",
            place=self.place,
            name=safe_name(self.attachment.name),
            state="kept",
            reference=self.attachment.reference,
        )


class _Patience:
    """The seconds that the files of one message may still take; waiting for others costs none."""

    def __init__(self, clock: Clock, left_s: float) -> None:
        self.left_s = left_s
        self._clock = clock

    @contextmanager
    def spent(self) -> Iterator[None]:
        """Count the time until the block ends."""
        began = self._clock.monotonic()
        try:
            yield
        finally:
            self.left_s -= self._clock.monotonic() - began


class RunFiles:
    """The files of one run."""

    def __init__(self, services: FileServices, run: Run, holder: Holder) -> None:
        self._services = services
        self._limits = services.settings.attachments
        self._run = run
        self._holder = holder
        self._kept_for = [make(run) for make in services.kept_for]

    async def take(self, lines: Sequence[Line]) -> tuple[Line, ...]:
        """Fetch what came with the run's messages and is not told of in `lines`; the new lines.
        Long results of subagents that they tell of are on the disk on return, in the workspace
        of the run's session.

        Raises `StaleLease` when the run became another worker's, and `StoreUnavailable`.
        """
        for one in self._kept_for:
            await one.keep(lines, self._services.workspace)
        made: list[Line] = []
        for message in self._messages(lines):
            patience = _Patience(self._services.clock, self._limits.timeout_s)
            for came in _waiting(message, lines):
                notice = await self._one(came, patience, [*lines, *made])
                made.append(await self._keep(notice))
        return tuple(made)

    async def enclosed(self, messages: Sequence[TranscriptMessage]) -> Mapping[str, bytes]:
        """What goes along with a request of `messages`, by digest.

        A file that is gone from the workspace, or is another now, stays a line.
        """
        bound = Bound(self._limits.shown, self._services.settings.window_tokens)
        chosen = enclosed(messages, bound)
        return await asyncio.to_thread(self._contents, chosen) if chosen else {}

    def _contents(self, chosen: Sequence[ReceivedFile]) -> dict[str, bytes]:
        found = {
            one.digest: shelf.read(
                self._services.workspace, one.path or "", one.digest, one.size_bytes
            )
            for one in chosen
        }
        return {digest: content for digest, content in found.items() if content is not None}

    def _messages(self, lines: Sequence[Line]) -> list[Bringer]:
        return [
            line.message
            for line in lines
            if line.run_id == self._run.id and isinstance(line.message, UserMessage | NoticeMessage)
        ]

    async def _one(
        self, came: _Came, patience: "_Patience", lines: Sequence[Line]
    ) -> NoticeMessage:
        known = _kept_before(came.attachment, lines)
        if known is not None:
            blank = came.blank
            place = {"input_id": blank.input_id, "place": blank.place, "name": blank.name}
            return attachment_text.again(known.model_copy(update=place))
        if came.place >= self._limits.files:
            rule = f"a message may bring at most {self._limits.files} files"
            return attachment_text.missing(came.blank, Missing("refused", rule))
        allowed = await self._allowed(came, patience.left_s, lines)
        async with self._services.fetcher.slots:
            with patience.spent():
                content = await self._content(came, allowed)
            kept = content if isinstance(content, Missing) else await self._kept(came, content)
            # Whoever waits to be listened to holds no file in memory.
            del content
        if isinstance(kept, Missing):
            return attachment_text.missing(came.blank, kept)
        file, contents = kept
        heard = await self._heard(came, file, contents, patience)
        room = attachment_text.MESSAGE - _words_about(came.message, lines)
        return attachment_text.kept(
            file, contents, (came.message, came.attachment), heard, room=room
        )

    async def _allowed(self, came: _Came, within_s: float, lines: Sequence[Line]) -> Allowance:
        limits, workspace = self._limits, self._services.workspace
        used = sum(one.size_bytes for one in _told(came.message, lines))
        held = 0
        if came.attachment.path is None:
            held = await asyncio.to_thread(shelf.held, workspace, self._run.session_id)
        together = f"may have {size_text(limits.message_bytes)} together"
        return narrowest(
            within_s,
            (limits.file_bytes, f"a file may have at most {size_text(limits.file_bytes)}"),
            (limits.message_bytes - used, f"the files of a message {together}"),
            (
                limits.session_bytes - held,
                f"a conversation may keep {size_text(limits.session_bytes)} of files",
            ),
        )

    async def _content(self, came: _Came, allowed: Allowance) -> bytes | Missing:
        attachment, target = came.attachment, self._run.target
        if attachment.path is None:
            harmless = attachment.model_copy(update={"name": safe_name(attachment.name)})
            return await self._services.fetcher.fetch(
                target.channel, target.account, harmless, allowed
            )
        # It was kept when it came, by the page or the API.
        digest = attachment.reference.removeprefix("sha256:")
        content = await asyncio.to_thread(
            shelf.read, self._services.workspace, attachment.path, digest, allowed.most
        )
        if content is not None:
            return content
        if (attachment.size_bytes or 0) > allowed.most:
            return Missing("refused", allowed.rule)
        return Missing("failed", "it is not in this workspace, or was changed there")

    async def _kept(self, came: _Came, content: bytes) -> tuple[ReceivedFile, Contents] | Missing:
        workspace, blank = self._services.workspace, came.blank
        try:
            path = came.attachment.path or await asyncio.to_thread(
                shelf.keep, workspace, self._run.session_id, blank.name, content
            )
        except ToolError as error:
            log.warning("file_not_kept", run_id=self._run.id, reason=str(error))
            return Missing("failed", "it could not be written into the workspace")
        contents, digest = await asyncio.to_thread(
            lambda: (recognise(content), shelf.digest_of(content))
        )
        facts = {"path": path, "digest": digest, "size_bytes": len(content)}
        return blank.model_copy(update=facts), contents

    async def _heard(
        self, came: _Came, file: ReceivedFile, contents: Contents, patience: _Patience
    ) -> Heard | None:
        if not contents.sounds(came.attachment.kind):
            return None
        services, transcriber = self._services, self._services.transcriber
        if transcriber is None:
            return Heard(trouble="no transcription is configured")
        place = (services.workspace, file.path or "", file.digest, file.size_bytes)
        try:
            async with services.fetcher.ears:
                content = await asyncio.to_thread(shelf.read, *place)
                if content is None:
                    return Heard(trouble="the file was changed in the workspace")
                with patience.spent():
                    async with within(services.clock, patience.left_s):
                        words = await transcriber.transcribe(
                            content, name=file.name, media_type=contents.media_type
                        )
        except TimeoutError:
            return Heard(trouble="the transcription took too long")
        except (Unavailable, Forbidden) as error:
            log.warning("not_transcribed", run_id=self._run.id, reason=str(error))
            return Heard(trouble="the transcription did not work")
        words = words.strip().replace("\0", "\ufffd")[: attachment_text.INLINE]
        return Heard(words, "" if words else "nothing was understood")

    async def _keep(self, notice: NoticeMessage) -> Line:
        run_id, holder = self._run.id, self._holder
        return await self._services.units.run(
            lambda unit: keep_facts(unit, holder, run_id, notice), name="file"
        )


def _waiting(message: Bringer, lines: Sequence[Line]) -> list[_Came]:
    told = {file.place for file in _told(message, lines)}
    return [
        _Came(message, place, attachment)
        for place, attachment in enumerate(message.attachments)
        if place not in told
    ]


def _told(message: Bringer, lines: Sequence[Line]) -> list[ReceivedFile]:
    return [file for file in _files(lines) if file.input_id == message.input_id]


def _words_about(message: Bringer, lines: Sequence[Line]) -> int:
    """Characters that stand in the conversation about the files of a message."""
    return sum(
        len(line.message.text)
        for line in lines
        if isinstance(line.message, NoticeMessage)
        and line.message.file is not None
        and line.message.file.input_id == message.input_id
    )


def _kept_before(attachment: Attachment, lines: Sequence[Line]) -> ReceivedFile | None:
    if not attachment.reference:
        return None
    same = (
        file
        for file in _files(lines)
        if file.reference == attachment.reference and file.state == "kept"
    )
    return next(same, None)


def _files(lines: Sequence[Line]) -> list[ReceivedFile]:
    found = [line.message.file for line in lines if isinstance(line.message, NoticeMessage)]
    return [file for file in found if file is not None]


@dataclass(frozen=True, slots=True)
class Bound:
    """At most so many `files`, `tokens` and `bytes` together."""

    files: int
    tokens: int
    size: int = MOST_BYTES

    def holds(self, files: Sequence[ReceivedFile]) -> bool:
        """Whether these may go along together."""
        return (
            len(files) <= self.files
            and sum(one.tokens for one in files) <= self.tokens
            and sum(one.size_bytes for one in files) <= self.size
        )

    @property
    def half(self) -> "Bound":
        """What is kept when the bound is passed."""
        return Bound(-(-self.files // 2), self.tokens // 2, self.size // 2)


def enclosed(messages: Sequence[TranscriptMessage], bound: Bound) -> tuple[ReceivedFile, ...]:
    """The files that go along, in order; each content once, where it came first."""
    found = {
        one.file.digest: one.file
        for one in reversed(messages)
        if isinstance(one, NoticeMessage) and one.file is not None and one.file.shown
    }
    going: list[ReceivedFile] = []
    for file in reversed(found.values()):
        going.append(file)
        if not bound.holds(going):
            while len(going) > 1 and not bound.half.holds(going):
                going.pop(0)
            if not bound.holds(going):
                going.clear()
    return tuple(going)
