"""The persona of a session by the API: given, taken away, refused, shown (CTX-11, RUN-1)."""

from pathlib import Path

import pytest

from tests.fakes.model import Gate, Said
from tests.scenario.harness import READER, Site
from tests.scenario.http.conftest import ASKS, Sites

pytestmark = pytest.mark.requirement("CTX-11", "RUN-1")


def write(workspace: Path, name: str, text: str | bytes, *, file: str = "SOUL.md") -> None:
    path = workspace / "personas" / name / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


async def context(gateway: Site, session: str) -> str:
    """What `gatehouse context` prints of the prompt's files."""
    status, found = await gateway.ask("GET", f"/v1/sessions/{session}/context")
    assert status == 200, found
    return "\n".join(block["text"] for block in found["blocks"])


async def test_a_persona_is_given_shown_and_taken_away(sites: Sites) -> None:
    async with sites("Arr.", "Hello.") as gateway:
        write(gateway.workspace, "pirate", "Speak like a pirate.")
        session = await gateway.session()
        path = f"/v1/sessions/{session}/persona"
        _, view = await gateway.ask("GET", f"/v1/sessions/{session}")
        assert view["persona"] is None
        status, view = await gateway.ask("PUT", path, {"persona": "pirate"})
        assert (status, view["persona"]["name"]) == (200, "pirate")
        assert len(view["persona"]["digest"]) == 64
        assert await gateway.ask("GET", f"/v1/sessions/{session}") == (200, view)
        assert "Speak like a pirate." in await context(gateway, session)
        await gateway.state(await gateway.says(session, "hi"), "completed")
        write(gateway.workspace, "pirate", "Speak like a parrot.")
        assert "Speak like a pirate." in await context(gateway, session)
        for _ in range(2):
            status, view = await gateway.ask("DELETE", path)
            assert (status, view["persona"]) == (200, None)
        shown = await context(gateway, session)
        assert "pirate" not in shown
        assert "AGENTS.md" in shown


async def test_only_an_idle_session_changes_its_persona(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said("one", before=gate), ASKS, "three") as gateway:
        write(gateway.workspace, "pirate", "Speak like a pirate.")
        session = await gateway.session()
        path = f"/v1/sessions/{session}/persona"
        first = await gateway.says(session, "go")
        await gate.reached.wait()
        second = await gateway.says(session, "and then")
        for method, body in (("PUT", {"persona": "pirate"}), ("DELETE", None)):
            status, problem = await gateway.ask(method, path, body)
            assert (status, problem["state"]) == (409, "running")
            assert "wait until that is over or stop it" in str(problem["detail"])
        gate.open.set()
        await gateway.state(first, "completed")
        await gateway.state(second, "waiting_for_approval")
        status, problem = await gateway.ask("PUT", path, {"persona": "pirate"})
        assert (status, problem["state"]) == (409, "waiting_for_approval")
        await gateway.ask("POST", f"/v1/sessions/{session}/interrupt")
        status, view = await gateway.ask("PUT", path, {"persona": "pirate"})
        assert (status, view["persona"]["name"]) == (200, "pirate")


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({}, "Field required"),
        ({"persona": None}, "valid string"),
        ({"persona": ".."}, "must be the name of a folder in personas/"),
        ({"persona": "../../etc"}, "must be the name of a folder in personas/"),
        ({"persona": "x" * 500}, "at most 200"),
        ({"persona": "sailor"}, "there are: empty, huge, pirate"),
        ({"persona": "empty"}, "has none of AGENTS.md, SOUL.md"),
        ({"persona": "huge"}, "personas/huge/SOUL.md cannot be used: it is larger than 256 KiB"),
    ],
)
async def test_a_persona_that_cannot_be_taken_is_refused_with_what_to_mend(
    sites: Sites, body: object, rule: str
) -> None:
    async with sites() as gateway:
        write(gateway.workspace, "pirate", "Speak like a pirate.")
        write(gateway.workspace, "huge", b"x" * (256 * 1024 + 1))
        write(gateway.workspace, "empty", "nothing of it", file="README.md")
        session = await gateway.session()
        path = f"/v1/sessions/{session}/persona"
        await gateway.ask("PUT", path, {"persona": "pirate"})
        status, problem = await gateway.ask("PUT", path, body)
        assert (status, problem["field"]) == (422, "persona")
        assert rule in str(problem["rule"])
        _, view = await gateway.ask("GET", f"/v1/sessions/{session}")
        assert view["persona"]["name"] == "pirate", "a refusal changes nothing"


async def test_who_may_not_change_sessions_changes_no_persona(sites: Sites) -> None:
    async with sites() as gateway:
        write(gateway.workspace, "pirate", "Speak like a pirate.")
        path = f"/v1/sessions/{await gateway.session()}/persona"
        assert (await gateway.ask("PUT", path, {"persona": "pirate"}, token=READER))[0] == 403
        assert (await gateway.ask("PUT", path, {"persona": "pirate"}, token=None))[0] == 401
        missing = "/v1/sessions/ses_nobody/persona"
        status, problem = await gateway.ask("PUT", missing, {"persona": "pirate"})
        assert (status, problem["kind"]) == (404, "session")
        assert (await gateway.ask("DELETE", missing))[0] == 404
