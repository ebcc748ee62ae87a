"""The files of a Telegram message as attachments; `reference` is the `file_id`. Pure."""

from adapters.telegram.message_text import authorship_of
from runtime.domain.json_fields import number_of, object_of, objects_of, text_of
from runtime.domain.messages import Attachment
from runtime.domain.value import JsonObject

# Each kind with the name's ending and the type where Telegram names none. An animation comes as a
# document too, for old clients, so the first kind found is the only one.
_KINDS = (
    ("animation", ".mp4", "video/mp4"),
    ("document", "", "application/octet-stream"),
    ("audio", ".mp3", "audio/mpeg"),
    ("voice", ".oga", "audio/ogg"),
    ("video", ".mp4", "video/mp4"),
    ("video_note", ".mp4", "video/mp4"),
    ("sticker", ".webp", "image/webp"),
)
_NAMES = {"voice": "voice message", "video_note": "video note", "sticker": "sticker"}
_STICKERS = (
    ("is_animated", ".tgs", "application/x-tgsticker"),
    ("is_video", ".webm", "video/webm"),
)


def attachments_of(message: JsonObject, number: int) -> tuple[Attachment, ...]:
    """At most one file: Telegram sends an album as several messages.

    What was forwarded is not its sender's own.
    """
    own = authorship_of(message) == "own"
    for kind, ending, media_type in _KINDS:
        file = object_of(message, kind)
        if kind == "sticker":
            ending, media_type = _sticker(file, ending, media_type)
        if text_of(file, "file_id"):
            found = _attachment(file, f"{kind}-{number}{ending}", media_type)
            facts = {"kind": _NAMES.get(kind, ""), "own": own}
            return (found.model_copy(update=facts),)
    sizes = [size for size in objects_of(message, "photo") if text_of(size, "file_id")]
    if not sizes:
        return ()
    largest = max(sizes, key=lambda size: number_of(size, "width") or 0)
    photo = _attachment(largest, f"photo-{number}.jpg", "image/jpeg")
    return (photo.model_copy(update={"own": own}),)


def _attachment(file: JsonObject, name: str, media_type: str) -> Attachment:
    return Attachment(
        name=text_of(file, "file_name") or name,
        media_type=text_of(file, "mime_type") or media_type,
        size_bytes=number_of(file, "file_size"),
        duration_s=number_of(file, "duration"),
        reference=text_of(file, "file_id"),
    )


def _sticker(file: JsonObject, ending: str, media_type: str) -> tuple[str, str]:
    for flag, other, other_type in _STICKERS:
        if file.get(flag) is True:
            return other, other_type
    return ending, media_type
