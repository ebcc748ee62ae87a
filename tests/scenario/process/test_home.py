"""The command line and the gateway of its home: by a socket, with a token, and never another's."""

import asyncio
import json
import os
import pty
import re
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from pydantic import SecretStr

from gateway import home_token
from gateway.addresses import addresses
from gateway.cli.access import tell
from tests.conftest import FailAfter
from tests.contract.store_support import postgres_server
from tests.replicas.town import asyncpg_url
from tests.scenario.process.program import Place, command, gateway


@pytest.fixture
def place(place: Place) -> Place:
    """A home whose token is the only one."""
    place.variables["GATEHOUSE_HTTP__ADMIN_TOKEN"] = ""
    return place


async def status(url: str, token: str) -> int:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"{url}/v1/sessions", headers=headers) as answer,
    ):
        return answer.status


def token_of(place: Place) -> str:
    found = home_token.read(place.home)
    assert found is not None
    return found


@pytest.mark.requirement("WEB-2", "OPS-12")
async def test_the_first_start_makes_a_token_and_the_command_line_needs_no_address(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), gateway(place) as program:
        url = await program.url()
        assert stat.S_IMODE((place.home / "token").stat().st_mode) == 0o600
        (path,) = (place.home / "run").iterdir()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert await status(url, "") == 401
        assert await status(url, token_of(place)) == 200
        said = await command(place, "chat", "-m", "hello")
        shown = await command(place, "token", "show")
        link = await command(place, "open")
        listed = await command(place, "sessions", "list", "--json")
    assert (said.code, shown.code, link.code, listed.code) == (0, 0, 0, 0), said.err
    assert "offline model" in said.out
    assert "starts one" not in said.err
    assert shown.out == f"{token_of(place)}\n"
    assert link.out.startswith(f"{url}/login#code=")
    assert [one["key"] for one in json.loads(listed.out)] == ["terminal:main"]


@pytest.mark.requirement("WEB-2")
async def test_nothing_secret_is_written_where_it_may_be_kept(
    place: Place, fail_after: FailAfter
) -> None:
    # Others reach it, so that more is told: on what it listens, and a link for other machines.
    place.variables["GATEHOUSE_HTTP__HOST"] = "0.0.0.0"
    elsewhere = addresses("0.0.0.0", 0).elsewhere.removesuffix(":0")
    async with fail_after(60), gateway(place) as program:
        assert (await program.url()).startswith("http://127.0.0.1:")
        await program.until(program.out, lambda line: "gatehouse open" in line)
        await command(place, "chat", "-m", "hello")
        opened = await command(place, "open")
        program.process.terminate()
        await program.ended()
    assert program.out[1].startswith("It listens on all IPv4 addresses of this machine.")
    told = f"From another machine, open this instead: {elsewhere}:"
    assert (told in opened.err) is bool(elsewhere)
    assert "code=" not in program.transcript
    assert token_of(place) not in program.transcript


@pytest.mark.requirement("WEB-2")
async def test_a_terminal_is_shown_a_link_that_works_once(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), on_terminal(place) as screen:
        said = await screen.until(r"(http://127\.0\.0\.1:\d+)/login#code=([\w-]{43})")
        url, code = said.groups()
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
            for wanted in (303, 401):
                async with browser.get(f"{url}/login") as page:
                    csrf = (await page.text()).partition('name="csrf" value="')[2][:64]
                form = {"csrf": csrf, "code": code}
                answer = await browser.post(f"{url}/login", data=form, allow_redirects=False)
                assert answer.status == wanted
                browser.cookie_jar.clear()


@pytest.mark.requirement("OPS-12")
async def test_a_command_never_reaches_the_gateway_of_another_home(
    place: Place, tmp_path: Path, fail_after: FailAfter
) -> None:
    async with fail_after(60), gateway(place) as program:
        port = (await program.url()).rpartition(":")[2]
        other = Place(tmp_path / "other", {"GATEHOUSE_HTTP__PORT": port})
        other.path.mkdir()
        for arguments in (("sessions", "list"), ("status",), ("open",), ("runs", "list")):
            ended = await command(other, *arguments)
            assert ended.code == 3, ended
            assert "gatehouse serve" in ended.err
            assert str(other.home) in ended.err
            assert ended.out == ""


@pytest.mark.requirement("OPS-12")
@pytest.mark.parametrize("own", [False, True])
async def test_a_token_goes_to_no_address_that_it_was_not_given_with(
    place: Place, own: bool, fail_after: FailAfter
) -> None:
    heard: list[str] = []

    async def listens(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    place.home.mkdir()
    home_token.make(place.home)
    place.variables["GATEHOUSE_HTTP__ADMIN_TOKEN"] = "of-the-settings-of-this-home"
    server = await asyncio.start_server(listens, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    named = {"GATEHOUSE_URL": f"http://127.0.0.1:{port}"}
    place.variables |= named if own else {"GATEHOUSE_HTTP__PORT": str(port)}
    async with fail_after(60), server:
        ended = await command(place, "sessions", "list")
    assert "Authorization" not in "".join(heard)
    assert len(heard) == (1 if own else 0)
    assert ended.code == (0 if own else 3)


@pytest.mark.requirement("OPS-12", "TTY-1")
async def test_without_a_gateway_the_chat_starts_one_and_says_so(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        said = await command(place, "chat", "-m", "hello")
    assert said.code == 0, said.err
    assert f"No gateway of {place.home} is running: this chat starts one" in said.err
    assert "offline model" in said.out
    assert list((place.home / "run").iterdir()) == []


@pytest.mark.requirement("WEB-2")
async def test_a_rotated_token_holds_at_once_and_ends_the_old_ones_logins(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), gateway(place) as program:
        url, old = await program.url(), token_of(place)
        rotated = await command(place, "token", "rotate")
        assert rotated.code == 0, rotated.err
        assert "no longer work" in rotated.out
        assert token_of(place) not in rotated.out
        assert await status(url, old) == 401
        assert await status(url, token_of(place)) == 200
        assert (await command(place, "sessions", "list")).code == 0
        # The gateway reads the file by itself before it is told.
        old, before = token_of(place), len(program.err)
        home_token.rotate(place.home)
        await program.says("configuration_read", after=before)
        assert await tell(place.home, SecretStr(old)) == 1
        assert await status(url, old) == 401
    again = await command(place, "token", "rotate")
    assert again.code == 0
    assert "when it starts next" in again.out


@pytest.mark.requirement("WEB-2", "SCALE-1")
async def test_every_replica_accepts_the_tokens_of_all_homes_and_no_rotated_one(
    place: Place, tmp_path: Path, fail_after: FailAfter
) -> None:
    server = postgres_server()
    name = await server.create()
    try:
        place.variables |= {
            "GATEHOUSE_DATABASE__URL": asyncpg_url(server.url(name)),
            "GATEHOUSE_WORKSPACE__PATH": str(tmp_path / "workspace"),
        }
        other = Place(tmp_path / "other", dict(place.variables))
        other.path.mkdir()
        async with fail_after(120), gateway(place) as first, gateway(other) as second:
            here, there = await first.url(), await second.url()
            one, two = token_of(place), token_of(other)
            assert one != two
            for url in (here, there):
                assert [await status(url, token) for token in (one, two)] == [200, 200]
            assert (await command(place, "token", "rotate")).code == 0
            for url in (here, there):
                assert [await status(url, token) for token in (one, token_of(place))] == [401, 200]
    finally:
        await server.drop(name)


class Screen:
    """What a program writes to a terminal."""

    def __init__(self) -> None:
        self.text = ""
        self._news = asyncio.Event()

    def heard(self, handle: int) -> None:
        """More came."""
        try:
            self.text += os.read(handle, 65_536).decode(errors="replace")
        except OSError:
            asyncio.get_running_loop().remove_reader(handle)
        self._news.set()

    async def until(self, pattern: str) -> re.Match[str]:
        """What was written, once it holds this."""
        while (found := re.search(pattern, self.text)) is None:
            self._news.clear()
            await self._news.wait()
        return found


@asynccontextmanager
async def on_terminal(place: Place) -> AsyncIterator[Screen]:
    """`gatehouse serve` with a terminal of its own; killed at the end of the block."""
    ours, theirs = pty.openpty()
    screen, loop = Screen(), asyncio.get_running_loop()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "serve"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=place.path,
        env=place.environment(),
    )
    os.close(theirs)
    loop.add_reader(ours, screen.heard, ours)
    try:
        yield screen
    finally:
        process.kill()
        await process.wait()
        loop.remove_reader(ours)
        os.close(ours)
