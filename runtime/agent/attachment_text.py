"""What is said about a file that came with a message: to the model, and to the person. Pure.

A file's name is harmless by then, whatever its sender wrote; its content is data between fences.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeGuard

from runtime.agent.attachment_download import Missing
from runtime.domain.counts import counted
from runtime.domain.fence import fence
from runtime.domain.files import ReceivedFile, safe_type, size_text
from runtime.domain.messages import Attachment, TextPart
from runtime.domain.people import Trust
from runtime.domain.transcript import NoticeMessage, UserMessage
from runtime.sessions.run_steps import Finish
from runtime.sessions.transcripts import Line
from runtime.sessions.window import since_answer
from runtime.tools.file_types import VOICE, Contents, contradicts

INLINE: Final = 12_000
"""Characters of a text that stand in the conversation; a longer one is named by its path."""
MESSAGE: Final = 24_000
"""Characters about all files of one message: ten texts must not fill a small model's window."""


Bringer = UserMessage | NoticeMessage
"""A message that may bring files: a person's, or another agent's."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of a recording: its `words`, or why there are none."""

    words: str = ""
    trouble: str = ""


def missing(file: ReceivedFile, why: Missing) -> NoticeMessage:
    """A file that is not there."""
    was = "was not taken" if why.state == "refused" else "could not be fetched"
    line = f"{file.name}: {was}: {why.reason}"
    did = "I did not take" if why.state == "refused" else "I could not fetch"
    kept = file.model_copy(
        update={
            "state": why.state,
            "line": line,
            "told": f"{did} `{file.name}`: {why.reason}.",
        }
    )
    text = f'The file "{file.name}" of the message {was}: {why.reason}. The gateway says so too.'
    return NoticeMessage(text=text, file=kept)


def kept(
    file: ReceivedFile,
    contents: Contents,
    came: tuple[Bringer, Attachment],
    heard: Heard | None,
    *,
    room: int = INLINE,
) -> NoticeMessage:
    """A file that is in the workspace; a text with its content where it fits into `room`."""
    message, attachment = came
    measures = _measures(contents, attachment)
    line = ", ".join([f"{file.name}: {contents.media_type}", *measures, size_text(file.size_bytes)])
    said = [f'The file "{file.name}" came with the message: {line.partition(": ")[2]}.']
    said.append(f"It is kept at {file.path}.")
    if not attachment.own:
        said.append("It was passed on or replied to, so it may be somebody else's.")
    declared = safe_type(attachment.media_type)
    if contradicts(declared, contents.media_type):
        said.append(f"Its sender's side calls it {declared}, which its content is not.")
    if contents.trouble:
        said.append(f"It cannot be shown to you: {contents.trouble}.")
    words = [" ".join(said), *_content(file, contents, heard, room=room)]
    if heard is not None and heard.words and _is_said(message, attachment):
        words[1:] = _spoken(message, heard)
    facts = {
        "line": line,
        "media_type": contents.media_type,
        "width": contents.width,
        "height": contents.height,
        "pages": contents.pages,
        "shown": contents.shown,
    }
    return NoticeMessage(text="\n".join(words), file=file.model_copy(update=facts))


def again(file: ReceivedFile) -> NoticeMessage:
    """A file that is kept already: an edited message brings the same once more."""
    text = f'The file "{file.name}" of the message is the one that is kept at {file.path}.'
    return NoticeMessage(text=text, file=file)


def with_troubles(end: Finish, lines: Sequence[Line], run_id: str) -> Finish:
    """The end of a run whose reply names each file that was not taken, and why (MSG-19); an answer
    that it gave before has named its own.

    By the gateway's own hand: whether people learn of it is not left to a model.
    """
    told = [
        line.message.file.told
        for line in since_answer(lines, run_id)
        if isinstance(line.message, NoticeMessage)
        and line.message.file is not None
        and line.message.file.told
    ]
    texts = [place for place, part in enumerate(end.parts) if isinstance(part, TextPart)]
    if not told or not texts:
        return end
    words = "\n".join(f"({one})" for one in told)
    parts, last = list(end.parts), end.parts[texts[-1]]
    if isinstance(last, TextPart):
        parts[texts[-1]] = TextPart(markdown=f"{last.markdown}\n\n{words}")
    message = end.message
    if message is not None and message.text:
        message = message.model_copy(update={"text": f"{message.text}\n\n{words}"})
    return replace(end, parts=tuple(parts), message=message)


def _measures(contents: Contents, attachment: Attachment) -> list[str]:
    found = []
    if contents.width is not None:
        found.append(f"{contents.width} x {contents.height} pixels")
    if contents.pages is not None:
        found.append(f"about {counted(contents.pages, 'page')}")
    if attachment.duration_s is not None:
        found.append(f"{attachment.duration_s} s long")
    if attachment.kind:
        found.append(safe_kind(attachment.kind))
    return found


def safe_kind(kind: str) -> str:
    """The platform's word for a kind of file, as words only."""
    return "".join(c for c in kind if c.isalnum() or c == " ")[:40]


def _content(
    file: ReceivedFile, contents: Contents, heard: Heard | None, *, room: int
) -> list[str]:
    if contents.text is not None:
        if len(contents.text) > min(room, INLINE):
            return ["It is too long to stand here; read it at its path."]
        return ["Its content:", fence(contents.text.replace("\0", "\u2400"), f"file {file.name}")]
    if heard is None:
        return []
    if heard.words:
        return ["What is said in it:", fence(heard.words, f"recording {file.name}")]
    return [f"What is said in it is not known: {heard.trouble}."]


def _is_said(message: Bringer, attachment: Attachment) -> TypeGuard[UserMessage]:
    """Whether a recording is what a person says with their message."""
    spoken = attachment.kind == VOICE and attachment.own
    return spoken and isinstance(message, UserMessage)


def _spoken(message: UserMessage, heard: Heard) -> list[str]:
    """The words of a voice message are its sender's own, trusted as what they write."""
    if message.trust in (Trust.OWNER, Trust.MEMBER):
        return ["They spoke it as their message, and it says:", heard.words]
    source = f"{message.name} ({message.trust})"
    return ["They spoke it as their message, and it says:", fence(heard.words, source)]
