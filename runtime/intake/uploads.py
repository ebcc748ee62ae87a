"""Files that come with a message of the page or the API, kept in the workspace by content.

They are kept where files of the chat platforms are, in the folder of their session, and before
their message is: so a message that is there has its files.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runtime.domain.errors import InvalidInput, ToolError
from runtime.domain.files import safe_name
from runtime.domain.messages import Attachment
from runtime.tools import upload_folders

MAX_BYTES: Final = 5 * 1024 * 1024
"""Of one file; larger ones are uploaded to `/v1/assets`."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as it was sent; `field` names its place in the request, for errors."""

    name: str
    media_type: str
    content: bytes
    field: str = "file"


def check(upload: Upload) -> None:
    """Raises `InvalidInput` for a file that is too large."""
    if len(upload.content) > MAX_BYTES:
        raise InvalidInput(upload.field, f"must be at most {MAX_BYTES} bytes")


def keep(workspace: Path, session_id: str, upload: Upload) -> Attachment:
    """Write a file into its session's folder; blocking. Raises `InvalidInput`."""
    check(upload)
    try:
        path = upload_folders.keep(workspace, session_id, upload.name, upload.content)
    except ToolError as error:
        raise InvalidInput(upload.field, f"cannot be kept in the workspace: {error}") from error
    return Attachment(
        name=safe_name(upload.name),
        media_type=upload.media_type,
        size_bytes=len(upload.content),
        reference=f"sha256:{upload_folders.digest_of(upload.content)}",
        path=path,
    )
