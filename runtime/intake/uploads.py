"""Files that come with a message of the page or the API, kept in the workspace by content.

The agent's own tools may write in the workspace, so every step of the way is opened without
following a link that leads out (TOOL-2). The same content is kept once.
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runtime.domain.errors import InvalidInput, ToolError
from runtime.domain.messages import Attachment
from runtime.tools import atomic
from runtime.tools.paths import PathGuard

FOLDER: Final = "uploads"
MAX_BYTES: Final = 5 * 1024 * 1024
"""Of one file; larger ones need the uploads of RUN-5."""
_NAME = re.compile(r"[^\w.\- ()+@,]+")
_DIGITS = 16


@dataclass(frozen=True, slots=True)
class Upload:
    """A file as it was sent; `field` names its place in the request, for errors."""

    name: str
    media_type: str
    content: bytes
    field: str = "file"


def safe_name(name: str) -> str:
    """The last part of a name, without what a shell, a path or a screen would take amiss."""
    last = re.split(r"[/\\]", name)[-1]
    kept = _NAME.sub("_", last).strip(" .")[-80:].strip(" .")
    return kept or "file"


def keep(workspace: Path, upload: Upload) -> Attachment:
    """Write a file under ``uploads/``; blocking. Raises `InvalidInput`."""
    if len(upload.content) > MAX_BYTES:
        raise InvalidInput(upload.field, f"must be at most {MAX_BYTES} bytes")
    digest = hashlib.sha256(upload.content).hexdigest()
    path = f"{FOLDER}/{digest[:_DIGITS]}/{safe_name(upload.name)}"
    try:
        guard = PathGuard([workspace])
        with (
            guard.parent(path, follow_last=False, make=True) as spot,
            atomic.exclusive(spot),
        ):
            found = atomic.present(spot, path)
            if found is None or found[1] != upload.content:
                old = None if found is None else found[0]
                atomic.replace(spot, path, upload.content, old)
    except ToolError as error:
        raise InvalidInput(upload.field, f"cannot be kept in the workspace: {error}") from error
    return Attachment(
        name=safe_name(upload.name),
        media_type=upload.media_type,
        size_bytes=len(upload.content),
        reference=f"sha256:{digest}",
        path=path,
    )
