"""The feature of mailboxes: agents write to each other."""

from collections.abc import Sequence

from runtime.engine.feature import (
    Feature,
    FeatureParts,
    FeatureServices,
    FeatureWorker,
    ToolServices,
)
from runtime.features.mailboxes.delivery import MailboxLetters
from runtime.features.mailboxes.mail_desk import MailDesk
from runtime.features.mailboxes.mail_keeper import MailKeeper
from runtime.features.mailboxes.settings import USUAL, MailboxSettings
from runtime.tools.base import AnyTool


def mailing(settings: MailboxSettings = USUAL) -> Feature:
    """The feature for one process, under the operator's settings."""
    desk = MailDesk(settings)

    def tools(services: ToolServices) -> Sequence[AnyTool]:
        desk.units = services.units
        return ()

    return Feature(name="mailboxes", tools=tools, parts=_parts, mail=desk, letters=MailboxLetters())


def _parts(services: FeatureServices) -> FeatureParts:
    keeper = MailKeeper(services)
    return FeatureParts(
        workers=(
            FeatureWorker("mailbox signals", keeper.listen),
            FeatureWorker("mailboxes", keeper.keep),
        )
    )
