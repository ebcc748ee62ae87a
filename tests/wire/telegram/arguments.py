"""Turns the raw fields of a request into typed arguments, and refuses what no method takes.

A kind is written as text: `int`, `str`, `bool`, `float`, `chat` (id or @name), `file`, the name of
a shape from `schema.SHAPES`, or `list:` before any of them.
The real server ignores an argument that it does not know; this one refuses it, because a client
that sends one has a bug that the real server would hide.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tests.wire.telegram.errors import bad_request
from tests.wire.telegram.schema import METHODS, REQUIRED, SHAPES

JsonObject: TypeAlias = dict[str, object]


class Violation(Exception):
    """The request is not one that the Bot API documents; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Upload:
    """One file part of a multipart request."""

    filename: str
    content: bytes
    content_type: str


@dataclass(frozen=True, slots=True)
class Arguments:
    """The checked arguments of one call; an absent one reads as its empty value."""

    method: str
    values: Mapping[str, object]
    uploads: Mapping[str, Upload]

    def has(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str) -> str:
        value = self.values.get(name, "")
        return value if isinstance(value, str) else ""

    def integer(self, name: str) -> int | None:
        value = self.values.get(name)
        return value if isinstance(value, int) else None

    def flag(self, name: str) -> bool:
        return self.values.get(name) is True

    def chat(self) -> int | str | None:
        value = self.values.get("chat_id")
        return value if isinstance(value, int | str) else None

    def mapping(self, name: str) -> JsonObject | None:
        value = self.values.get(name)
        return value if isinstance(value, dict) else None

    def mappings(self, name: str) -> list[JsonObject]:
        value = self.values.get(name)
        return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []

    def strings(self, name: str) -> list[str]:
        value = self.values.get(name)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def integers(self, name: str) -> list[int]:
        value = self.values.get(name)
        return [item for item in value if isinstance(item, int)] if isinstance(value, list) else []

    def file(self, name: str) -> Upload | str | None:
        """The upload, or the `file_id` or address that was given in its place."""
        value = self.text(name)
        if value.startswith("attach://"):
            return self.attached(value)
        return self.uploads.get(name) or value or None

    def attached(self, reference: str) -> Upload:
        upload = self.uploads.get(reference.removeprefix("attach://"))
        if upload is None:
            raise bad_request(f"attached file not found: {reference}")
        return upload


def parse(method: str, fields: Mapping[str, str], uploads: Mapping[str, Upload]) -> Arguments:
    """Check every field of a call of `method` (its canonical name).

    Raises `Violation` for an argument that is unknown, missing or of another type.
    """
    known = METHODS[method]
    for name in fields:
        if name not in known:
            raise Violation(f"{method}: unknown argument {name!r}")
    values = {name: _read(f"{method}.{name}", known[name], raw) for name, raw in fields.items()}
    for name in REQUIRED.get(method, ()):
        if name not in values and name not in uploads:
            raise Violation(f"{method}: argument {name!r} is missing")
    _check_uploads(method, values, uploads)
    return Arguments(method, values, uploads)


def _check_uploads(
    method: str, values: Mapping[str, object], uploads: Mapping[str, Upload]
) -> None:
    referred = json.dumps(list(values.values()))
    for name in uploads:
        direct = METHODS[method].get(name) == "file"
        if not direct and f"attach://{name}" not in referred:
            raise Violation(f"{method}: file part {name!r} is not an argument of it")


def _read(where: str, kind: str, raw: str) -> object:
    if kind in {"str", "file"}:
        return raw
    if kind == "chat":
        return _read_chat(where, raw)
    if kind == "bool" and raw in {"1", "0", "True", "False", "yes", "no"}:
        raise Violation(f"{where}: {raw!r} works but is not a JSON boolean")
    try:
        value: object = json.loads(raw)
    except json.JSONDecodeError as error:
        raise Violation(f"{where}: {raw[:80]!r} is not {kind}") from error
    check(where, kind, value)
    return value


def _read_chat(where: str, raw: str) -> int | str:
    if raw.startswith("@") and len(raw) > 1:
        return raw
    try:
        return int(raw)
    except ValueError as error:
        raise Violation(f"{where}: {raw!r} is neither a chat id nor a @name") from error


def check(where: str, kind: str, value: object) -> None:
    """Raise `Violation` unless the decoded `value` is of `kind`, at any depth."""
    if kind.startswith("list:"):
        if not isinstance(value, list):
            raise Violation(f"{where}: {value!r} is not a list")
        for position, item in enumerate(value):
            check(f"{where}[{position}]", kind.removeprefix("list:"), item)
    elif kind in SHAPES:
        _check_shape(where, kind, value)
    elif not _is_scalar(kind, value):
        raise Violation(f"{where}: {value!r} is not {kind}")


def _check_shape(where: str, kind: str, value: object) -> None:
    if not isinstance(value, dict):
        raise Violation(f"{where}: {value!r} is not {kind}")
    shape = SHAPES[kind]
    for name, item in value.items():
        if name not in shape:
            raise Violation(f"{where}: {kind} has no field {name!r}")
        check(f"{where}.{name}", shape[name], item)


def _is_scalar(kind: str, value: object) -> bool:
    if kind == "bool":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    match kind:
        case "int":
            return isinstance(value, int)
        case "float":
            return isinstance(value, int | float)
        case "str" | "file":
            return isinstance(value, str)
        case "chat":
            return isinstance(value, int | str)
    return False
