"""The parts of an album, which come as updates of their own, brought together. Pure.

Parts follow each other closely, but not always in one answer of `getUpdates`, and updates of other
chats may stand between them. Nothing of a batch is confirmed that would tear an album apart.
"""

from collections.abc import Sequence

from adapters.telegram.ingress import album_of
from runtime.domain.json_fields import number_of
from runtime.domain.value import JsonObject

# An album has at most ten items (`sendMediaGroup`), a batch at most a hundred updates.
MOST_PARTS = 10
MOST_UPDATES = 100

Unit = list[JsonObject]
"""Updates that are taken together: one, or the parts of an album."""


def may_grow(updates: Sequence[JsonObject]) -> bool:
    """Whether an album in `updates` may have more parts than came yet."""
    return any(
        album_of(unit[0]) is not None and len(unit) < MOST_PARTS for unit in units_of(updates)
    )


def units_of(updates: Sequence[JsonObject]) -> list[Unit]:
    """The updates in order, each album in the place of its first part."""
    units: list[Unit] = []
    albums: dict[tuple[int, str], Unit] = {}
    for update in updates:
        album = album_of(update)
        if album is None:
            units.append([update])
        elif album in albums:
            albums[album].append(update)
        else:
            albums[album] = [update]
            units.append(albums[album])
    return units


def without_torn(updates: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """A full batch without an album that may go on behind its end, which the next one begins with.

    Unless it fills the batch alone.
    """
    if len(updates) < MOST_UPDATES:
        return updates
    last = {album_of(update) for update in updates[-MOST_PARTS:]} - {None}
    first = next((at for at, update in enumerate(updates) if album_of(update) in last), 0)
    return updates[:first] if first else updates


def resume_at(units: Sequence[Unit], taken: int) -> int:
    """The number from which on to ask again when only the first `taken` units were taken.

    It may lie before some that were taken: they come again and are known by then. An album that
    was taken must not come again in part.
    """
    at = min(_number(update) for unit in units[taken:] for update in unit)
    while True:
        torn = [unit for unit in units[:taken] if _number(unit[0]) < at <= _number(unit[-1])]
        if not torn:
            return at
        at = min(_number(unit[0]) for unit in torn)


def end_of(units: Sequence[Unit]) -> int:
    """The number of the last update."""
    return max(_number(update) for unit in units for update in unit)


def _number(update: JsonObject) -> int:
    return number_of(update, "update_id") or 0
