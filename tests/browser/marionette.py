"""Firefox as the distribution ships it, driven by its own protocol.

Playwright drives only a Firefox of its own making. Marionette is what geckodriver speaks: messages
of `LENGTH:JSON` over TCP. A command is `[0, id, name, parameters]`, and its answer is
`[1, id, error, result]` (Firefox Source Docs, "Marionette Protocol").
"""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from shutil import which
from threading import Thread

FIREFOX = which("firefox-esr") or which("firefox")
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The key of an element's reference (WebDriver, "web element identifier")."""
ENTER = "\ue007"
FOUND_WITHIN_MS = 20_000
PREFERENCES: dict[str, object] = {
    "marionette.port": 0,
    # It finds no machine but by a number, so it can call nobody but the gateway.
    "network.dns.disabled": True,
    "network.trr.mode": 5,
    "app.normandy.enabled": False,
    "app.update.disabledForTesting": True,
    "browser.region.network.url": "",
    "browser.safebrowsing.downloads.enabled": False,
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.push.connection.enabled": False,
    "extensions.update.enabled": False,
    "media.gmp-manager.updateEnabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "services.settings.server": "data:,",
    "toolkit.telemetry.enabled": False,
}


class MarionetteError(Exception):
    """Firefox refused a command."""


class Marionette:
    """A session with a running Firefox."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._sent = 0

    async def receive(self) -> object:
        """The next message."""
        length = await self._reader.readuntil(b":")
        return json.loads(await self._reader.readexactly(int(length[:-1])))

    async def ask(self, name: str, **parameters: object) -> object:
        """The result of one command; a result that is only a value is that value."""
        self._sent += 1
        message = json.dumps([0, self._sent, name, parameters]).encode()
        self._writer.write(b"%d:%s" % (len(message), message))
        await self._writer.drain()
        _, answered, error, result = await self.receive()
        assert answered == self._sent
        if error is not None:
            raise MarionetteError(f"{name} {parameters}: {error['error']}: {error['message']}")
        return result["value"] if isinstance(result, dict) and set(result) == {"value"} else result

    async def find(self, path: str) -> str:
        """The first element at an XPath, waited for."""
        found = await self.ask("WebDriver:FindElement", using="xpath", value=path)
        return str(found[ELEMENT])


@contextmanager
def running_firefox(home: Path) -> Iterator[int]:
    """The port of a headless Firefox with a new profile."""
    lines = [
        f"user_pref({json.dumps(one)}, {json.dumps(PREFERENCES[one])});" for one in PREFERENCES
    ]
    (home / "user.js").write_text("\n".join(lines) + "\n")
    with subprocess.Popen(
        [str(FIREFOX), "--headless", "--no-remote", "--marionette", "--profile", str(home)],
        env={**os.environ, "HOME": str(home), "MOZ_CRASHREPORTER_DISABLE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        # What it says once it listens is of no use, but has to go somewhere.
        drain = Thread(target=process.stdout.read)
        try:
            port = _port(process.stdout)
            drain.start()
            yield port
        finally:
            process.terminate()
            if drain.is_alive():
                drain.join()


@asynccontextmanager
async def new_window(port: int) -> AsyncIterator[Marionette]:
    """A window in a session of its own. Leaving it deletes the cookies of the site it is at."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    firefox = Marionette(reader, writer)
    try:
        await firefox.receive()
        await firefox.ask("WebDriver:NewSession", timeouts={"implicit": FOUND_WITHIN_MS})
        first = await firefox.ask("WebDriver:GetWindowHandle")
        made = await firefox.ask("WebDriver:NewWindow", type="window")
        await firefox.ask("WebDriver:SwitchToWindow", handle=made["handle"])
        try:
            yield firefox
        finally:
            await firefox.ask("WebDriver:DeleteAllCookies")
            await firefox.ask("WebDriver:CloseWindow")
            await firefox.ask("WebDriver:SwitchToWindow", handle=first)
            await firefox.ask("WebDriver:DeleteSession")
    finally:
        writer.close()
        await writer.wait_closed()


def _port(output: Iterator[str]) -> int:
    said = []
    for line in output:
        said.append(line)
        if "Listening on port" in line:
            return int(line.rsplit(None, 1)[-1])
    raise AssertionError("Firefox did not start:\n" + "".join(said))
