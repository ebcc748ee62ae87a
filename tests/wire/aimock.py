"""aimock, somebody else's model server: OpenAI's, Anthropic's and Gemini's wire formats.

It is a program for Node.js that is started as it is released (`@copilotkit/aimock`, pinned). It is
strict: a request that no fixture matches is an error. A fixture is a JSON object
``{"match": {...}, "response": {...}}``; see the package's own pages. One that is matched by
``sequenceIndex`` answers the n-th request of its kind.
"""

import io
import json
import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import aiohttp
import pytest
import pytest_asyncio

VERSION: Final = "1.43.0"
INSTALL: Final = f"npm install --prefix .cache/node @copilotkit/aimock@{VERSION}"
PROGRAM_VARIABLE: Final = "GATEHOUSE_TEST_AIMOCK"
_CHECKOUT: Final = Path(__file__).resolve().parents[2]
_LISTENING: Final = "listening on "

Json = Mapping[str, object]


def find_program() -> str | None:
    """The path of `llmock`: named by the environment, in the checkout's cache, or on PATH."""
    if named := os.environ.get(PROGRAM_VARIABLE):
        return named
    cached = _CHECKOUT / ".cache/node/node_modules/.bin/llmock"
    return str(cached) if cached.exists() else shutil.which("llmock")


@dataclass(frozen=True, slots=True)
class Aimock:
    """A running server; `url` has no path. Fixtures are tried in the order of their adding."""

    url: str

    async def load(self, *fixtures: Json) -> None:
        """Add fixtures. Fails for one that the server does not accept."""
        await self._call("POST", "/__aimock/fixtures", {"fixtures": list(fixtures)})

    async def reset(self) -> None:
        """Forget fixtures, counts and the journal."""
        await self._call("POST", "/__aimock/reset")

    async def requests(self) -> Sequence[Json]:
        """The bodies of the requests that came, in order."""
        entries = cast("list[dict[str, Json]]", await self._call("GET", "/__aimock/journal"))
        return [entry["body"] for entry in entries]

    async def _call(self, method: str, path: str, body: Json | None = None) -> object:
        content = None if body is None else io.BytesIO(json.dumps(body).encode())
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"{self.url}{path}", data=content) as response,
        ):
            assert response.status == 200, await response.text()
            return await response.json()


@contextmanager
def running(folder: Path) -> Iterator[Aimock]:
    """The server on a free port of the loopback interface, until the block ends.

    `folder` takes its file of fixtures. Skips the test where the program is not installed.
    """
    program = find_program()
    if program is None:
        pytest.skip(f"llmock is not installed: {INSTALL}")
    first = folder / "fixtures.json"
    # Strict mode refuses to start without a fixture; nobody sends this one's message.
    first.write_text(
        '{"fixtures": [{"match": {"userMessage": "never sent"}, "response": {"content": "."}}]}'
    )
    command = [program, "-p", "0", "-f", str(first), "--strict", "--log-level", "info"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        said: list[str] = []
        for line in process.stdout:
            said.append(line)
            if _LISTENING in line:
                break
        else:
            pytest.fail(f"llmock did not start: {''.join(said)}")
        # Node.js blocks on a full pipe, so somebody keeps reading.
        reader = threading.Thread(target=process.stdout.read, name="aimock-output")
        reader.start()
        try:
            yield Aimock(said[-1].partition(_LISTENING)[2].strip())
        finally:
            process.terminate()
            reader.join()


@pytest.fixture(scope="session")
def aimock_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    """One server for the whole run of tests."""
    with running(tmp_path_factory.mktemp("aimock")) as server:
        yield server


@pytest_asyncio.fixture
async def aimock(aimock_server: Aimock) -> AsyncIterator[Aimock]:
    """The server, emptied before and after the test."""
    await aimock_server.reset()
    yield aimock_server
    await aimock_server.reset()
