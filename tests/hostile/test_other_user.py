"""Another user of this machine, with every way to ask and no credential, gets nothing (SEC-3).

The table of routes is the application's own, so that a new route is tried by itself.
"""

import asyncio
import os
import pwd
import socket
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway import home_socket, home_token
from gateway.http.app import build_app
from gateway.http.auth import COOKIE, CSRF_HEADER
from gateway.http.pages import FORM_COOKIE
from tests.conftest import FailAfter
from tests.fakes.model import ScriptedModels
from tests.scenario.harness import ADMIN, Plan, Site, site
from tests.scenario.process.program import Place, gateway

OPEN = {
    ("GET", "/healthz"): (200,),
    ("GET", "/readyz"): (200,),
    ("GET", "/login"): (200,),
    ("POST", "/login"): (403,),
    ("GET", "/static/{name}"): (200, 404),
}
"""What is there for everybody, and what it answers."""
PAGES = ("/", "/v1/docs")
"""What sends a browser that nobody logged in to the login, and shows it nothing else."""
NAMES = {
    "session_id": "ses_1",
    "run_id": "run_1",
    "agent_id": "agt_1",
    "code": "ABC123",
    "name": "page.css",
    "outbox_id": "out_1",
    "place": "0",
    "path": "slack/events",
    "personas": "x",
}
HOSTS = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "gatehouse", "")
TRICKS: dict[str, dict[str, str]] = {
    "nothing": {},
    "an empty bearer": {"Authorization": "Bearer "},
    "a bearer of blanks": {"Authorization": "Bearer    "},
    "a bearer that says null": {"Authorization": "Bearer null"},
    "another scheme": {"Authorization": f"Basic {ADMIN}"},
    "a token without a scheme": {"Authorization": ADMIN},
    "nearly the token": {"Authorization": f"Bearer {ADMIN[:-1]}"},
    "a home's token that nobody made": {
        "Authorization": "Bearer gh-0123456789abcdef-" + "A" * 43,
    },
    "a made-up cookie": {"Cookie": f"{COOKIE}=made-up"},
    "an empty cookie": {"Cookie": f"{COOKIE}="},
    "the token as a cookie": {"Cookie": f"{COOKIE}={ADMIN}"},
    "the form's cookie": {"Cookie": f"{FORM_COOKIE}=x; {COOKIE}=x"},
    "a proxy's word for loopback": {
        "X-Forwarded-For": "127.0.0.1",
        "X-Real-IP": "127.0.0.1",
        "Forwarded": "for=127.0.0.1;host=localhost;proto=https",
        "X-Forwarded-Host": "localhost",
        "X-Forwarded-Proto": "https",
    },
    "a proxy's word for a user": {
        "X-Forwarded-User": "root",
        "X-Remote-User": "admin",
        "Remote-User": "owner",
        "X-Auth-Request-User": "owner",
    },
    "our own page": {
        "Sec-Fetch-Site": "same-origin",
        "Sec-Fetch-Mode": "navigate",
        "Origin": "http://127.0.0.1",
        CSRF_HEADER: "0" * 64,
    },
    "another method": {"X-HTTP-Method-Override": "GET", "X-Original-URL": "/healthz"},
    "an upgrade": {"Connection": "Upgrade", "Upgrade": "h2c"},
}


def routes(gateway: Site) -> list[tuple[str, str]]:
    """(method, pattern) of everything that the application serves."""
    table = build_app(gateway.services).router.routes()
    return sorted(
        {
            (route.method, route.resource.canonical)
            for route in table
            if route.resource is not None and route.method != "HEAD"
        }
    )


def concrete(pattern: str) -> str:
    """A path of this pattern."""
    for name, value in NAMES.items():
        pattern = pattern.replace("{" + name + "}", value)
    return pattern.partition("{")[0] + ("x" if "{" in pattern else "")


@pytest.mark.requirement("SEC-3", "WEB-2")
@pytest.mark.parametrize("trick", TRICKS)
async def test_no_route_does_anything_without_a_credential(
    tmp_path: Path, trick: str, fail_after: FailAfter
) -> None:
    async with fail_after(60), site(Plan(tmp_path, ScriptedModels())) as gateway:
        every = routes(gateway)
        assert len(every) > 35
        for method, pattern in every:
            url = f"{gateway.url}{concrete(pattern)}"
            async with gateway.client.request(
                method, url, headers=TRICKS[trick], allow_redirects=False
            ) as answer:
                found = answer.status
                gateway.client.cookie_jar.clear()
            if pattern in PAGES:
                assert (found, answer.headers.get("Location")) in (
                    (303, "/login"),
                    (401, None),
                    (429, None),
                )
            elif (method, pattern) in OPEN:
                assert found in OPEN[method, pattern], (method, pattern, found)
            else:
                assert found in (401, 429), (method, pattern, found)


@pytest.mark.requirement("SEC-3", "WEB-2")
@pytest.mark.parametrize("host", HOSTS)
async def test_no_name_of_this_machine_opens_a_route(
    tmp_path: Path, host: str, fail_after: FailAfter
) -> None:
    async with fail_after(60), site(Plan(tmp_path, ScriptedModels())) as gateway:
        for method, pattern in routes(gateway):
            if (method, pattern) in OPEN:
                continue
            url = f"{gateway.url}{concrete(pattern)}"
            async with gateway.client.request(
                method, url, headers={"Host": host}, allow_redirects=False
            ) as answer:
                assert answer.status in (303 if pattern in PAGES else 401, 421), (method, pattern)


@pytest.mark.requirement("OPS-12", "SEC-3")
async def test_the_socket_alone_grants_nothing(place: Place, fail_after: FailAfter) -> None:
    """Also to the gateway's own user: a command that it runs, for example."""
    async with fail_after(60), gateway(place) as program:
        await program.url()
        (path,) = home_socket.live(place.home)
        assert await asks(path, "") == 401
        assert await asks(path, home_token.read(place.home) or "") == 200


@pytest.mark.requirement("OPS-12", "SEC-3", "WEB-2")
async def test_another_user_reaches_neither_the_socket_nor_the_token(
    place: Place, fail_after: FailAfter
) -> None:
    if os.geteuid() != 0:
        pytest.skip("trying as another user needs root: run the tests as root in a container")
    other = pwd.getpwnam("nobody")
    async with fail_after(60), gateway(place) as program:
        await program.url()
        # As wide open as an operator could leave what is around the home.
        for folder in (place.path, *place.path.parents[:2]):
            folder.chmod(0o755)
        place.home.chmod(0o755)
        (path,) = home_socket.live(place.home)
        for attempt in (
            lambda: path.parent.iterdir().__next__(),
            lambda: path.stat(),
            lambda: connects(path),
            lambda: (place.home / "token").read_bytes(),
            lambda: (place.home / "gatehouse.db").read_bytes(),
            lambda: (place.home / "run" / "x").touch(),
        ):
            assert as_user(other, attempt) == "PermissionError"


async def asks(path: Path, token: str) -> int:
    """The status of a request over a socket."""
    reader, writer = await asyncio.open_unix_connection(str(path))
    credential = f"Authorization: Bearer {token}\r\n" if token else ""
    head = f"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\n{credential}Connection: close\r\n\r\n"
    writer.write(head.encode())
    status = (await reader.read()).split()[1]
    writer.close()
    return int(status)


def connects(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))


def as_user(user: pwd.struct_passwd, attempt: Callable[[], object]) -> str:
    """The name of the error that an attempt ends with in a process of another user."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # The child runs nothing of ours but the attempt.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
            attempt()
            said = "nothing stopped it"
        except BaseException as error:  # noqa: BLE001 - whatever ends the child is told
            said = type(error).__name__
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as told:
        said = told.read()
    os.waitpid(child, 0)
    return said
