"""A speech-to-text server that a test plays: OpenAI's `POST /v1/audio/transcriptions`.

It refuses what OpenAI's refuses: another form, no file, no model, a file without a known ending.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Final, Self

from aiohttp import web

ENDINGS: Final = frozenset(
    {".flac", ".m4a", ".mp3", ".mp4", ".mpeg", ".mpga", ".oga", ".ogg", ".wav", ".webm"}
)


@dataclass(frozen=True, slots=True)
class Recording:
    """What was sent."""

    content: bytes
    filename: str
    model: str
    authorization: str


@dataclass
class TranscriptionServer:
    """Listens on a free port of the loopback interface; `status` other than 200 refuses."""

    text: str = "water the plants"
    status: int = 200
    body: str | None = None
    url: str = ""
    heard: list[Recording] = field(default_factory=list)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Serve until the block ends."""
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/v1/audio/transcriptions", self._transcribe)
        runner = web.AppRunner(app, shutdown_timeout=1.0, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/v1"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _transcribe(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        file, model = form.get("file"), form.get("model")
        if not isinstance(file, web.FileField) or not isinstance(model, str):
            return _refused(400, "file and model are needed")
        if PurePosixPath(file.filename).suffix not in ENDINGS:
            return _refused(400, f"Unrecognized file format: {file.filename}")
        self.heard.append(
            Recording(
                file.file.read(), file.filename, model, request.headers.get("Authorization", "")
            )
        )
        if self.status in (301, 302, 307, 308):
            raise web.HTTPTemporaryRedirect("http://127.0.0.1:9/elsewhere")
        if self.status != 200:
            return _refused(self.status, "refused by the test")
        if self.body is not None:
            return web.Response(text=self.body)
        return web.json_response({"text": self.text})


def _refused(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message}}, status=status)
