"""Files of ours on their way into a chat: as a photo, speech, music, a video or a document.

A file that cannot be sent is named in its place with the reason, so that its post is always there.
Limits: "Sending files" of the Bot API.
"""

import asyncio
import errno
from functools import partial
from pathlib import Path

import structlog
from pydantic import JsonValue

from adapters.platforms.cards import code
from adapters.rendering import Entity, utf16_length
from adapters.telegram import egress
from adapters.telegram.client import TelegramClient
from adapters.telegram.failures import Refused, about_form, about_post, about_shape
from adapters.telegram.posts import Post, as_plain, rendered
from runtime.domain.messages import ChatAddress, FilePart

log = structlog.get_logger(__name__)

MOST_PHOTO_BYTES = 10_000_000
MOST_FILE_BYTES = 50_000_000
# `sendVoice`: what is not OGG with Opus is better heard as a file.
_VOICES = frozenset({"audio/ogg", "audio/opus"})
_PHOTOS = frozenset({"image/jpeg", "image/png", "image/webp"})
# `sendAudio`: MP3 or M4A; `sendVideo`: MPEG4, others may be sent as documents.
_PLAYED = {"audio/mpeg": "audio", "audio/mp4": "audio", "video/mp4": "video"}


class Uploads:
    """Sends the posts that carry a file."""

    def __init__(self, client: TelegramClient) -> None:
        self._client = client

    async def send(self, target: ChatAddress, post: Post, reply_to: str | None) -> JsonValue:
        """Telegram's answer to the post. Raises `TelegramFailure`."""
        file = post.file
        if file is None:
            raise ValueError("the post has no file")
        try:
            size = await asyncio.to_thread(_size, file)
            return await self._sent(target, post, file, size, reply_to)
        except OSError as error:
            return await self._instead(target, post, _trouble(error), reply_to)
        except Refused as refusal:
            if not about_post(refusal):
                raise
            return await self._instead(target, post, f"Telegram says: {refusal}", reply_to)

    async def _sent(
        self, target: ChatAddress, post: Post, file: FilePart, size: int, reply_to: str | None
    ) -> JsonValue:
        shape = _shape(file, size)
        if shape != "document":
            try:
                return await self._upload(target, post, shape, size, reply_to)
            except Refused as refusal:
                # Too wide, not the picture that its name says, or a person who takes no voice
                # messages: a document takes all.
                if not about_shape(refusal):
                    raise
                log.info("telegram.sent_as_document", instead_of=shape, reason=str(refusal))
        return await self._upload(target, post, "document", size, reply_to)

    async def _upload(
        self, target: ChatAddress, post: Post, field: str, size: int, reply_to: str | None
    ) -> JsonValue:
        if post.file is None:
            raise ValueError("the post has no file")
        upload = partial(
            self._client.upload,
            f"send{field.capitalize()}",
            field=field,
            file=post.file,
            size=size,
        )
        try:
            return await upload(egress.file_payload(target, post, reply_to))
        except Refused as refusal:
            if not post.entities or not about_form(refusal):
                raise
            log.warning("telegram.sent_plain", reason=str(refusal))
            return await upload(egress.file_payload(target, as_plain(post), reply_to))

    async def _instead(
        self, target: ChatAddress, post: Post, why: str, reply_to: str | None
    ) -> JsonValue:
        """The caption, and behind it a line that names the file and why it is not there."""
        name = "" if post.file is None else post.file.name
        log.error("telegram.file_not_sent", file=name, reason=why)
        (note, *_) = rendered(f"File {code(name)} could not be sent: {why}.")
        shift = utf16_length(f"{post.text}\n\n") if post.text else 0
        marks = tuple(
            Entity(one.type, one.offset + shift, one.length, one.url, one.language)
            for one in note.entities
        )
        text = f"{post.text}\n\n{note.text}" if post.text else note.text
        whole = Post(text, (*post.entities, *marks))
        return await self._client.call(
            "sendMessage", egress.message_payload(target, whole, reply_to)
        )


def _shape(file: FilePart, size: int) -> str:
    """As what people see it: the argument's name, which is also the method's."""
    if file.media_type in _PHOTOS and size <= MOST_PHOTO_BYTES:
        return "photo"
    return "voice" if file.media_type in _VOICES else _PLAYED.get(file.media_type, "document")


def _size(file: FilePart) -> int:
    size = Path(file.path).stat().st_size
    if size > MOST_FILE_BYTES:
        raise OSError(errno.EFBIG, f"it has {size / 1e6:.0f} MB, and Telegram takes at most 50")
    if size == 0:
        raise OSError(errno.ENODATA, "it is empty")
    return size


def _trouble(error: OSError) -> str:
    """In words, without the path, which is nobody's business in a chat."""
    if error.errno in (errno.EFBIG, errno.ENODATA):
        return str(error.strerror)
    return "it is gone" if isinstance(error, FileNotFoundError) else "it cannot be read"
