"""The page `docs/fault-matrix.md`: written by the command, never by hand.

Its two tables are made by two runs, so each stands between marks of its own and the other is kept.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.crash.platform import OUTSIDE
from tests.crash.play import Case
from tests.crash.process import ANY_PHASE
from tests.faults.load import Tally
from tests.faults.outcomes import Outcome
from tests.faults.worlds import World

PAGE: Final = Path(__file__).parents[2] / "docs" / "fault-matrix.md"
POINTS: Final = "points"
KILLS: Final = "kills"

SKELETON: Final = """\
# The fault matrix

What is lost and what is doubled when a gateway dies. This page is written by `make faults`; nothing
in it is typed by hand. It needs a PostgreSQL server in `GATEHOUSE_TEST_POSTGRES_URL`.

    make faults            # every commit point, at production's leases: some minutes
    make faults RATE=20    # the same on a clock that runs twenty times as fast
    make faults N=1000     # random kills under load

## What is done

A person writes a message for which a tool has an effect, then one whose tool needs an approval,
and presses the button. The gateway is a process of its own; at one point of the conversation it
kills itself with SIGKILL, is started again, and the conversation goes on. The model writes slowly,
so each of its texts is shown while it grows. A point is the moment in front of a unit of work
(`:begin`) or right after its COMMIT (`:commit`), around each send and each step of a stream, and
inside the platform between doing what it was asked and telling so (`post:kept`, `grow:kept`,
`draft:kept`, `close:kept`, `edit:kept`). The points are not
listed anywhere: a conversation that nobody disturbs is recorded first, and each point that it
passed becomes a case. Points that only a recovering gateway passes are found in those cases and
become cases with two deaths. So a new unit of work is killed at from its first day
([decision 17](decisions/0017-crash-points.md)).

The names are those of the units: `accept` takes a message in, `claim` begins a run, `step` keeps a
response of the model, `tools-start` and `tools-end` stand around a tool, `park` asks for an
approval and `press` answers it, `finish` ends a run with its reply, `outbox-claim` takes a reply,
`begin` notes that a send begins where nobody could look it up later, `send` stands around the
request, `outbox-progress` keeps the id of a post, `receipt` ends the row, `lease` and
`lease-renewal` are what a process holds. `stream-begin` writes the row of a text that is going to
be shown, `stream-keep` the id of its post; `stream:begun` is in front of the request that opens it,
`stream:kept` behind the unit that keeps its id, `stream:closed` behind the request that put the
whole text in its place.

This is done on two databases and on two kinds of platform. One can be asked whether it has a
message, as Slack can by its metadata; there a text grows in a post. The other cannot, as Telegram
cannot; there a text grows as a draft in a direct chat, and in a post in a group. The first message
is written in a direct chat, the second in a group.

In a conversation of its own children work: two in the background, of which the second needs the
first, and one that is awaited; each has an effect. There a point is also `child-start` (a child
waits for nobody any more) and `child-slots` (it gets a slot). A child's end and the word of it to
its parent are one unit, `finish`.

## What is counted

- **lost**: a message that was not stored exactly once, was never acknowledged, or has no answer
  although no unknown outcome stands for it.
- **doubled**: a post that people see twice, or two answers to one message.
- **unknown**: a send that the gateway had begun when it died, on a platform that cannot be asked.
  It is not repeated, because it may have arrived; it is marked, with its reason, in
  `/v1/deliveries/problems`, and an operator may choose `delivery.ambiguous_sends = "resend"`.
- **half**: a text that was left standing half, with the whole one below it. It may happen in one
  place only: the gateway dies while the request is under way that opens a growing post, on a
  platform that cannot be asked where the post is. The audit log names it (`delivery.orphaned`);
  one that it does not name fails the command.
- **recovered**: how long the person waited from the death on, in seconds of the machine's clock. On
  SQLite it is the time of a restart; on PostgreSQL the dead process's lease must run out first.
  The model of this test waits up to three seconds behind each piece for it to be shown; where the
  post of a text cannot be found again, and so nothing more is shown, that is twelve of the seconds.

The rows must also keep the invariants of the engine, a tool with an effect must have had it at
most once, and the model must have been told the truth about it. A case that breaks one of these
fails the command.

"Exactly once" is claimed for what is inside: a message is stored once, a run ends once, its reply
is one row. It is not claimed for the way out. A send is a request to another machine, and where
that machine cannot be asked afterwards, the last word is "unknown".

## Every point

{points}

## Random kills under load

{kills}
"""


def update(block: str, text: str, *, path: Path = PAGE) -> None:
    """Put a run's result into the page; the result of the other kind of run stays."""
    found = {POINTS: "Not run yet.", KILLS: "Not run yet."}
    if path.exists():
        old = path.read_text(encoding="utf-8")
        for name in found:
            if match := re.search(_marked(name, "(.*?)"), old, re.DOTALL):
                found[name] = match.group(1)
    found[block] = text.strip()
    blocks = {name: _marked(name, body) for name, body in found.items()}
    path.write_text(SKELETON.format(**blocks), encoding="utf-8")


def _marked(name: str, body: str) -> str:
    return f"<!-- {name} -->\n{body}\n<!-- end of {name} -->"


Played = Mapping[World, Sequence[tuple[Case, Outcome]]]


def points_text(played: Played, about: str) -> str:
    """The totals, the table of points, and why each unknown is one."""
    parts = [about, _totals(played), _unknowns(played), _table(played)]
    return "\n\n".join(part for part in parts if part)


def _totals(played: Played) -> str:
    lines = [
        "| database, platform | cases | lost | doubled | unknown | half "
        "| recovered: median s | longest s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for world, cases in played.items():
        outcomes = [one for _, one in cases]
        waits = sorted(one.recovered_s for one in outcomes if one.recovered_s is not None)
        sums = [
            sum(len(one.lost) for one in outcomes),
            sum(len(one.doubled) for one in outcomes),
            sum(len(one.unknown) for one in outcomes),
            sum(len(one.half) for one in outcomes),
        ]
        lines.append(
            f"| {world.name} | {len(cases)} | {' | '.join(str(one) for one in sums)} "
            f"| {waits[len(waits) // 2]:.1f} | {waits[-1]:.1f} |"
        )
    return "\n".join(lines)


def _unknowns(played: Played) -> str:
    had: dict[str, Counter[bool]] = defaultdict(Counter)
    for cases in played.values():
        for case, found in cases:
            for one in found.unknown:
                had[_point(case)][one.posted] += 1
    if not had:
        return "No outcome is unknown."
    lines = [
        "Each unknown outcome, by the point of the death. The platform's own records say what the "
        "gateway cannot know:",
        "",
        "| died at | unknown | the platform had it | it had not | why nobody can tell |",
        "|---|---|---|---|---|",
    ]
    for point, posted in sorted(had.items()):
        lines.append(
            f"| `{point}` | {posted.total()} | {posted[True]} | {posted[False]} | {_why(posted)} |"
        )
    return "\n".join(lines)


def _why(posted: Counter[bool]) -> str:
    if not posted[False]:
        return "it was posted, and the receipt was not kept yet"
    if not posted[True]:
        return "it was noted that the send begins, and the request was not made yet"
    return "it was noted that the send begins; some requests were made and some were not"


def _table(played: Played) -> str:
    cells: dict[tuple[str, str], dict[World, str]] = {}
    for world, cases in played.items():
        for case, found in cases:
            cells.setdefault((_point(case), _where(case)), {})[world] = _cell(found)
    heads = " | ".join(world.name for world in played)
    lines = [
        "One line for each point; a number is `recovered` in seconds, and 0 means that nobody "
        "waited for anything by then. A dash means that the point is not passed there.",
        "",
        f"| died at | when | {heads} |",
        f"|---|---|{'---|' * len(played)}",
    ]
    for (point, where), row in cells.items():
        shown = " | ".join(row.get(world, "-") for world in played)
        lines.append(f"| `{point}` | {where} | {shown} |")
    return "\n".join(lines)


_PHASES: Final = ("at start", "1st message", "2nd message", "the press")


def _point(case: Case) -> str:
    kill = case.order.then or case.order.kill
    return "" if kill is None else kill[1]


def _where(case: Case) -> str:
    first, then = case.order.kill, case.order.then
    if first is None:
        return ""
    if then is not None:
        return f"while it recovers from `{first[1]}`"
    phase, name = first
    if name in OUTSIDE:
        return f"{'card changed' if name.startswith('edit') else 'message'} {phase}"
    return "ever" if phase == ANY_PHASE else _PHASES[min(phase, len(_PHASES) - 1)]


def _cell(found: Outcome) -> str:
    said = [f"LOST {len(found.lost)}"] if found.lost else []
    said += [f"DOUBLED {len(found.doubled)}"] if found.doubled else []
    said += ["BROKEN"] if found.broken else []
    said += [f"unknown {len(found.unknown)}"] if found.unknown else []
    said += [f"half {len(found.half)}"] if found.half else []
    return ", ".join([*said, f"{found.recovered_s or 0.0:.1f}"])


def kills_text(tallies: Mapping[World, Tally], about: str) -> str:
    """The totals of the random kills."""
    lines = [
        about,
        "",
        "| database, platform | replicas | kills | messages | lost | doubled | unknown "
        "| of these the platform had | half | given up in words |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for world, one in tallies.items():
        figures = (one.replicas, one.kills, one.messages, len(one.lost), len(one.doubled))
        figures += (one.unknown, one.unknown_posted, one.half, one.gave_up)
        lines.append(f"| {world.name} | {' | '.join(str(figure) for figure in figures)} |")
    lines += [
        "",
        'An unknown is a send that was under way when its gateway died, as above. "Given up in '
        'words" are runs whose gateways died five times: the person is told so.',
    ]
    return "\n".join(lines)
