"""Message entities as the real server keeps them: UTF-16 offsets, checked, trimmed, limited.

Texts of errors and the order of the checks follow TDLib's ``fix_formatted_text``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.wire.telegram.arguments import JsonObject
from tests.wire.telegram.detect import detect
from tests.wire.telegram.errors import bad_request
from tests.wire.telegram.links import checked_link, mentioned_user

MAX_ENTITIES = 100
_MONOSPACE = frozenset({"code", "pre"})
_OWN_TEXT = frozenset({"code", "pre", "text_link", "text_mention", "custom_emoji"})
# What a client may state itself; the rest the server finds by itself and ignores when stated.
_STATED = frozenset(
    {"bold", "italic", "underline", "strikethrough", "spoiler", "blockquote"}
    | {"expandable_blockquote"}
    | _OWN_TEXT
)
_FOUND = frozenset({"mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number"})
_BLANK = " \t\n\u00a0"
_CONTROL = {code: " " for code in range(32) if code not in {10, 13}}


@dataclass(frozen=True, slots=True)
class Entity:
    """One styled stretch; `offset` and `length` count UTF-16 units."""

    type: str
    offset: int
    length: int
    url: str = ""
    language: str = ""
    user_id: int = 0
    custom_emoji_id: str = ""

    @property
    def end(self) -> int:
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class Formatted:
    """Text and its entities after everything that the server does to them."""

    text: str = ""
    entities: tuple[Entity, ...] = ()


def units(text: str) -> int:
    """The length of `text` in UTF-16 units."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def part(text: str, start: int, end: int) -> str:
    """The stretch of `text` between two UTF-16 offsets."""
    raw = text.encode("utf-16-le", "surrogatepass")[2 * start : 2 * end]
    return raw.decode("utf-16-le", "surrogatepass")


def from_json(items: Sequence[JsonObject]) -> list[Entity]:
    """Read the `entities` argument; types that the server finds itself are ignored."""
    entities = []
    for item in items:
        kind = item.get("type")
        if kind in _FOUND:
            continue
        if kind not in _STATED:
            raise bad_request("can't parse MessageEntity: Unsupported type specified")
        entities.append(_entity(str(kind), item))
    return entities


def _entity(kind: str, item: JsonObject) -> Entity:
    offset, length = item.get("offset"), item.get("length")
    if not isinstance(offset, int) or not isinstance(length, int):
        raise bad_request("can't parse MessageEntity: Field offset and length must be Integers")
    user = item.get("user")
    user_id = user.get("id") if isinstance(user, dict) else 0
    url = str(item.get("url", ""))
    if kind == "text_link":
        if mentioned := mentioned_user(url):
            return Entity("text_mention", offset, length, user_id=mentioned)
        if not checked_link(url):
            raise bad_request(f"entity URL '{url}' is invalid: Wrong HTTP URL")
    return Entity(
        type=kind,
        offset=offset,
        length=length,
        url=checked_link(url) if url else "",
        language=str(item.get("language", "")),
        user_id=user_id if isinstance(user_id, int) else 0,
        custom_emoji_id=str(item.get("custom_emoji_id", "")),
    )


def as_json(entity: Entity) -> JsonObject:
    """The entity as the server answers it; the user of a `text_mention` holds only the id."""
    result: JsonObject = {
        "type": entity.type,
        "offset": entity.offset,
        "length": entity.length,
    }
    for name in ("url", "language", "custom_emoji_id"):
        if value := getattr(entity, name):
            result[name] = value
    if entity.user_id:
        result["user"] = {"id": entity.user_id, "is_bot": False, "first_name": "User"}
    return result


def finish(text: str, entities: Sequence[Entity]) -> Formatted:
    """Check `entities` against `text`, clean and trim both, and add what the server finds.

    Raises `ApiError` 400 for an entity outside of the text or inside a surrogate pair, and for a
    text in which nothing visible is left.
    """
    for entity in entities:
        _check(text, entity)
    kept = [entity for entity in entities if entity.length > 0]
    text, kept = _without_returns(text.translate(_CONTROL), kept)
    text, kept = _trimmed(text, kept)
    if not text:
        raise bad_request("text must be non-empty")
    kept = _nesting([entity for entity in kept if _visible(text, entity)])
    found = [
        Entity(kind, offset, length)
        for kind, offset, length in detect(text)
        if not _covered(offset, length, kept)
    ]
    every = sorted([*kept, *found], key=lambda entity: (entity.offset, -entity.length))
    return Formatted(text, tuple(every[:MAX_ENTITIES]))


def _check(text: str, entity: Entity) -> None:
    if not 0 <= entity.offset <= 1_000_000:
        raise bad_request(f"receive an entity with incorrect offset {entity.offset}")
    if not 0 <= entity.length <= 1_000_000:
        raise bad_request(f"receive an entity with incorrect length {entity.length}")
    total = units(text)
    start = f"entity beginning at UTF-16 offset {entity.offset}"
    if entity.end > total:
        raise bad_request(f"{start} ends after the end of the text at UTF-16 offset {entity.end}")
    if _splits_a_pair(text, entity.offset):
        raise bad_request(f"{start} begins in a middle of a UTF-16 symbol")
    if _splits_a_pair(text, entity.end):
        raise bad_request(f"{start} ends in a middle of a UTF-16 symbol")


def _splits_a_pair(text: str, offset: int) -> bool:
    raw = text.encode("utf-16-le", "surrogatepass")[2 * offset : 2 * offset + 2]
    return len(raw) == 2 and 0xDC <= raw[1] <= 0xDF


def _without_returns(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    if "\r" not in text:
        return text, entities
    moved = []
    for entity in entities:
        before = part(text, 0, entity.offset).count("\r")
        inside = part(text, entity.offset, entity.end).count("\r")
        moved.append(replace(entity, offset=entity.offset - before, length=entity.length - inside))
    return text.replace("\r", ""), moved


def _trimmed(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    text = text.rstrip(_BLANK)
    total = units(text)
    entities = [
        replace(entity, length=min(entity.end, total) - entity.offset)
        for entity in entities
        if entity.offset < total
    ]
    leading = len(text) - len(text.lstrip(" \n"))
    if entities:
        leading = min(leading, *(entity.offset for entity in entities), leading)
    moved = [replace(entity, offset=entity.offset - leading) for entity in entities]
    return text[leading:], moved


def _visible(text: str, entity: Entity) -> bool:
    if entity.length <= 0:
        return False
    return entity.type in _MONOSPACE or bool(part(text, entity.offset, entity.end).strip(_BLANK))


def _nesting(entities: list[Entity]) -> list[Entity]:
    """Monospace holds nothing and is held by a quotation only; what breaks this is dropped."""
    mono = [entity for entity in entities if entity.type in _MONOSPACE]
    quotes = {"blockquote", "expandable_blockquote"}

    def allowed(entity: Entity) -> bool:
        if entity.type in _MONOSPACE or entity.type in quotes:
            return True
        return not any(entity.offset < m.end and m.offset < entity.end for m in mono)

    return [entity for entity in entities if allowed(entity)]


def _covered(offset: int, length: int, entities: Sequence[Entity]) -> bool:
    return any(
        entity.type in _OWN_TEXT and offset < entity.end and entity.offset < offset + length
        for entity in entities
    )
