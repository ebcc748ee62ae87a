"""What this gateway has beside the message path."""

from typing import Final

from runtime.engine.feature import Feature, commands_of
from runtime.features.mailboxes.feature import mailing
from runtime.features.mailboxes.settings import USUAL as USUAL_MAILBOXES
from runtime.features.mailboxes.settings import MailboxSettings
from runtime.features.personas.feature import PERSONAS
from runtime.features.schedules.feature import USUAL as USUAL_RETRY
from runtime.features.schedules.feature import scheduling
from runtime.features.schedules.retry import RetryPolicy
from runtime.features.schedules.tools import FACES as OF_SCHEDULES
from runtime.features.subagents.feature import FACES as OF_SUBAGENTS
from runtime.features.subagents.feature import USUAL, subagents
from runtime.features.subagents.settings import ChildSettings
from runtime.features.tasks.feature import tasking
from runtime.features.tasks.tools import FACES as OF_TASKS
from runtime.ports.clock import Timers
from runtime.tools.base import Face
from runtime.tools.builtin import FACES as OF_PATH


def features_of(
    children: ChildSettings = USUAL,
    retry: RetryPolicy = USUAL_RETRY,
    timers: Timers | None = None,
    mailboxes: MailboxSettings = USUAL_MAILBOXES,
) -> tuple[Feature, ...]:
    """All features, under the operator's settings; `timers` wake what is scheduled."""
    return (
        PERSONAS,
        subagents(children),
        scheduling(retry, timers),
        tasking(),
        mailing(mailboxes),
    )


FEATURES: Final = features_of()
"""All features as they are where nothing is set."""
COMMANDS: Final = commands_of(FEATURES)
"""All chat commands."""
FACES: Final[tuple[Face, ...]] = (
    *OF_PATH[:-1],
    *OF_SUBAGENTS,
    *OF_SCHEDULES,
    *OF_TASKS,
    OF_PATH[-1],
)
"""All tools that come along, in the order in which the prompt lists them."""
