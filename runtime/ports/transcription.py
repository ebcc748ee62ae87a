"""Speech to text."""

from typing import Protocol


class Transcriber(Protocol):
    """Writes down what is said in a recording."""

    async def transcribe(self, content: bytes, *, name: str, media_type: str) -> str:
        """The words, without any frame around them; empty where nothing is said.

        Raises `Unavailable` (try again later) or `Forbidden` (refused for good, with the reason).
        """
        ...

    async def close(self) -> None:
        """Give the connections back."""
        ...
