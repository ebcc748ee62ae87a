"""What a send has posted so far, told to the engine and kept for the receipt."""

from collections.abc import Sequence

from adapters.telegram.posts import Posted
from runtime.domain.messages import Receipt
from runtime.ports import chat


class Journal:
    """Goes on after the posts of an earlier attempt."""

    def __init__(self, posted: Sequence[str], on_posted: chat.Posted) -> None:
        self._ids = list(posted)
        self._on_posted = on_posted

    @property
    def receipt(self) -> Receipt:
        """Everything that is there now."""
        return Receipt(message_ids=tuple(self._ids))

    async def note(self, post: Posted, last: bool) -> None:
        """The last is not told: it is in the receipt, and nothing waits for its turn behind it."""
        self._ids.append(str(post))
        if not last:
            await self._on_posted(str(post))
