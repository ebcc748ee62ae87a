"""The log: structured lines on standard error, with ids, without secrets (OPS-7, I9).

Below debug no line carries message text: the engine logs ids, and what slips into a known text
field of an event is dropped here. It decides nothing about what is worth a line.
"""

import logging
import re
import sys
from collections.abc import Collection, Iterable
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, Processor

from runtime.domain.summaries import MASK, TOKENS

_TEXTS: Final = frozenset({"text", "content", "markdown", "prompt", "arguments", "body"})
"""Fields that would hold what people or models said."""
_NOISY: Final = ("aiohttp.access", "aiosqlite", "asyncio", "alembic", "httpx", "httpcore")


class Redactor:
    """Masks the configured secrets, and whatever looks like a token, in every line."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._known: re.Pattern[str] | None = None
        self.change(secrets)

    def change(self, secrets: Iterable[str]) -> None:
        """Mask these from now on: token files are read again when they change."""
        values = self._secrets = sorted({one for one in secrets if one}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, values))) if values else None

    def text(self, text: str) -> str:
        """A text without its secrets."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return TOKENS.sub(MASK, text)

    def secrets(self, text: str) -> str:
        """A text without the configured secrets; what only looks like a token stays."""
        return text if self._known is None else self._known.sub(MASK, text)

    def begun(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a configured secret,
        the rest of which is still to come."""
        start = min((_beginning(text, one) for one in self._secrets), default=len(text))
        known = self._known.finditer(text) if self._known is not None else ()
        # A secret is not cut in two because another one may begin in the middle of it.
        return len(text) - next((one.start() for one in known if one.end() > start), start)

    def __call__(self, _logger: object, _name: str, event: EventDict) -> EventDict:
        for key, value in event.items():
            event[key] = self._value(value)
        return event

    def _value(self, value: object) -> object:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self._value(key): self._value(one) for key, one in value.items()}
        if isinstance(value, list | tuple | set | frozenset):
            return [self._value(one) for one in value]
        if value is None or isinstance(value, bool | int | float):
            return value
        return self.text(str(value))


def _beginning(text: str, secret: str) -> int:
    """Where the longest end of a text starts with which a secret begins that is not whole."""
    place = text.find(secret[0], max(0, len(text) - len(secret) + 1))
    while place >= 0 and not secret.startswith(text[place:]):
        place = text.find(secret[0], place + 1)
    return len(text) if place < 0 else place


def setup(
    *, level: str, style: str, secrets: Collection[str], stream: TextIO | None = None
) -> Redactor:
    """Configure the process's log; `style` is auto, json or human. Returns what masks secrets."""
    # Looked up late, so that a redirected standard error is used.
    out = sys.stderr if stream is None else stream
    human = style == "human" or (style == "auto" and out.isatty())
    redactor = Redactor(secrets)
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        *([drop_texts] if number > logging.DEBUG else []),
        structlog.processors.format_exc_info,
        redactor,
    ]
    render: Processor = structlog.processors.JSONRenderer(ensure_ascii=False)
    if human:
        render = structlog.dev.ConsoleRenderer(colors=out.isatty())
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    _standard(out, [_without_record, *shared, render], number)
    return redactor


def drop_texts(_logger: object, _name: str, event: EventDict) -> EventDict:
    """Replace what people or models said by its length."""
    for key in _TEXTS & event.keys():
        value = event[key]
        event[key] = f"[{len(value)} characters]" if isinstance(value, str) else "[not logged]"
    return event


def _standard(out: TextIO, processors: list[Processor], level: int) -> None:
    """Lines of libraries, which use the standard `logging`, in the same form."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(processors=processors, use_get_message=True)
    )
    root = logging.getLogger()
    root.handlers = [handler]
    # Libraries tell much at info level that is for their own authors, message texts included.
    root.setLevel(level if level <= logging.DEBUG else max(level, logging.WARNING))
    # A malformed request is its sender's affair; what a handler raises is logged by ours.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    for name in _NOISY:
        logging.getLogger(name).setLevel(max(level, logging.WARNING))


def _without_record(_logger: object, _name: str, event: EventDict) -> EventDict:
    record = event.pop("_record", None)
    event.pop("_from_structlog", None)
    if isinstance(record, logging.LogRecord):
        event["logger"] = record.name
    return event
