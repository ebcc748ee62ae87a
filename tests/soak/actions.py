"""What people do. Each action is a whole little scene in one place; add a class to `ACTIONS`.

An action leaves what it could not finish to the end of the soak: a wish that is still open then is
a loss, whatever the reason.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from tests.soak.places import Place
from tests.soak.stage import Stage

APPROVE = re.compile(r"approve (\w+)")
CARD = re.compile(r"(Which one, \w+)\?")
NAMED = re.compile(r"`?[/!]answer (\w+) your answer")


class Action(Protocol):
    """A scene. `weight` is how often it comes, compared with the others."""

    weight: int

    def fits(self, place: Place) -> bool:
        """Whether it can be played there."""
        ...

    async def play(self, stage: Stage, place: Place) -> None:
        """Play it."""
        ...


class _Anywhere:
    def fits(self, _place: Place) -> bool:
        return True


class Ask(_Anywhere):
    """One message of a kind, and its answer."""

    weight = 6

    async def play(self, stage: Stage, place: Place) -> None:
        kind = stage.random.choice(["talk", "read", "file"])
        await stage.answered([await stage.says(place, kind)])


class UseTool:
    """One message that has an effect which nobody may have twice."""

    weight = 3

    def fits(self, place: Place) -> bool:
        return not place.shared

    async def play(self, stage: Stage, place: Place) -> None:
        await stage.answered([await stage.says(place, "tool")])


class Hurry(_Anywhere):
    """Several messages without waiting: they are answered in the order in which they were said."""

    weight = 3

    async def play(self, stage: Stage, place: Place) -> None:
        kinds = stage.random.choices(["talk", "read", "file"], k=3)
        await stage.answered([await stage.says(place, kind) for kind in kinds])


class Repeat(_Anywhere):
    """A message that its platform delivers twice."""

    weight = 2

    async def play(self, stage: Stage, place: Place) -> None:
        wish = await stage.says(place, "talk")
        await place.repeats()
        await stage.answered([wish])
        await place.repeats()


class Edit:
    """A message that its author changes at once: one of its two forms is answered, the first one
    where it had been read already."""

    weight = 1

    def fits(self, place: Place) -> bool:
        return place.edits

    async def play(self, stage: Stage, place: Place) -> None:
        first = await stage.says(place, "talk")
        second = stage.wish(place, "talk")
        first.twin, second.twin = second, first
        await place.changes(f"{second.token} talk, please")
        await stage.answered([first, second])


class Approve(_Anywhere):
    """A call that somebody must allow, and once in a while does not."""

    weight = 2

    async def play(self, stage: Stage, place: Place) -> None:
        wish = await stage.says(place, "permit" if place.shared else "approval")
        code = await stage.found(place, wish, APPROVE)
        if code is None:
            return
        denied = stage.random.random() < 0.25
        stage.denied |= {wish.token} if denied else set()
        await place.commands(f"deny {code} not now" if denied else f"approve {code}")
        await stage.answered([wish])


class Question:
    """A question of the agent, and somebody's answer. In groups alone: in a direct chat whatever
    is said meanwhile is the answer (APR-10), and would be missing as a message."""

    weight = 2

    def fits(self, place: Place) -> bool:
        return place.shared

    async def play(self, stage: Stage, place: Place) -> None:
        wish = await stage.says(place, "question")
        card = await stage.found(place, wish, CARD)
        if card is None:
            return
        if place.answers_by_reply:
            await place.replies(card, "left")
            await stage.answered([wish])
            return
        # The next message is told the code of the question that it waits behind.
        behind = await stage.says(place, "talk")
        code = await stage.found(place, wish, NAMED)
        if code is not None:
            await place.commands(f"answer {code} left")
        await stage.answered([wish, behind])


class Stop(_Anywhere):
    """A turn that somebody stops while the model speaks; the notice may come when they left."""

    weight = 1

    async def play(self, stage: Stage, place: Place) -> None:
        wish = await stage.says(place, "stop")
        gate = stage.model.gate(wish.token)
        try:
            if await stage.within(gate.entered.wait()):
                wish.stopping = True
                await place.commands("stop")
                await stage.answered([wish])
        finally:
            # Whoever missed the stop says its answer after all.
            gate.opened.set()


ACTIONS: Sequence[Action] = (
    Ask(),
    UseTool(),
    Hurry(),
    Repeat(),
    Edit(),
    Approve(),
    Question(),
    Stop(),
)
