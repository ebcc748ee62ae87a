"""The capability scope of a session by the API: what it narrows, and for whom (RUN-1, POL-5)."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from sqlalchemy import select

from runtime.domain.decisions import PermissionMode
from runtime.domain.events import EventKind
from runtime.ports.model import ModelRequest
from runtime.sessions import events
from runtime.sessions.bounds import PolicySettings, rule_lists
from runtime.sessions.tables import audit
from tests.contract.store_support import BOTH
from tests.fakes.model import Gate, Said, Script, ScriptedModel, ScriptedModels
from tests.scenario.harness import READER, Plan, Site, database_of, site
from tests.scenario.http.conftest import ASKS, Sites
from tests.scenario.subagents.children import name_of, spawn
from tests.scenario.subagents.family import results

pytestmark = pytest.mark.requirement("RUN-1")

Gateways = Callable[..., AbstractAsyncContextManager[Site]]
DENIED = "denied: Denied by policy (capability scope: "
NO_LIMIT = {"tools": None, "denied_tools": [], "paths": None, "network": None, "depth": None}
NO_SPEND = {"tokens": None, "micro_usd": None, "steps": None}


@pytest.fixture(params=BOTH)
async def gateways(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Gateways]:
    """Gateways on one database: a second one is a restart."""
    async with database_of(request.param) as database:

        def make(script: Script, **plan: object) -> AbstractAsyncContextManager[Site]:
            models = ScriptedModels(ScriptedModel(script))
            return site(Plan(tmp_path, models, database=database, **plan))

        yield make


def calls(*wanted: tuple[str, dict[str, object]]) -> Said:
    return Said("", calls=tuple((name, json.dumps(arguments)) for name, arguments in wanted))


def path_of(session: str) -> str:
    return f"/v1/sessions/{session}/capability-scope"


async def narrow(gateway: Site, session: str, **scope: object) -> dict[str, object]:
    status, view = await gateway.ask("PUT", path_of(session), scope)
    assert status == 200, view
    return view


async def ran(gateway: Site, session: str) -> None:
    """Say something, and wait for the end of the run."""
    await gateway.state(await gateway.says(session, "go"), "completed")


class Tries:
    """A model that makes the same calls in each run; what they came to, a list for each run, and
    the names of the tools that it was offered."""

    def __init__(self, *wanted: tuple[str, dict[str, object]]) -> None:
        self._wanted = wanted
        self.results: list[list[str]] = []
        self.offered: set[str] = set()

    def __call__(self, request: ModelRequest) -> Said | str:
        self.offered = {tool.name for tool in request.tools}
        if request.step == 1:
            return calls(*self._wanted)
        self.results.append(results(request))
        return "Done."


AXES: list[tuple[dict[str, object], str, tuple[str, dict[str, object]]]] = [
    ({"tools": ["glob"]}, "tools: Only glob", ("list_dir", {"path": "."})),
    ({"denied_tools": ["list_*"]}, "tools: Any tool", ("list_dir", {"path": "."})),
    ({"tools": []}, "tools: No tool", ("list_dir", {"path": "."})),
    ({"paths": ["notes"]}, "paths: Only /", ("read_file", {"path": "SOUL.md"})),
    ({"paths": ["notes"]}, "paths: Only /", ("exec", {"command": "ls"})),
    (
        {"network": ["*.Example.org"]},
        "network: Only *.example.org",
        ("web_fetch", {"url": "https://b.org/"}),
    ),
    ({"depth": 0}, "depth: No children", ("sessions_spawn", {"task": "look"})),
]


@pytest.mark.requirement("RUN-1", "POL-5")
@pytest.mark.parametrize(("scope", "rule", "call"), AXES)
async def test_each_axis_holds_until_it_is_taken_away(
    gateways: Gateways, scope: dict[str, object], rule: str, call: tuple[str, dict[str, object]]
) -> None:
    tries = Tries(call)
    bypass = PolicySettings(PermissionMode.BYPASS)
    async with asyncio.timeout(300), gateways(tries, policy=bypass) as gateway:
        session = await gateway.session()
        await narrow(gateway, session, **scope)
        await ran(gateway, session)
    ((held,),) = tries.results
    assert held.startswith(f"{DENIED}{rule}"), held
    async with asyncio.timeout(300), gateways(tries, policy=bypass) as gateway:
        await ran(gateway, session)
        assert tries.results[1] == [held], "it survives a restart"
        status, view = await gateway.ask("DELETE", path_of(session))
        assert (status, view["capability_scope"]) == (200, None)
        assert view["effective_capability_scope"] == {**NO_LIMIT, "spend": NO_SPEND}


async def test_what_is_taken_away_allows_again_and_other_sessions_were_never_bounded(
    gateways: Gateways,
) -> None:
    tries = Tries(("list_dir", {"path": "."}), ("glob", {"pattern": "*"}))
    async with asyncio.timeout(300), gateways(tries) as gateway:
        session, other = await gateway.session(), await gateway.session()
        await narrow(gateway, session, tools=["glob"])
        await ran(gateway, session)
        assert (tries.results[-1][0][:6], tries.results[-1][1][:2]) == ("denied", "ok")
        assert tries.offered == {"glob"}, "what cannot be called is not offered"
        await ran(gateway, other)
        assert [one[:2] for one in tries.results[-1]] == ["ok", "ok"]
        await gateway.ask("DELETE", path_of(session))
        await ran(gateway, session)
        assert [one[:2] for one in tries.results[-1]] == ["ok", "ok"]
        assert "list_dir" in tries.offered


@pytest.mark.requirement("RUN-1", "POL-5", "SUB-18")
async def test_subagents_get_no_more_than_the_session_has(gateways: Gateways) -> None:
    seen: dict[str, list[str]] = {}

    def script(request: ModelRequest) -> Said | str:
        name, step = name_of(request), request.step
        seen[f"{name}{step}"] = results(request)
        if not name:
            if step == 1:
                return calls(
                    ("sessions_spawn", {"task": "x", "paths": ["."]}),
                    (
                        "sessions_spawn",
                        {"task": "x", "type": "general", "allowed_tools": ["list_dir"]},
                    ),
                )
            return spawn(task="look", type="general", id="child") if step == 2 else "Done."
        wanted = (("read_file", {"path": "SOUL.md"}), ("list_dir", {"path": "notes"}))
        return calls(*wanted) if step == 1 else "Looked."

    async with asyncio.timeout(300), gateways(script) as gateway:
        session = await gateway.session()
        await narrow(
            gateway, session, tools=["*"], denied_tools=["list_dir"], paths=["notes"], depth=2
        )
        await ran(gateway, session)
        wide, unheld = seen["2"]
        assert "wider on the axis paths" in wide
        assert "wider on the axis tools: list_dir" in unheld
        soul, listed = seen["child2"]
        assert soul.startswith(f"{DENIED}paths: ")
        assert listed.startswith("denied: ")
        _, page = await gateway.ask("GET", f"/v1/agents/summaries?root={session}")
        (child,) = page["items"]
        child_id = str(child["session_id"])
        # What its parent gets back does not come to a child that is there, nor does it get more
        # by a scope of its own.
        await gateway.ask("DELETE", path_of(session))
        view = await narrow(gateway, child_id, paths=["/"])
        ((notes,), (top,)) = sorted(view["effective_capability_scope"]["paths"], reverse=True)
        assert (notes.endswith("/files/notes"), top) == (True, "/")
        assert view["effective_capability_scope"]["depth"] == 1
        assert ["list_dir"] not in view["effective_capability_scope"]["tools"]
        _, view = await gateway.ask("DELETE", path_of(child_id))
        assert view["effective_capability_scope"]["paths"] == [[notes]]


@pytest.mark.requirement("RUN-1", "POL-2")
async def test_it_never_widens_what_the_operator_allows(gateways: Gateways) -> None:
    tries = Tries(("read_file", {"path": "SOUL.md"}), ("write_file", {"path": "a", "content": "a"}))
    policy = PolicySettings(PermissionMode.PLAN, rule_lists(deny=("read_file",)))
    async with asyncio.timeout(300), gateways(tries, policy=policy) as gateway:
        session = await gateway.session()
        await narrow(gateway, session, tools=["*"], paths=["/"], network=["*"], depth=100)
        await ran(gateway, session)
        read, wrote = tries.results[0]
        assert "deny rule" in read
        assert "plan mode is read-only" in wrote


async def test_a_session_shows_its_own_scope_and_what_holds(gateways: Gateways) -> None:
    async with gateways(()) as gateway:
        session = await gateway.session()
        _, view = await gateway.ask("GET", f"/v1/sessions/{session}")
        assert view["capability_scope"] is None
        assert view["effective_capability_scope"] == {**NO_LIMIT, "spend": NO_SPEND}
        view = await narrow(
            gateway,
            session,
            tools=["read_file", "g*"],
            denied_tools=["glob"],
            paths=["notes", "SOUL.md", "/srv/data"],
            network=[],
            depth=1,
        )
        home = str(gateway.workspace.resolve())
        paths = sorted(["/srv/data", f"{home}/SOUL.md", f"{home}/files/notes"])
        rest = {"denied_tools": ["glob"], "depth": 1}
        own = {"tools": ["g*", "read_file"], "paths": paths, "network": [], **rest}
        assert view["capability_scope"] == own
        held = {name: [own[name]] for name in ("tools", "paths", "network")}
        assert view["effective_capability_scope"] == {**held, **rest, "spend": NO_SPEND}
        assert await gateway.ask("GET", f"/v1/sessions/{session}") == (200, view)
        view = await narrow(gateway, session, depth=1)
        assert view["capability_scope"] == {**NO_LIMIT, "depth": 1}, "the whole scope is replaced"


async def test_the_same_again_changes_nothing_and_each_change_is_told(gateways: Gateways) -> None:
    async with gateways(()) as gateway:
        session = await gateway.session()
        for tools in (["glob", "grep"], ["grep", "glob"], ["grep"]):
            view = await narrow(gateway, session, tools=tools)
        assert view == await narrow(gateway, session, tools=["grep"])
        for _ in range(2):
            assert (await gateway.ask("DELETE", path_of(session)))[0] == 200
        wanted = [{"tools": {"lists": [names]}} for names in (["glob", "grep"], ["grep"])]
        found = await gateway.database.read(lambda conn: events.after(conn, 0, limit=100))
        told = [one for one in found if one.kind is EventKind.SESSION_CHANGED]
        assert [one.data for one in told] == [{"capability_scope": one} for one in (*wanted, None)]
        query = select(audit.c.data).where(audit.c.action == "session.changed")
        rows = await gateway.database.read(lambda conn: conn.execute(query).scalars().all())
        assert [json.loads(one)["capability_scope"] for one in rows] == [*wanted, None]


async def test_only_an_idle_session_changes_its_scope(sites: Sites) -> None:
    gate = Gate()
    async with sites(Said("one", before=gate), ASKS) as gateway:
        session = await gateway.session()
        first = await gateway.says(session, "go")
        await gate.reached.wait()
        second = await gateway.says(session, "and then")
        for method, body in (("PUT", {"tools": []}), ("DELETE", None)):
            status, problem = await gateway.ask(method, path_of(session), body)
            assert (status, problem["state"]) == (409, "running")
            assert "the capability scope changes only while" in str(problem["detail"])
        gate.open.set()
        await gateway.state(first, "completed")
        await gateway.state(second, "waiting_for_approval")
        status, problem = await gateway.ask("PUT", path_of(session), {"tools": []})
        assert (status, problem["state"]) == (409, "waiting_for_approval")
        _, view = await gateway.ask("GET", f"/v1/sessions/{session}")
        assert view["capability_scope"] is None
        await gateway.ask("POST", f"/v1/sessions/{session}/interrupt")
        assert (await gateway.ask("PUT", path_of(session), {"tools": []}))[0] == 200


@pytest.mark.parametrize(
    ("scope", "field", "rule"),
    [
        ({"tools": ["glob", "fly"]}, "tools", "names no tool that there is; there are: "),
        ({"tools": ["mcp__*"]}, "tools", "names no tool that there is"),
        ({"denied_tools": ["[e]xec"]}, "denied_tools", "names no tool that there is"),
        ({"denied_tools": ["no tool"]}, "denied_tools", "must be a name"),
        ({"secrets": ["*"]}, "secrets", "is not a key; there are tools, denied"),
        ({"mode": "plan"}, "mode", "is not a key"),
        ({"paths": ["../etc"]}, "paths", "without .., * and ?"),
        ({"paths": ["notes/*"]}, "paths", "without .., * and ?"),
        ({"network": ["https://example.org"]}, "network", "must be a host"),
        ({"depth": -1}, "depth", "greater than or equal to 0"),
        ({"tools": "glob"}, "tools", "valid array"),
    ],
)
async def test_a_scope_that_cannot_hold_is_refused_with_its_axis(
    sites: Sites, scope: dict[str, object], field: str, rule: str
) -> None:
    async with sites() as gateway:
        session = await gateway.session()
        before = await narrow(gateway, session, tools=["glob"])
        status, problem = await gateway.ask("PUT", path_of(session), scope)
        assert (status, problem["field"]) == (422, field)
        assert rule in str(problem["rule"])
        assert await gateway.ask("GET", f"/v1/sessions/{session}") == (200, before)


async def test_who_may_not_change_sessions_changes_no_scope(sites: Sites) -> None:
    async with sites() as gateway:
        path = path_of(await gateway.session())
        assert (await gateway.ask("PUT", path, {"tools": []}, token=READER))[0] == 403
        assert (await gateway.ask("DELETE", path, token=None))[0] == 401
        status, problem = await gateway.ask("PUT", path_of("ses_nobody"), {"tools": []})
        assert (status, problem["kind"]) == (404, "session")
        assert (await gateway.ask("DELETE", path_of("ses_nobody")))[0] == 404
