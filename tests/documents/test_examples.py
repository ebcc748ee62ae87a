"""Each command of the README and of `docs/` is run as it stands, in a home that was just made."""

import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

from tests.conftest import FailAfter
from tests.documents.examples import DOCUMENTS, ROOT, SAY, Example, examples
from tests.documents.outside import OUTSIDE
from tests.documents.reader import Reader, reading
from tests.support.postgres import postgres_server

PAGE: Final = "127.0.0.1:8080"
"""Where a gateway answers in documents. Here it takes a free port."""
PORT: Final = re.compile(r"(?<=GATEHOUSE_HTTP__PORT=)\d+")
DATABASE: Final = "postgresql+asyncpg://USER:PASSWORD@127.0.0.1:5432/gatehouse"
"""What a reader writes the own database for."""
WAITS: Final = 4
"""The exit status of `gatehouse chat -m` where somebody must answer something first."""
NOT_UNDERSTOOD: Final = "I do not understand that"
SERVES: Final = re.compile(r"(?:^|\s)(?:make run|\S*gatehouse serve)(?:\s|$)")


def tried(document: Path) -> Iterator[Sequence[Example]]:
    """Its commands in the groups in which they are run, but for those that cannot be run here.

    A section that starts a gateway is run alone, the others together with one that runs already.
    """
    together = list[Example]()
    for _, found in groupby(examples(document), key=lambda one: one.section):
        section = [one for one in found if not any(outside.covers(one) for outside in OUTSIDE)]
        if any(SERVES.search(one.command) for one in section):
            yield section
        else:
            together += section
    if together:
        yield together


GROUPS: Final = [group for document in DOCUMENTS for group in tried(document)]
SAID: Final = [
    group
    if any(SERVES.search(example.command) for example in group)
    else [example for example in group if SAY in example.command]
    for group in GROUPS
    if any(SAY in example.command for example in group)
]
"""Where something is said to the agent, which may run commands in the sandbox."""
CASES: Final = [
    pytest.param(group, backend, id=f"{group[0].document}:{group[0].line}-{backend}")
    for backend, groups in (("auto", GROUPS), ("landlock", SAID))
    for group in groups
]


@pytest.fixture
def home() -> Iterator[Path]:
    """The home folder of somebody who has not used it yet."""
    folder = Path(tempfile.mkdtemp(prefix="gatehouse-reader-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def database(group: Sequence[Example]) -> AsyncIterator[str]:
    """A new database of PostgreSQL for the examples that name one."""
    if not any(DATABASE in example.command for example in group):
        yield ""
        return
    server = postgres_server()
    name = await server.create()
    yield server.url(name).replace("postgresql:", "postgresql+asyncpg:")
    await server.drop(name)


async def follow(reader: Reader, group: Sequence[Example], database: str) -> None:
    """Type the commands one after another, and compare what they show."""
    for example in group:
        command = PORT.sub("0", example.command.replace(DATABASE, database))
        page = reader.addresses[-1].removeprefix("http://") if reader.addresses else PAGE
        last = example.shown[-1] if example.shown else ""
        status, output = await reader.type(command.replace(PAGE, page), last.partition("...")[0])
        # A sentence may end with a card that asks for permission.
        right = (0, WAITS) if command.startswith(SAY) else (0,)
        assert status in right, f"{example.place}: {command}\n{output}"
        assert NOT_UNDERSTOOD not in output, f"{example.place}: {command}\n{output}"
        page = reader.addresses[-1].removeprefix("http://") if reader.addresses else PAGE
        assert example.is_like(output.replace(page, PAGE)), f"{example.place} shows:\n{output}"


@pytest.mark.requirement("OPS-11")
@pytest.mark.parametrize(("group", "backend"), CASES)
async def test_the_commands_of_a_document_work(
    group: Sequence[Example], backend: str, home: Path, database: str, fail_after: FailAfter
) -> None:
    if not (ROOT / ".venv/.ready-run").exists():
        pytest.skip("needs the environment that `make test` makes: run the tests by it")
    variables = {
        "HOME": str(home),
        "PATH": f"{ROOT / '.venv/bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GATEHOUSE_HTTP__PORT": "0",
        "GATEHOUSE_TOOLS__SANDBOX": backend,
        # Documents leave the log out.
        "GATEHOUSE_LOG__LEVEL": "error",
    }
    async with fail_after(120), reading(ROOT, variables) as reader:
        if not any(SERVES.search(one.command) for one in group):
            await reader.type("gatehouse serve", "Send it to the bot")
            await reader.type("gatehouse chat -m hello")
        await follow(reader, group, database)


def test_what_cannot_be_run_is_still_in_its_document() -> None:
    everything = [one for document in DOCUMENTS for one in examples(document)]
    stale = [one for one in OUTSIDE if not any(map(one.covers, everything))]
    assert not stale


def test_output_that_is_not_the_one_that_is_shown_is_found() -> None:
    shown = Example(
        "page.md", "Here", 1, "gatehouse open", ("http://...", "...", "It logs in once.")
    )
    assert shown.is_like("http://a\nmore\nand more\nIt logs in once.\n")
    assert shown.is_like("http://a\nIt logs in once.")
    for other in ("", "http://a\nIt logs in twice.", "It logs in once.", "http://a"):
        assert not shown.is_like(other), other
