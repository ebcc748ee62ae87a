"""Plays every row of `tests.wire.model_rows` through the real gateway, and writes what came of it.

One gateway plays all of them at the same time: each row has a channel of Slack of its own, and some
also a group of Telegram and a conversation of the page. `python -m
tests.scenario.gateway.model_results` writes the table into `docs/models.md`.
"""

import asyncio
import json
import re
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.scenario.gateway.page import ENDS, Feed, Page
from tests.scenario.gateway.town import ALLOWED, Serving, Town, town_at
from tests.wire.model_calls import CALLS
from tests.wire.model_refusals import REFUSALS
from tests.wire.model_rows import HELLO, Row, Rows
from tests.wire.model_streams import STREAMS
from tests.wire.slack import ANNA, Upload
from tests.wire.telegram import Chat

ROWS: Final = (*STREAMS, *CALLS, *REFUSALS)
LASTING: Final = ("no-stream-options", "no-pictures", "no-tools")
"""Rows whose refusal is remembered for the model, which all rows share: they are played last."""
PAGE: Final = Path(__file__).parents[3] / "docs" / "models.md"
BEGIN: Final = "<!-- The table is written by `make models`. -->"
END: Final = "<!-- The end of the table. -->"
SHORT_TIMEOUT_S: Final = 0.5
_PNG: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
_RUN: Final = re.compile(r" If it happens again, quote `?[\w-]+`? to whoever runs me\.")
_SHOWN: Final = 150


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a row: what was read at each place, how often the model was asked for it, and
    what was read after hello."""

    row: Row
    reads: Mapping[str, str]
    requests: Mapping[str, int]
    hellos: Mapping[str, str]

    def faults(self) -> list[str]:
        """What is not as it should be."""
        found = []
        for place, text in self.reads.items():
            if not self.row.fits(text):
                found.append(f"{place} reads {text[:300]!r}")
            if self.row.requests not in (None, self.requests[place]):
                found.append(f"{self.requests[place]} requests from {place}")
            if self.hellos[place] != HELLO:
                found.append(f"hello on {place} reads {self.hellos[place][:300]!r}")
        return found


@dataclass
class Played:
    """Everything that came of it: the `results`, and `shown`, all that any platform or program was
    ever sent, by the place's name."""

    results: list[Result]
    shown: dict[str, list[str]]
    feed: Feed
    town: Town


@dataclass
class Talk:
    """A row's conversation at one place."""

    row: Row
    place: str
    slack: str = ""
    thread: str | None = None
    group: Chat | None = None
    page: Page | None = None
    read: int = 0
    texts: dict[str, str] = field(default_factory=dict)

    async def says(self, town: Town, text: str, *, picture: bool = False) -> None:
        """The person writes."""
        if self.slack:
            files = [Upload("dot.png", _PNG, "image/png")] if picture else []
            said = await town.slack.user_says(
                self.slack, ANNA, text, self.thread, mention=True, files=files
            )
            self.thread = self.thread or said.ts
        elif self.group is not None:
            town.telegram.user_says(self.group, town.ann, f"@gatehouse_bot {text}")
        elif self.page is not None:
            await self.page.says(text)

    async def hears(self, town: Town, name: str) -> None:
        """Keep what the person has read since the last look."""
        if self.slack:
            texts = [post.visible_text for post in town.slack.posts(self.slack)]
        elif self.group is not None:
            texts = [post.text for post in town.telegram.from_bot(self.group)]
        else:
            assert self.page is not None
            texts = await self.page.texts()
        self.texts[name] = "\n\n".join(texts[self.read :])
        self.read = len(texts)


@asynccontextmanager
async def played(path: Path, rows: Sequence[Row] = ROWS) -> AsyncIterator[Played]:
    """Play the rows on a gateway whose home is made below `path`."""
    async with town_at(path) as town:
        plays = Rows(rows)
        town.model.plays = plays
        town.place.variables |= {"GATEHOUSE_MODELS__DEFAULT": "compatible:m"}
        talks = [Talk(row, "slack", slack=_channel(town, row)) for row in rows if not row.first]
        silent = [talk for talk in talks if talk.row.silent]
        first = [Talk(row, "slack", slack=_channel(town, row)) for row in rows if row.first]
        shown = dict[str, list[str]]()
        for name in "abc":
            town.place.workspace.joinpath("files").mkdir(parents=True, exist_ok=True)
            town.place.workspace.joinpath("files", name).write_text(f"the file {name}\n")
        count = 0
        if silent or first:
            town.configure(f"{ALLOWED}[models]\ntimeout_s = {SHORT_TIMEOUT_S}\n")
            async with town.serving() as here:
                first += await _elsewhere(town, here, [row for row in rows if row.first])
                count = await _round(town, here, first, "reads", count)
                count = await _round(town, here, first, "hello", count)
                count = await _round(town, here, silent, "reads", count)
                shown["programs before"] = _told(here)
        town.configure(ALLOWED)
        async with town.serving() as here:
            talks += await _elsewhere(town, here, [row for row in rows if not row.first])
            for times in (1, 2):
                early = [talk for talk in talks if talk.row.before >= times]
                count = await _round(town, here, early, "before", count)
            lasting = [talk for talk in talks if talk.row.key in LASTING]
            usual = [talk for talk in talks if talk not in lasting]
            rest = [talk for talk in usual if not talk.row.silent]
            count = await _round(town, here, rest, "reads", count)
            count = await _round(town, here, usual, "hello", count)
            for key in LASTING:
                those = [talk for talk in lasting if talk.row.key == key]
                count = await _round(town, here, those, "reads", count)
                count = await _round(town, here, those, "hello", count)
            shown |= {
                "slack": [json.dumps(call.arguments) for call in town.slack.calls],
                "telegram": [
                    json.dumps(call.arguments, default=str) for call in town.telegram.calls
                ],
                "programs": _told(here),
            }
            yield Played(_results(rows, [*first, *talks], plays), shown, here.feed, town)


def _told(here: Serving) -> list[str]:
    """All that programs were sent since the database was made, and live since this start."""
    return [json.dumps(one.data) for one in (*here.feed.events, *here.feed.live)]


def _channel(town: Town, row: Row) -> str:
    return town.slack.workspace.add_channel(row.key, members=(ANNA,))


async def _elsewhere(town: Town, here: Serving, rows: Iterable[Row]) -> list[Talk]:
    """The conversations of the rows that are played everywhere."""
    talks = []
    for row in rows:
        if row.everywhere:
            group = town.telegram.world.supergroup(row.key, town.ann)
            page = await Page.open(here.client, row.key)
            talks += [Talk(row, "telegram", group=group), Talk(row, "page", page=page)]
    return talks


async def _round(town: Town, here: Serving, talks: Sequence[Talk], name: str, count: int) -> int:
    """Everybody writes once, and reads what comes; how many messages there were by now."""
    for talk in talks:
        texts = {
            "before": talk.row.keeping,
            "reads": talk.row.asked,
            "hello": talk.row.greeting,
        }
        picture = talk.row.picture and name == "reads"
        await talk.says(town, texts[name](talk.place), picture=picture)
    late = [talk for talk in talks if talk.row.key == "late"] if name == "reads" else []
    await _ended(here.feed, count + len(talks) - len(late))
    if late:
        await town.model.gate("late").entered.wait()
        town.model.gate("late").opened.set()
    await _ended(here.feed, count + len(talks))
    await here.feed.settled(count + len(talks))
    for talk in talks:
        await talk.hears(town, name)
    return count + len(talks)


async def _ended(feed: Feed, count: int) -> None:
    """Until so many runs have ended; each event is looked at once."""
    seen = ended = 0

    def enough() -> bool:
        nonlocal seen, ended
        ended += sum(event.kind in ENDS for event in feed.events[seen:])
        seen = len(feed.events)
        return ended >= count

    await feed.until(enough)


def _results(rows: Iterable[Row], talks: Iterable[Talk], plays: Rows) -> list[Result]:
    by_row: dict[str, list[Talk]] = {}
    for talk in talks:
        by_row.setdefault(talk.row.key, []).append(talk)
    return [
        Result(
            row,
            {talk.place: talk.texts["reads"] for talk in by_row[row.key]},
            {talk.place: plays.requests(row, talk.place) for talk in by_row[row.key]},
            {talk.place: talk.texts["hello"] for talk in by_row[row.key]},
        )
        for row in rows
    ]


def table(results: Iterable[Result]) -> str:
    """The results as a table of Markdown."""
    lines = [
        "| the server | the person reads | requests | hello afterwards |",
        "|---|---|---|---|",
    ]
    for result in results:
        reads, requests, hello = "not yet", "", ""
        if not result.row.waits:
            reads = _short(result.reads["slack"])
            requests = str(result.requests["slack"])
            hello = "answered" if set(result.hellos.values()) == {HELLO} else "not answered"
        lines.append(f"| {result.row.server} | {reads} | {requests} | {hello} |")
    return "\n".join(lines)


def _short(text: str) -> str:
    text = " ".join(_RUN.sub("", text).split()).replace("|", "\\|")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN].rsplit(' ', 1)[0]} ..."


def documented() -> str:
    """The table as the page has it."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0].strip()


async def write() -> None:
    """Play all rows and write the table into the page."""
    with tempfile.TemporaryDirectory() as folder:
        async with played(Path(folder)) as outcome:
            made = table(outcome.results)
            for result in outcome.results:
                if faults := result.faults():
                    waits = f" (waits for {result.row.waits})" if result.row.waits else ""
                    sys.stdout.write(f"{result.row.key}{waits}: {'; '.join(faults)}\n")
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{made}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(write())
