"""The feature of schedules: what is done at a time that somebody named."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from runtime.engine.feature import (
    Feature,
    FeatureParts,
    FeatureServices,
    FeatureWorker,
    ToolServices,
)
from runtime.features.schedules.commands import REMIND, SCHEDULES, TIMEZONE
from runtime.features.schedules.gates import CARDS
from runtime.features.schedules.heartbeats import HeartbeatGuest
from runtime.features.schedules.kind import HEARTBEAT, HeartbeatKind, ScheduleKind
from runtime.features.schedules.retry import RetryPolicy
from runtime.features.schedules.schedule_keeper import ScheduleKeeper
from runtime.features.schedules.tools import schedule_tools
from runtime.ports.clock import Timers
from runtime.tools.base import AnyTool

USUAL: Final = RetryPolicy()


def scheduling(policy: RetryPolicy = USUAL, timers: Timers | None = None) -> Feature:
    """The feature under the operator's settings, woken by `timers`, or else by the clock."""
    return Feature(
        name="schedules",
        parts=partial(_parts, policy, timers),
        kinds=(ScheduleKind(), HeartbeatKind()),
        cards=(CARDS,),
        commands=(REMIND, SCHEDULES, TIMEZONE),
        tools=_tools,
    )


def _tools(services: ToolServices) -> Sequence[AnyTool]:
    return schedule_tools(services.units)


def _parts(policy: RetryPolicy, timers: Timers | None, services: FeatureServices) -> FeatureParts:
    keeper = ScheduleKeeper(services, policy, timers=timers)
    return FeatureParts(
        guests={HEARTBEAT: lambda _claimed: HeartbeatGuest()},
        workers=(
            FeatureWorker("schedule signals", keeper.listen),
            FeatureWorker("schedules", keeper.keep),
        ),
    )
