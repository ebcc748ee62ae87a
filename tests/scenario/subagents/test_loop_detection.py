"""Children that go in circles are told so, and ended with their work (SUB-20)."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from sqlalchemy import select

from runtime.domain.errors import StoreUnavailable
from runtime.domain.transcript import AssistantMessage, NoticeMessage
from runtime.features.subagents.loop_detection import WORDS, Stage, Watch
from runtime.features.subagents.rows.retries import HANDOFF
from runtime.features.subagents.turn_guest import kept_watch
from runtime.ports.model import ModelRequest
from runtime.sessions import runs, transcripts
from runtime.sessions.tables import inputs
from runtime.store import Connection
from tests.contract.store_support import dialect, migrated_url, schema_templates
from tests.fakes.model import Gate, Said
from tests.scenario.engine import World, writes
from tests.scenario.subagents.children import engine, name_of, settled, spawn, told

__all__ = ["dialect", "migrated_url", "schema_templates"]

NUDGE, FINAL = WORDS[Stage.NUDGED], WORDS[Stage.FINAL_NOTICE]
ENDED = "(It was ended here: it kept repeating itself.)"


@pytest.fixture
def url(migrated_url: str) -> str:
    return migrated_url


def read(*paths: str, text: str = "") -> Said:
    calls = [("read_file", json.dumps({"path": path})) for path in paths]
    return Said(text, calls=tuple(calls))


def warnings(request: ModelRequest) -> list[str]:
    """What a request says of circles, in order."""
    said = [one.text for one in request.messages if isinstance(one, NoticeMessage)]
    return [text for text in said if text in (NUDGE, FINAL)]


class Child:
    """A root that awaits one child, and a child that does what is written down for its step."""

    def __init__(self, at_step: Callable[[int], Said | str]) -> None:
        self.asked: list[ModelRequest] = []
        self.root: list[str] = []
        self._at_step = at_step

    def __call__(self, request: ModelRequest) -> Said | str:
        if name_of(request):
            self.asked.append(request)
            return self._at_step(len(self.asked))
        if "The subagent one" not in told(request):
            return spawn(task="look", id="one")
        self.root.append(told(request))
        return "Told."


async def went(path: Path, url: str, child: Child) -> tuple[str | None, str]:
    """The status and the result of the child."""
    async with engine(path, url, child) as at:
        await at.says("go")
        assert await at.sees(1) == ["Told."]
        (one,) = (await settled(at)).values()
        assert one.retries == 0
        return one.status, one.result


def in_turn(steps: Sequence[Said | str]) -> Callable[[int], Said | str]:
    return lambda number: steps[number - 1]


@pytest.mark.requirement("SUB-20")
async def test_the_same_call_is_warned_of_twice_and_then_ends_the_child_with_its_work(
    tmp_path: Path, url: str
) -> None:
    child = Child(lambda _: read("AGENTS.md", text="I know half of it."))
    status, result = await went(tmp_path, url, child)
    assert [warnings(one) for one in child.asked] == [[], [], [], [NUDGE], [NUDGE, FINAL]]
    assert (status, result) == ("forced", f"I know half of it.\n\n{ENDED}")
    assert "The subagent one (explore) forced after" in child.root[0]
    assert "I know half of it." in child.root[0]


@pytest.mark.requirement("SUB-20")
async def test_two_calls_in_alternation_are_a_circle(tmp_path: Path, url: str) -> None:
    child = Child(lambda number: read("AGENTS.md" if number % 2 else "SOUL.md"))
    status, result = await went(tmp_path, url, child)
    assert [len(warnings(one)) for one in child.asked] == [0, 0, 0, 0, 0, 1, 2]
    assert (status, result) == ("forced", f"There is no result yet.\n\n{ENDED}")


@pytest.mark.requirement("SUB-20")
async def test_the_same_text_again_and_again_is_a_circle_by_way_of_its_own_children(
    tmp_path: Path, url: str
) -> None:
    """Each of its runs spawns somebody, says the same, and is run again by the handoff.

    A subagent answers only once the one that started it speaks: a result that came before would
    be read in the run that spawned it, and no words would follow it.
    """
    asked: list[ModelRequest] = []
    answering: list[Gate] = []

    def script(request: ModelRequest) -> Said | str:
        name = name_of(request)
        if name == "one":
            asked.append(request)
            said = [m for m in request.messages if isinstance(m, AssistantMessage)]
            if not (said and said[-1].tool_calls):
                answering.append(Gate())
                return spawn(task="x", mode="background")
            answering[-1].open.set()
            return "I wait for it."
        if name:
            return Said("Nothing.", before=answering[-1])
        return "Told." if "The subagent one" in told(request) else spawn(task="look", id="one")

    async with engine(tmp_path, url, script) as at:
        await at.says("go")
        assert await at.sees(1) == ["Told."]
        found = await settled(at)
    one = found.pop("one")
    assert (one.status, one.result) == ("forced", "I wait for it.")
    assert warnings(asked[-1]) == [NUDGE, FINAL]
    assert {other.status for other in found.values()} <= {"completed", "cancelled"}


@pytest.mark.requirement("SUB-20")
async def test_a_result_that_comes_while_it_speaks_is_no_part_of_what_it_answers(
    tmp_path: Path, url: str
) -> None:
    """The run after it is told of that one; so all that it was warned of stands in its window.

    A subagent answers only once the one that started it speaks: a result that came before would
    be a part of what it answers.
    """
    asked: list[ModelRequest] = []
    answering: list[Gate] = []
    speaking: list[Gate] = []
    news: list[asyncio.Event] = []

    def script(request: ModelRequest) -> Said | str:
        name = name_of(request)
        if name == "one":
            asked.append(request)
            said = [m for m in request.messages if isinstance(m, AssistantMessage)]
            if not (said and said[-1].tool_calls):
                answering.append(Gate())
                return spawn(task="x", mode="background")
            answering[-1].open.set()
            speaking.append(Gate())
            news[0].set()
            return Said("I wait for it.", before=speaking[-1])
        if name:
            return Said("Nothing.", before=answering[-1])
        return "Told." if "The subagent one" in told(request) else spawn(task="look", id="one")

    async def goes_on_behind_each_result(at: World) -> None:
        query = select(inputs.c.id).where(
            inputs.c.state == "pending", inputs.c.identity.startswith(HANDOFF)
        )
        while True:
            if await at.database.read(lambda conn: bool(conn.execute(query).all())):
                for gate in speaking:
                    gate.open.set()
            await news[0].wait()
            news[0].clear()

    async with engine(tmp_path, url, script) as at, writes(at.database) as written:
        news.append(written)
        going = asyncio.create_task(goes_on_behind_each_result(at), name="results")
        await at.says("go")
        assert await at.sees(1) == ["Told."]
        found = await settled(at)
        going.cancel()
        await asyncio.wait([going])
    assert found["one"].status == "forced"
    assert warnings(asked[-1]) == [NUDGE, FINAL]


@pytest.mark.requirement("SUB-20")
async def test_the_same_words_to_the_results_of_several_are_no_circle(
    tmp_path: Path, url: str
) -> None:
    """They end one after the other, with the same result, and it waits for the rest."""
    asked: list[ModelRequest] = []
    batch = [{"task": f"look at {number}", "group": "g"} for number in range(6)]

    def script(request: ModelRequest) -> Said | str:
        name = name_of(request)
        if name == "one":
            asked.append(request)
            return spawn(agents=batch, mode="background") if len(asked) == 1 else "I wait."
        if name:
            return "Fine."
        return "Told." if "The subagent one" in told(request) else spawn(task="look", id="one")

    async with engine(tmp_path, url, script) as at:
        await at.says("go")
        assert await at.sees(1) == ["Told."]
        found = await settled(at)
    assert (found["one"].status, found["one"].result) == ("completed", "I wait.")
    # Results that arrive together are read together.
    assert 2 < len(asked) <= 8
    assert not any(warnings(one) for one in asked)


@pytest.mark.requirement("SUB-20")
@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([read("AGENTS.md", "SOUL.md", "USER.md")], id="three-files-in-one-step"),
        pytest.param([read("AGENTS.md"), read("AGENTS.md")], id="twice"),
        pytest.param([read(f"{number}.md") for number in range(8)], id="eight-different-reads"),
        pytest.param([read("x" * 4000 + f"{n}.md") for n in range(8)], id="differ-late"),
    ],
)
async def test_work_is_no_circle(tmp_path: Path, url: str, steps: Sequence[Said]) -> None:
    child = Child(in_turn([*steps, "Done with it."]))
    assert await went(tmp_path, url, child) == ("completed", "Done with it.")
    assert not any(warnings(one) for one in child.asked)


@pytest.mark.requirement("SUB-20")
async def test_asking_again_for_what_changes_is_no_circle(tmp_path: Path, url: str) -> None:
    def poll(number: int) -> Said | str:
        (tmp_path / "workspace/files" / "progress.txt").write_text(f"{number} of 12\n")
        return read("progress.txt") if number < 12 else "All 12."

    child = Child(poll)
    assert await went(tmp_path, url, child) == ("completed", "All 12.")
    assert not any(warnings(one) for one in child.asked)


@pytest.mark.requirement("SUB-20", "SUB-24")
async def test_who_is_told_something_new_begins_anew(tmp_path: Path, url: str) -> None:
    """The third look at the same file would be a circle; here somebody asked for it."""
    steps = (read("a.md"), read("a.md"), "First.", read("a.md"), read("a.md"), "Second.")
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> Said | str:
        if name_of(request):
            asked.append(request)
            return steps[len(asked) - 1]
        if "Second." in told(request):
            return "Told."
        if request.step == 1:
            return spawn(task="look", id="one")
        words = {"action": "message", "agent": "one", "text": "once more"}
        again = Said("", calls=(("subagents", json.dumps(words)),))
        return again if request.step == 2 else "Asked."

    async with engine(tmp_path, url, script) as at:
        await at.says("go")
        assert await at.sees(2) == ["Asked.", "Told."]
        assert (await settled(at))["one"].status == "completed"
    assert not any(warnings(request) for request in asked)


@pytest.mark.requirement("SUB-20")
async def test_who_is_no_child_is_not_watched(tmp_path: Path, url: str) -> None:
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> Said | str:
        asked.append(request)
        return read("AGENTS.md") if len(asked) < 8 else "Read."

    async with engine(tmp_path, url, script) as at:
        await at.says("go")
        assert await at.sees(1) == ["Read."]
    assert not any(warnings(one) for one in asked)


@pytest.mark.requirement("SUB-20")
async def test_a_restart_neither_loses_nor_doubles_a_warning(tmp_path: Path, url: str) -> None:
    """It stops before the fourth step, when the first warning stands, and goes on to the end."""
    gate = Gate()

    def before(number: int) -> Said:
        return read("AGENTS.md") if number < 4 else Said("never", before=gate)

    first, second = Child(before), Child(lambda _: read("AGENTS.md", text="Half."))
    async with engine(tmp_path, url, first) as at:
        await at.says("go")
        await gate.reached.wait()
    async with engine(tmp_path, url, second) as at:
        assert await at.sees(1) == ["Told."]
        (one,) = (await settled(at)).values()
        assert one.status == "forced"
        assert await _judged(at, one.session_id) is Stage.FORCED
    assert warnings(first.asked[-1]) == [NUDGE]
    assert [warnings(request) for request in second.asked] == [[NUDGE], [NUDGE, FINAL]]


@pytest.mark.requirement("SUB-20")
async def test_a_crash_before_the_forced_end_is_kept_does_not_let_it_go_on(
    tmp_path: Path, url: str
) -> None:
    failures = ["finish:begin"]

    def point(name: str) -> None:
        if name in failures:
            failures.remove(name)
            raise StoreUnavailable("the disk is away")

    child = Child(lambda _: read("AGENTS.md"))
    async with engine(tmp_path, url, child, point=point) as at:
        await at.says("go")
        assert await at.sees(1) == ["Told."]
        (one,) = (await settled(at)).values()
    assert (one.status, failures, len(child.asked)) == ("forced", [], 5)


async def _judged(at: World, session_id: str) -> Stage:
    """The stage that a worker would read from the rows of the child's last run."""

    def look(conn: Connection) -> Watch:
        lines = transcripts.since(conn, session_id, transcript=1, first=1)
        return kept_watch(conn, runs.get(conn, lines[-1].run_id or ""))

    return (await at.database.read(look)).stage
