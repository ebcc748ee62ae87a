"""Files that came with messages, as the transcript remembers them: facts and a path, no bytes."""

import re
from typing import Final, Literal

from runtime.domain.value import Value

PICTURE_TYPES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
PDF: Final = "application/pdf"
PICTURE_TOKENS: Final = 1_600
"""What a picture costs at most: providers scale larger ones down (CTX-12's kind of estimate)."""
_PIXELS_PER_TOKEN: Final = 750
_LEAST_PICTURE_TOKENS: Final = 85
_PAGE_TOKENS: Final = 1_500
_NAME_LENGTH: Final = 80
_NAME_BYTES: Final = 200
"""Of 255 that file systems give a name, with room for what is put around it."""
_NAME: Final = re.compile(r"[^\w.\- ()+@,]+")
_TYPE: Final = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
UNKNOWN_TYPE: Final = "application/octet-stream"


class ReceivedFile(Value):
    """What became of one attachment, written once and never changed (MSG-19).

    ``kept`` is in the workspace at ``path`` (relative), with the type and measures that its content
    shows; ``refused`` broke a limit; ``failed`` could not be fetched. ``told`` is the sentence for
    the person where it was not kept. ``shown`` says that a model may be shown the file itself.
    ``line`` is the file in one line, for people.
    """

    input_id: str
    place: int
    name: str
    state: Literal["kept", "refused", "failed"]
    reference: str = ""
    media_type: str = UNKNOWN_TYPE
    size_bytes: int = 0
    digest: str = ""
    path: str | None = None
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    shown: bool = False
    line: str = ""
    told: str = ""

    @property
    def tokens(self) -> int:
        """What it costs a request that carries the file itself, by estimate."""
        if self.pages is not None:
            return self.pages * _PAGE_TOKENS
        pixels = (self.width or 0) * (self.height or 0)
        return min(PICTURE_TOKENS, max(_LEAST_PICTURE_TOKENS, pixels // _PIXELS_PER_TOKEN))


def safe_name(name: str) -> str:
    """The last part of a name, without what a shell, a path, a screen or a prompt takes amiss."""
    last = re.split(r"[/\\]", name)[-1]
    kept = _NAME.sub("_", last).strip(" .")[-_NAME_LENGTH:]
    # The end stays, with the ending; a character that the cut went through is dropped.
    short = kept.encode()[-_NAME_BYTES:].decode(errors="ignore").strip(" .")
    return short or "file"


def safe_type(media_type: str) -> str:
    """A declared media type without parameters; an unknown one where it is no type at all."""
    plain = media_type.partition(";")[0].strip().lower()[:100]
    return plain if _TYPE.fullmatch(plain) else UNKNOWN_TYPE


def size_text(size: int) -> str:
    """Bytes in words: ``812 bytes``, ``41 KB``, ``2.5 MB``; a KB has 1,024, as the limits do."""
    if size < 1024:
        return f"{size} bytes"
    if size < 1024**2:
        return f"{size / 1024:.0f} KB"
    return f"{size / 1024**2:.1f}".removesuffix(".0") + " MB"
