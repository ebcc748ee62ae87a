"""The channels of a process, built from the configuration: the gateway's own and the platforms.

The other half of the composition root; `wiring` joins what is made here with the engine.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import BaseModel

from adapters.web.adapter import CHANNELS, WebAdapter
from gateway.config import Config
from gateway.config_chats import Slack, SlackWorkspace, Telegram, TelegramBot
from gateway.config_files import OPENAI_URL
from gateway.config_section import Section
from gateway.features import COMMANDS
from gateway.http.services import AdapterView
from runtime.delivery.platform_accounts import Account
from runtime.domain.errors import InvalidInput
from runtime.domain.value import JsonObject
from runtime.ports.bus import Bus
from runtime.ports.chat import ChatAdapter
from runtime.ports.clock import Clock

if TYPE_CHECKING:
    from adapters.telegram.admin import Action, WayIn
    from adapters.telegram.settings import TelegramSettings
    from adapters.transcription.openai import OpenAITranscriber

T = TypeVar("T", bound=BaseModel)


def local_adapters(bus: Bus) -> list[ChatAdapter]:
    """The channels that the gateway's own HTTP server serves."""
    return [WebAdapter(bus, channel=channel) for channel in CHANNELS]


def chat_adapters(config: Config, clock: Clock) -> list[ChatAdapter]:
    """The platforms that have credentials. A library is loaded only for those."""
    settings = config.settings
    return [
        *slack_adapters(settings.slack, clock),
        *telegram_adapters(settings.telegram, clock),
    ]


def slack_adapters(slack: Slack, clock: Clock) -> list[ChatAdapter]:
    """One for each workspace, the unnamed first (SLK-7)."""
    places: dict[str, Slack | SlackWorkspace] = dict(slack.workspaces)
    if slack.bot_token is not None and (slack.app_token or slack.signing_secret) is not None:
        places = {"": slack, **places}
    if not places:
        return []
    # Lazy: Slack's libraries take some 20 MB and half a second.
    from adapters.slack.adapter import SlackAdapter
    from adapters.slack.settings import SlackSettings

    return [
        SlackAdapter(_shaped(SlackSettings, slack, place, name=name), clock)
        for name, place in places.items()
    ]


def _shaped(shape: type[T], shared: Section, own: Section, **others: object) -> T:
    """A platform's settings as its adapter has them, of one account: the credentials are its `own`,
    the habits are `shared`, under the same names."""
    known = {**shared.model_dump(), **own.model_dump(), **others}
    return shape.model_validate({name: known[name] for name in shape.model_fields & known.keys()})


def fetching_adapters(config: Config, clock: Clock) -> list[ChatAdapter]:
    """What a process that runs turns, and does not listen, fetches people's files with."""
    roles = config.settings.roles
    return chat_adapters(config, clock) if "workers" in roles and "adapters" not in roles else []


def transcriber_of(config: Config) -> "OpenAITranscriber | None":
    """Who writes speech down; None where no model for it is set."""
    section = config.settings.transcription
    if section.model is None:
        return None
    # Lazy: nothing of it is loaded where it is not used.
    from adapters.transcription.openai import OpenAITranscriber, TranscriptionSettings

    # The key of OpenAI goes to nobody else.
    own = config.settings.models.openai_api_key if section.url == OPENAI_URL else None
    return OpenAITranscriber(
        TranscriptionSettings(
            url=section.url,
            model=section.model,
            key=section.key or own,
            timeout_s=section.timeout_s,
        )
    )


def telegram_adapters(section: Telegram, clock: Clock) -> list[ChatAdapter]:
    """One for each bot, the unnamed first."""
    bots = telegram_bots(section)
    if not bots:
        return []
    # Lazy: nothing of a platform is loaded where it is not used.
    from adapters.telegram.adapter import TelegramAdapter

    return [TelegramAdapter(one, clock) for one in bots]


def telegram_bots(section: Telegram) -> "list[TelegramSettings]":
    """Every bot that the section names, in its adapter's shape."""
    bots: dict[str, Telegram | TelegramBot] = dict(section.bots)
    if section.token is not None:
        bots = {"": section, **bots}
    if not bots:
        return []
    # Lazy: as above.
    from adapters.telegram.settings import BotCommand, TelegramSettings

    menu = tuple(
        BotCommand(name=one.name, help=one.help, guests=one.guests) for one in COMMANDS.listed
    )
    return [
        _shaped(TelegramSettings, section, bot, name=name, commands=menu)
        for name, bot in bots.items()
    ]


async def telegram_ways_in(
    section: Telegram, *, within_s: float
) -> "AsyncIterator[tuple[str, WayIn]]":
    """For each bot its name and what Telegram says of its webhook. Raises as `way_in`."""
    for one in telegram_bots(section):
        # Lazy: as above.
        from adapters.telegram.admin import way_in

        yield one.name, await way_in(one, within_s=within_s)


async def telegram_webhook(section: Telegram, name: str, action: "Action") -> JsonObject:
    """What an operator does by hand about the webhook of one bot; what Telegram says of it.

    Raises `InvalidInput` where no bot of that name, or no webhook, is configured, `Forbidden` and
    `Unavailable`.
    """
    found = [one for one in telegram_bots(section) if one.name == name]
    if not found:
        named = f"bot named {name!r}" if name else "bot"
        token = f"telegram.bots.{name}.bot_token" if name else "TELEGRAM_BOT_TOKEN"
        raise InvalidInput("telegram", f"there is no {named}: set {token} first")
    # Lazy: as above.
    from adapters.telegram.admin import webhook

    return await webhook(found[0], action)


@dataclass(frozen=True, slots=True)
class SlackManifest:
    """The text of an application manifest, and what whoever uses it has to know."""

    text: str
    note: str = ""


def slack_manifest(url: str | None = None, *, assistant_view: bool = False) -> SlackManifest:
    """The application manifest of Slack (SLK-6), for HTTP where `url` is our public address.

    Raises `InvalidInput`.
    """
    # Lazy: for this command only, and it needs a YAML library.
    from adapters.slack.manifest import ASSISTANT_VIEW_NOTE, manifest

    if assistant_view:
        return SlackManifest(manifest(url, view="assistant"), ASSISTANT_VIEW_NOTE)
    return SlackManifest(manifest(url))


def missing_scopes(adapter: ChatAdapter) -> tuple[str, ...] | None:
    """Scopes of the manifest that a connected adapter's token lacks; None where nobody says which
    it has, as before `connect`."""
    # Lazy: it needs a YAML library, and a gateway without Slack none of this.
    from adapters.slack.adapter import SlackAdapter
    from adapters.slack.manifest import missing

    if not isinstance(adapter, SlackAdapter):
        return ()
    granted = adapter.reception.granted_scopes
    return missing(granted) if granted else None


@dataclass(frozen=True, slots=True)
class SlackExperience:
    """What is known of an application's experience for agents. `view` is the one that events
    proved, in Slack's words, or empty; `ends` is when Slack ends it, or empty. `scopes` is what the
    token's scopes say: ``none`` of the views, ``some`` view, or empty where Slack names none."""

    view: str
    ends: str
    scopes: Literal["none", "some", ""]


def slack_experience(adapter: ChatAdapter, *, seen: str) -> SlackExperience:
    """What the scopes of a connected adapter say, and `seen`, the `kind` of its account at a
    gateway that hears its events."""
    # Lazy: a gateway without Slack needs none of this.
    from adapters.slack.adapter import SlackAdapter
    from adapters.slack.experience import ASSISTANT_VIEW_ENDS, VIEWS

    ends = ASSISTANT_VIEW_ENDS if seen == VIEWS["assistant"] else ""
    if not isinstance(adapter, SlackAdapter) or not adapter.reception.granted_scopes:
        return SlackExperience(seen, ends, "")
    has_scope = "assistant:write" in adapter.reception.granted_scopes
    return SlackExperience(seen, ends, "some" if has_scope else "none")


def adapter_view(account: Account, redact: Callable[[str], str]) -> AdapterView:
    """An account as `/v1/status` shows it; what its library said of a fault may hold a token."""
    status = account.status()
    adapter = account.adapter
    return AdapterView(
        channel=adapter.channel,
        account=adapter.account,
        connected=status.connected,
        detail=redact(status.detail),
        kind=status.kind,
    )
