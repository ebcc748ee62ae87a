"""The files that the server holds, and what the Bot API says of each."""

import hashlib
import mimetypes
from dataclasses import dataclass

from tests.wire.telegram.arguments import JsonObject
from tests.wire.telegram.errors import ApiError, bad_request

MAX_DOWNLOAD = 20 * 1024 * 1024
MAX_UPLOAD = 50 * 1024 * 1024
MAX_PHOTO = 10 * 1024 * 1024
_IMAGES = {b"\x89PNG\r\n": "png", b"\xff\xd8\xff": "jpg", b"GIF8": "gif", b"RIFF": "webp"}
_SPEECH = (b"OggS", b"ID3", b"\xff\xfb", b"\xff\xf3")
_FOLDERS = {"document": "documents", "photo": "photos", "voice": "voice", "audio": "music"}


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file that somebody sends; `kind` is document, photo, voice, audio or video."""

    content: bytes
    filename: str = "notes.txt"
    kind: str = "document"
    duration: int = 3

    @property
    def mime_type(self) -> str:
        return mimetypes.guess_type(self.filename)[0] or "application/octet-stream"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file with the identifiers that the server gave it."""

    file_id: str
    unique_id: str
    path: str
    attachment: Attachment

    @property
    def size(self) -> int:
        return len(self.attachment.content)

    def reference(self) -> JsonObject:
        return {
            "file_id": self.file_id,
            "file_unique_id": self.unique_id,
            "file_size": self.size,
        }

    def as_media(self) -> JsonObject:
        """The field of a message that carries this file, by its name."""
        attachment = self.attachment
        if attachment.kind == "photo":
            small = {**self.reference(), "file_id": f"{self.file_id}-s", "width": 90, "height": 60}
            return {"photo": [small, {**self.reference(), "width": 800, "height": 533}]}
        media = {**self.reference(), "mime_type": attachment.mime_type}
        if attachment.kind in {"voice", "audio", "video"}:
            media["duration"] = attachment.duration
        if attachment.kind == "voice":
            media["mime_type"] = "audio/ogg"
        else:
            media["file_name"] = attachment.filename
        if attachment.kind == "video":
            media |= {"width": 640, "height": 360}
        return {attachment.kind: media}


class FileStore:
    """Keeps every file of the run in memory; identifiers are predictable, nothing is fetched."""

    def __init__(self) -> None:
        self._by_id: dict[str, StoredFile] = {}
        self._by_path: dict[str, StoredFile] = {}

    def add(self, attachment: Attachment) -> StoredFile:
        """Store a file that a person sent: no limit but that it holds something."""
        number = len(self._by_id)
        unique = hashlib.sha256(attachment.content).hexdigest()[:16]
        folder = _FOLDERS.get(attachment.kind, "files")
        suffix = attachment.filename.rpartition(".")[2]
        stored = StoredFile(
            file_id=f"BQACAgTest{number:06d}{unique}",
            unique_id=f"AgAD{unique}",
            path=f"{folder}/file_{number}.{suffix}",
            attachment=attachment,
        )
        self._by_id[stored.file_id] = stored
        self._by_path[stored.path] = stored
        return stored

    def upload(self, attachment: Attachment) -> StoredFile:
        """Store a file that the bot sends, within the limits for bots; raises `ApiError`."""
        content = attachment.content
        if not content:
            raise bad_request("file must be non-empty")
        if len(content) > MAX_UPLOAD:
            raise ApiError(413, "Request Entity Too Large")
        if attachment.kind == "photo":
            if len(content) > MAX_PHOTO:
                raise bad_request("file is too big")
            if not content.startswith(tuple(_IMAGES)):
                raise bad_request("IMAGE_PROCESS_FAILED")
        if attachment.kind == "voice" and not content.startswith(_SPEECH):
            attachment = Attachment(content, attachment.filename, "document")
        return self.add(attachment)

    def find(self, file_id: str) -> StoredFile:
        """The file of an identifier; raises `ApiError` 400 as the real server words it."""
        stored = self._by_id.get(file_id.removesuffix("-s"))
        if stored is None:
            raise bad_request("wrong file_id or the file is temporarily unavailable")
        return stored

    def downloadable(self, file_id: str) -> JsonObject:
        """The answer of `getFile`."""
        stored = self.find(file_id)
        if stored.size > MAX_DOWNLOAD:
            raise bad_request("file is too big")
        return {**stored.reference(), "file_path": stored.path}

    def at(self, path: str) -> StoredFile | None:
        """The file of a download path."""
        return self._by_path.get(path)
