"""Choosing the model of a session and how it writes, as its owner does by the API (RUN-1)."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from runtime.commands import models
from runtime.domain.errors import InvalidInput, ModelRejected
from runtime.domain.events import EventKind
from runtime.domain.routes import AS_IT_IS, Generation, RoutePolicy
from runtime.domain.value import JsonObject
from runtime.intake.control import Control
from runtime.ports.model import Models
from runtime.sessions import audit, sessions
from runtime.sessions.unit import Unit
from runtime.views.models import SessionView
from runtime.views.reader import one_session


@dataclass(frozen=True, slots=True)
class RouteRules:
    """Whether a model can write as somebody asks. `most_tokens` is the operator's bound on one
    response. Without `models` only that is held to: what a model cannot take is left out when it is
    called."""

    models: Models | None = None
    most_tokens: int = 8_192

    async def broken(self, model: str | None, generation: Generation) -> Mapping[str, str]:
        """The rules that a generation breaks for a model, by field; None is the default model."""
        found = dict[str, str]()
        if generation.tokens(self.most_tokens) != (
            generation.max_output_tokens or self.most_tokens
        ):
            found["max_output_tokens"] = (
                f"must be at most {self.most_tokens}, which the operator set "
                "(agents.max_output_tokens)"
            )
        if self.models is None or not generation.given:
            return found
        name = model or self.models.default
        try:
            return {**await self.models.get(name).unfit(generation), **found}
        except InvalidInput:
            # A session may have a model that is gone; another answers, and takes what it can.
            return found
        except ModelRejected as error:
            return dict.fromkeys(generation.given, f"cannot be set for {name}: {error.public}")


@dataclass(frozen=True, slots=True)
class RouteControl:
    """Sets the routes of sessions for their owner."""

    control: Control
    rules: RouteRules

    async def change(self, session_id: str, policy: RoutePolicy | None) -> SessionView:
        """Give a session this policy in place of the one before; None goes back to the default
        model as it is. Runs that work go by it from their next step on.

        Raises `NotFound` for the session and `InvalidInput` for what cannot be chosen.
        """
        name = None if policy is None else policy.name
        if name is not None:
            found = models.find(await self.control.models(), name)
            if found is None:
                raise InvalidInput("model", "must be one of those that GET /v1/models lists")
            name = found
        generation = (policy and policy.generation) or AS_IT_IS
        for field, rule in (await self.rules.broken(name, generation)).items():
            raise InvalidInput(f"generation.{field}", rule)

        def work(unit: Unit) -> SessionView:
            conn, lane = unit.conn, unit.lane(session_id)
            values = {"model": name, "generation": sessions.kept_generation(generation)}
            sessions.change(conn, session_id, values)
            said = generation.model_dump(exclude_none=True) or None
            data: JsonObject = json.loads(json.dumps({"model": name, "generation": said}))
            lane.record(EventKind.SESSION_CHANGED, None, data)
            audit.append(
                conn,
                actor=self.control.actor.id,
                action="session.changed",
                session_id=session_id,
                data=data,
            )
            unit.save()
            unit.changed(session_id)
            return one_session(conn, session_id)

        return await self.control.units.run(work, name="route-policy")
