"""What each provider can be shown besides text: pictures and PDFs, and how large. Pure.

A model that takes less than its provider does refuses the request, and is asked again without
(`runtime.agent.model_call`). Sources, read on 2026-11-21: OpenAI "Images and vision" and "File
inputs", Anthropic "Vision" and "PDF support" (5 MB a picture as base64), Gemini "Image
understanding" and "Document understanding" (20 MB a request).
"""

from dataclasses import dataclass
from typing import Final

from adapters.models.names import Provider
from runtime.domain.files import PDF, PICTURE_TYPES, ReceivedFile

_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Takes:
    """Types of pictures, bytes of one picture and of one PDF; 0 where it takes none."""

    pictures: frozenset[str] = PICTURE_TYPES
    picture_bytes: int = 10 * _MB
    pdf_bytes: int = 0

    def fits(self, file: ReceivedFile) -> bool:
        """Whether a file may go to this provider itself."""
        if file.media_type == PDF:
            return file.size_bytes <= self.pdf_bytes
        return file.media_type in self.pictures and file.size_bytes <= self.picture_bytes


NOTHING: Final = Takes(frozenset(), 0)
_TAKES: Final[dict[Provider, Takes]] = {
    "openai": Takes(pdf_bytes=16 * _MB),
    "anthropic": Takes(picture_bytes=5 * _MB * 3 // 4, pdf_bytes=16 * _MB),
    "google": Takes(PICTURE_TYPES - {"image/gif"}, pdf_bytes=12 * _MB),
    # Servers of many makes: pictures are common, documents are not.
    "compatible": Takes(),
    "ollama": Takes(frozenset({"image/png", "image/jpeg"})),
}


def taken_by(provider: Provider) -> Takes:
    """What models of a provider are shown."""
    return _TAKES.get(provider, NOTHING)
