"""Files that were sent: how they are listed, and which row a link leads to."""

from collections.abc import Sequence

from runtime.domain.errors import NotFound
from runtime.domain.messages import FilePart, OutboundMessage, OutboundPart
from runtime.sessions import outbox
from runtime.store import Connection
from runtime.views.models import FileView


def file_views(message: OutboundMessage) -> tuple[FileView, ...]:
    """The files of a message, each with where it can be downloaded; never with its path."""
    return tuple(
        FileView(
            name=part.name,
            media_type=part.media_type,
            size_bytes=part.size_bytes,
            url=f"/v1/files/{message.outbox_id}/{place}",
        )
        for place, part in _files(message.parts)
    )


def sent_file(conn: Connection, outbox_id: str, place: int) -> FilePart:
    """A file that was sent, by its message and its place there. Raises `NotFound`."""
    row = outbox.get(conn, outbox_id)
    found = {} if row is None else dict(_files(row.message.parts))
    if place not in found:
        raise NotFound("file", f"{outbox_id}/{place}")
    return found[place]


def _files(parts: Sequence[OutboundPart]) -> list[tuple[int, FilePart]]:
    return [(place, part) for place, part in enumerate(parts) if isinstance(part, FilePart)]
