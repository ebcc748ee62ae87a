"""emulate, somebody else's Slack: the Web API with its state and files (`emulate` of npm, pinned).

It runs as it is released, through its public function `createEmulator`. What it lacks, and what it
is therefore not used for, is in docs/wire-servers.md.
"""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import aiohttp
import pytest

VERSION: Final = "0.12.2"
BOT_TOKEN: Final = "xoxb-made-up"
PERSON_TOKEN: Final = "xoxp-made-up"
CHANNEL: Final = "lobby"
_FOLDER: Final = Path(__file__).resolve().parents[2] / ".cache/emulate"
_PROGRAM: Final = """
import { createEmulator } from "emulate";
const seed = JSON.parse(process.argv[1]);
console.log((await createEmulator({ service: "slack", port: 0, seed })).url);
"""

Json = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Emulated:
    """A running server; `url` has no path."""

    url: str

    async def person(self, method: str, **arguments: str) -> Json:
        """What a person sees: a call with their own token. Fails for one that is refused."""
        headers = {"Authorization": f"Bearer {PERSON_TOKEN}"}
        address = f"{self.url}/api/{method}"
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.post(address, data=arguments) as response,
        ):
            answer: dict[str, object] = await response.json()
        assert answer["ok"], answer
        return answer

    async def listed(self, method: str, key: str, **arguments: str) -> Sequence[Json]:
        """The objects under a key of the answer."""
        return cast("list[Json]", (await self.person(method, **arguments))[key])


def _seed(scopes: Sequence[str]) -> str:
    bot = {"bot_id": "B0GATE", "bot_user_id": "U0GATE"}
    application = {
        "app_id": "A0GATE",
        "client_id": "1.2",
        "client_secret": "made-up",
        "name": "Gatehouse",
        "redirect_uris": ["http://localhost/none"],
        "scopes": list(scopes),
        "bot_name": "gatehouse",
        **bot,
    }
    bots = {"token": BOT_TOKEN, "type": "bot", "user_id": "U0GATE", "scopes": list(scopes)}
    people = [*scopes, "groups:read", "groups:history"]
    anna = {"token": PERSON_TOKEN, "type": "user", "user": "anna", "scopes": people}
    seed = {
        "team": {"name": "Test", "domain": "test"},
        "users": [{"name": "anna", "real_name": "Anna", "email": "anna@example.com"}],
        "channels": [{"name": CHANNEL, "topic": "Talk"}],
        "oauth_apps": [application],
        "tokens": [{**bots, "app_id": "A0GATE", **bot}, anna],
        "strict_scopes": True,
    }
    return json.dumps({"slack": seed})


@contextmanager
def running(scopes: Sequence[str]) -> Iterator[Emulated]:
    """The server on a free port of the loopback interface, until the block ends.

    The application has these scopes and no more. Skips the test where the program is missing.
    """
    if not (_FOLDER / "node_modules/emulate").exists():
        pytest.skip(f"emulate {VERSION} is not installed: make emulate")
    # Where the machine's Node.js is too old, a newer one stands beside it.
    beside = _FOLDER / "node_modules/.bin/node"
    node = str(beside) if beside.exists() else shutil.which("node")
    assert node is not None
    command = [node, "--input-type=module", "--eval", _PROGRAM, _seed(scopes)]
    with subprocess.Popen(
        command, cwd=_FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url.startswith("http://"):
            pytest.fail(f"emulate did not start: {url}\n{process.communicate()[0]}")
        # Node.js blocks on a full pipe, so somebody keeps reading.
        reader = threading.Thread(target=process.stdout.read, name="emulate-output")
        reader.start()
        try:
            yield Emulated(url)
        finally:
            process.terminate()
            reader.join()
