"""What must not have happened in a case, looked at from outside. Each function says one thing."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from tests.crash.growing import whole
from tests.crash.platform import Post
from tests.crash.play import MESSAGES, Case
from tests.stateful import invariants

LINES: Final = {"note milk": "milk", "pay rent": "rent"}
"""What the effect of each message leaves in the file."""


def problems(cases: Sequence[Case], look: Callable[[Case], Sequence[str]]) -> str:
    """What `look` finds in each case, one line each."""
    return "\n".join(f"killed at {case.name}: {one}" for case in cases for one in look(case))


def not_reached(case: Case) -> Sequence[str]:
    deaths = sum(kill is not None for kill in (case.order.kill, case.order.then))
    return [] if case.kills == deaths else [f"it died {case.kills} times of {deaths}"]


def lost(case: Case) -> Sequence[str]:
    """Messages that were taken from the platform and have no answer, or are not stored once."""
    found = [f"{one} was never acknowledged" for one in {"m1", "m2"} - case.acknowledged]
    stored = Counter(json.loads(row["message"])["message_id"] for row in case.rows.inputs)
    if stored != {"m1": 1, "m2": 1}:
        found.append(f"inputs: {dict(stored)}")
    found += [f"no answer to {asked!r}" for asked in MESSAGES if not case.answers(asked)]
    found += [f"{row['kind']} ended {row['state']}" for row in unsent(case)]
    return found


def unsent(case: Case) -> Sequence[dict[str, object]]:
    return [dict(row) for row in case.rows.outbox if row["state"] != "sent"]


def doubled(case: Case) -> Sequence[str]:
    """What people saw twice, and runs that are not one for each message."""
    times = Counter(post.outbox_id for post in complete(case))
    found = [f"{outbox_id} was posted {n} times" for outbox_id, n in times.items() if n > 1]
    for asked in MESSAGES:
        if len(case.answers(asked)) > 1:
            found.append(f"{asked!r} was answered {len(case.answers(asked))} times")
    cards = [post for post in case.posts if post.text.startswith("card")]
    if len(cards) > 1:
        found.append(f"{len(cards)} cards")
    if len(case.rows.runs) != len(MESSAGES):
        found.append(f"{len(case.rows.runs)} runs")
    return found


def complete(case: Case) -> Sequence[Post]:
    """The posts that are whole: cards, and texts to their end."""
    return [post for post in case.posts if post.text.startswith("card") or whole(post.text)]


def halves(case: Case) -> Sequence[str]:
    """Texts that were left standing half."""
    left = [post for post in case.posts if post not in complete(case)]
    return [f"half of {post.outbox_id} stands there: {post.text!r}" for post in left]


def halves_not_told(case: Case) -> Sequence[str]:
    """The same, but for those that nobody can find again and that the audit log tells of."""
    left = [post for post in case.posts if post not in complete(case)]
    posts = Counter(post.outbox_id for post in left)
    told = Counter(case.orphaned)
    return [f"{n} halves of {one} stand there" for one, n in posts.items() if n > told[one]]


def effects_not_as_told(case: Case) -> Sequence[str]:
    """A tool with an effect ran once, or perhaps once and the model knows that it may have."""
    found = []
    for asked, line in LINES.items():
        times = case.effects.count(line)
        told = [post.text.removeprefix(f"{asked}: ").split()[0] for post in case.answers(asked)]
        if times > 1:
            found.append(f"the effect of {asked!r} was had {times} times")
        if told == ["ok"] and times != 1:
            found.append(f"the model was told of an effect of {asked!r} that never was")
        if not set(told) <= {"ok", "unknown"}:
            found.append(f"the model was told {told} of {asked!r}")
    return found


def broken_rows(case: Case) -> Sequence[str]:
    try:
        invariants.check(case.rows)
    except AssertionError as error:
        return [f"{error!r}"]
    return []


def unresolved(case: Case) -> Sequence[str]:
    """On a platform that cannot be asked: sent once, or unknown, at most once, and visible."""
    found = []
    times = Counter(post.outbox_id for post in complete(case))
    shown = {
        json.loads(row["data"])["outbox_id"]
        for row in case.rows.events
        if row["kind"] == "delivery.unknown"
    }
    for row in case.rows.outbox:
        if row["kind"] == "edit":
            continue
        if row["state"] == "sent" and times[row["id"]] != 1:
            found.append(f"a sent {row['kind']} was posted {times[row['id']]} times")
        if row["state"] == "unknown" and not (row["id"] in shown and row["error"]):
            found.append(f"an unknown {row['kind']} shows nowhere")
        if row["state"] not in ("sent", "unknown") or times[row["id"]] > 1:
            found.append(f"a {row['state']} {row['kind']} was posted {times[row['id']]} times")
    return found
