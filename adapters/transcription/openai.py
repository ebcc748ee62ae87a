"""Speech to text over OpenAI's `POST /audio/transcriptions`, which many servers speak.

Source: OpenAI's API reference, "Create transcription": a form with `file` and `model`, answered by
JSON with `text`. The recording goes there and nowhere else; redirects are not followed, because
the key would go along.
"""

import asyncio
from typing import Final

import aiohttp
from pydantic import SecretStr

from adapters.platforms.proxies import proxy_for
from runtime.domain.errors import Forbidden, Unavailable
from runtime.domain.json_fields import object_in, text_of
from runtime.domain.value import Value

MOST_BYTES: Final = 25 * 1024 * 1024
"""Of one recording, OpenAI's limit."""
_ANSWER_BYTES: Final = 4 * 1024 * 1024
_ENDINGS: Final = {
    "application/ogg": ".ogg",
    "audio/flac": ".flac",
    "audio/mpeg": ".mp3",
    "audio/wav": ".wav",
}


class TranscriptionSettings(Value):
    """Where recordings are sent: `url` is the base address, `timeout_s` is for a whole request."""

    url: str
    model: str
    key: SecretStr | None = None
    timeout_s: float = 60.0


class OpenAITranscriber:
    """The port `Transcriber`; opens its connection with the first recording. Close it."""

    def __init__(self, settings: TranscriptionSettings) -> None:
        self.settings = settings
        self._url = f"{settings.url.rstrip('/')}/audio/transcriptions"
        self._session: aiohttp.ClientSession | None = None

    async def transcribe(self, content: bytes, *, name: str, media_type: str) -> str:
        if len(content) > MOST_BYTES:
            raise Forbidden(f"a recording may have at most {MOST_BYTES} bytes")
        form = aiohttp.FormData()
        form.add_field("model", self.settings.model)
        form.add_field("response_format", "json")
        # Servers tell formats by the name's ending, and a phone's name for it may be any.
        filename = f"recording{_ENDINGS.get(media_type, '')}" if media_type in _ENDINGS else name
        form.add_field("file", content, filename=filename, content_type=media_type)
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                return await self._post(form)
        except (aiohttp.ClientError, OSError) as error:
            raise Unavailable(f"transcription: {type(error).__name__}") from error

    async def _post(self, form: aiohttp.FormData) -> str:
        key, headers = self.settings.key, {}
        if key is not None:
            headers["Authorization"] = f"Bearer {key.get_secret_value()}"
        self._session = self._session or aiohttp.ClientSession()
        async with self._session.post(
            self._url,
            data=form,
            headers=headers,
            allow_redirects=False,
            proxy=proxy_for(self._url),
        ) as response:
            if response.status in (408, 409, 425, 429) or response.status >= 500:
                raise Unavailable(f"transcription: HTTP {response.status}")
            if response.status != 200:
                raise Forbidden(f"transcription: HTTP {response.status}")
            return _text(await _body(response))

    async def close(self) -> None:
        """Give the connection back."""
        if self._session is not None:
            await self._session.close()


async def _body(response: aiohttp.ClientResponse) -> bytes:
    """All of an answer: one reading alone gives no more than what has come."""
    try:
        return await response.content.readexactly(_ANSWER_BYTES)
    except asyncio.IncompleteReadError as end:
        return end.partial


def _text(body: bytes) -> str:
    answer = object_in(body)
    if answer is None or not isinstance(answer.get("text"), str):
        raise Unavailable("transcription: the answer is no JSON with a text")
    return text_of(answer, "text")
