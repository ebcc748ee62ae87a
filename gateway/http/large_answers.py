"""Answers that may be large: few at once, and written in pieces (SEC-7).

Somebody who asks for them and does not read would otherwise fill the memory with what waits to be
read. A place is held until the answer is written or its reader is gone.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Final

from aiohttp import web

from gateway.http.auth import PRINCIPAL
from gateway.http.places import Places
from runtime.domain.value import Value

MOST_OF_ONE: Final = 2
MOST: Final = 8
"""Large answers that are being written: to one credential, and in all."""
RETRY_AFTER_S: Final = 5
WHOLE_S: Final = 900.0
"""The longest that a reader may take for one. Who takes nothing at all is cut off before, as on
every connection."""
PIECE: Final = 64 * 1024
"""Characters that are written at once."""


class LargeAnswers:
    """The places for large answers of a server, whatever they are about."""

    def __init__(self) -> None:
        self._places = Places(
            "large answers", of_one=MOST_OF_ONE, in_all=MOST, retry_after_s=RETRY_AFTER_S
        )

    def place(self, request: web.Request) -> AbstractContextManager[None]:
        """A place, to be held while the answer is made and written. Raises `HttpProblem` (429)
        where there is none."""
        return self._places.take(request[PRINCIPAL].credential.token)


async def write(
    request: web.Request, response: web.StreamResponse, pieces: Iterable[str]
) -> web.StreamResponse:
    """Write a body, as fast as its reader takes it. A reader that goes away, or takes longer than
    `WHOLE_S`, gets no more of it."""
    try:
        async with asyncio.timeout(WHOLE_S):
            await response.prepare(request)
            for piece in pieces:
                await response.write(piece.encode())
            await response.write_eof()
    except ConnectionError:
        pass
    except TimeoutError:
        # An orderly end would make a part look like the whole.
        if request.transport is not None:
            request.transport.abort()
    return response


def parts_of(text: str) -> Iterator[str]:
    """A text in pieces."""
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))


def json_parts(value: Value, name: str) -> Iterator[str]:
    """The JSON of a value in pieces. Its field `name`, which comes last, is a long text or None."""
    text = getattr(value, name)
    if text is None:
        yield value.model_dump_json()
        return
    yield f'{value.model_dump_json(exclude={name})[:-1]},"{name}":"'
    for part in parts_of(text):
        yield json.dumps(part, ensure_ascii=False)[1:-1]
    yield '"}'
