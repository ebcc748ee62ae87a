"""A Bot API call without a good answer, and what that means: retry, give up, tell.

    TelegramFailure
    |- Unreachable    nothing reached the Bot API
    |- RateLimited    429: Telegram refused to look at it yet
    |- Refused        the Bot API answered `ok: false`
    `- Unanswered     it left, and there is no readable answer: the effect is unknown

Telegram publishes no list of descriptions, so they are matched by their stable words, without case.
Shapes: "Making requests" and `ResponseParameters` of the Bot API.
"""

from dataclasses import dataclass

from runtime.domain.errors import (
    DeliveryError,
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
    Forbidden,
    Unavailable,
)
from runtime.domain.json_fields import object_in, object_of
from runtime.domain.value import JsonObject

_WRONG_TOKEN = (401, 404)
_EXPLAINED = (
    ("blocked by the user", "the person blocked the bot"),
    ("user is deactivated", "the person's Telegram account was deleted"),
    ("can't initiate conversation", "the person has to write to the bot first"),
    ("bot was kicked", "the bot was removed from the chat"),
    ("bot is not a member", "the bot is not in the chat: add it there"),
    ("chat not found", "Telegram knows no such chat, or the person never started the bot"),
    ("not enough rights", "the bot may not write in this chat: let an administrator allow it"),
    ("have no rights", "the bot may not write in this chat: let an administrator allow it"),
    ("administrator rights", "the bot may not write in this chat: make it an administrator"),
    ("chat_write_forbidden", "the bot may not write in this chat: let an administrator allow it"),
    ("message thread not found", "the topic was deleted"),
    ("topic_deleted", "the topic was deleted"),
    ("topic_closed", "the topic is closed"),
)
_BAD_TEXT = ("entit", "too long", "too_long")
_BAD_SHAPE = ("image_process_failed", "photo_", "voice_messages_forbidden", "wrong type")
_BAD_FILE = ("file is too big", "file must be non-empty", "request entity too large")
_NO_TOPIC = ("message thread not found", "topic_deleted", "topic_id_invalid")
_EDIT_IN_VAIN = ("message is not modified", "message to edit not found", "can't be edited")
_DELETE_IN_VAIN = ("message to delete not found", "can't be deleted")


class TelegramFailure(Exception):
    """A call had no good answer; never raised itself. `after_s` are seconds that Telegram named."""

    after_s: float | None = None


class Unreachable(TelegramFailure):
    """Nothing reached the Bot API; the text says how far it came."""


@dataclass(eq=False)
class RateLimited(TelegramFailure):
    """429: call again after `after_s` seconds, if Telegram named a time."""

    after_s: float | None

    def __str__(self) -> str:
        return "Telegram limits the rate (429)"


@dataclass(eq=False)
class Refused(TelegramFailure):
    """`ok: false` with its `error_code` and `description`.

    `migrate_to` is the id of the supergroup that the chat has become.
    """

    code: int
    description: str
    migrate_to: str | None = None

    def __str__(self) -> str:
        return f"{self.description} ({self.code})"

    def says(self, *words: str) -> bool:
        """Whether the description holds one of the `words`, given in lower case."""
        description = self.description.lower()
        return any(word in description for word in words)


class Unanswered(TelegramFailure):
    """The request left, and no readable answer came back."""


def failure_in(status: int, body: bytes) -> TelegramFailure | None:
    """What an HTTP answer says went wrong; None for `ok: true`."""
    answer = object_in(body) or {}
    if answer.get("ok") is True and "result" in answer:
        return None
    if answer.get("ok") is False:
        return _refusal(status, answer)
    if status == 429:
        return RateLimited(None)
    if 400 <= status < 500 or status == 503:
        return Unreachable(f"HTTP {status} from something before the Bot API")
    # The page of a proxy says nothing about what happened behind it.
    return Unanswered(f"HTTP {status} without an answer of the Bot API")


def delivery_error(failure: TelegramFailure) -> DeliveryError:
    """For a post: only what surely did not happen may be tried again."""
    if isinstance(failure, RateLimited):
        return DeliveryRetry(str(failure), failure.after_s)
    if isinstance(failure, Unanswered):
        return DeliveryUnknown(str(failure))
    if not isinstance(failure, Refused) or failure.code >= 500:
        return DeliveryRetry(str(failure))
    explained = next((text for words, text in _EXPLAINED if failure.says(words)), "")
    reason = f"{failure}: {explained}" if explained else str(failure)
    return DeliveryRejected(reason, account_wide=failure.code in _WRONG_TOKEN)


def repeatable_error(failure: TelegramFailure) -> DeliveryError:
    """For what may safely run twice (editing, typing): an unknown outcome is a retry."""
    verdict = delivery_error(failure)
    return DeliveryRetry(verdict.reason) if isinstance(verdict, DeliveryUnknown) else verdict


def connection_error(failure: TelegramFailure) -> Forbidden | Unavailable:
    """For the start: is the token wrong, which the operator must mend, or is Telegram away?"""
    if isinstance(failure, Refused) and failure.code in _WRONG_TOKEN:
        return wrong_token(str(failure))
    return Unavailable("Telegram cannot be reached.", hint=f"{failure}. Trying again.")


def wrong_token(problem: str) -> Forbidden:
    return Forbidden(
        f"Telegram does not accept the bot token: {problem}. Talk to @BotFather in Telegram, send "
        "/mybots, choose the bot, then API Token, and copy it into the configuration."
    )


def about_form(refusal: Refused) -> bool:
    """Telegram dislikes the formatting, the length, the buttons or what the post answers; the words
    may still go (REN-3). Every 400 counts whose words say nothing of the chat, the topic or the
    message: Telegram publishes no list of them."""
    if refusal.code != 400 or refusal.migrate_to is not None or about_topic(refusal):
        return False
    elsewhere = (words for words, _ in _EXPLAINED)
    return refusal.says(*_BAD_TEXT) or not refusal.says(
        *elsewhere, *_EDIT_IN_VAIN, *_DELETE_IN_VAIN, *_BAD_SHAPE, *_BAD_FILE, "message_id_invalid"
    )


def about_shape(refusal: Refused) -> bool:
    """Telegram does not take the file as a picture or as speech; as a document it may."""
    return refusal.code in (400, 403, 413) and refusal.says(*_BAD_SHAPE, *_BAD_FILE)


def about_post(refusal: Refused) -> bool:
    """Telegram will not take the post with its file; its words may still go, unless they are
    refused as well. What is said of the token, of the topic or of a moved chat is no such word."""
    elsewhere = about_topic(refusal) or refusal.migrate_to is not None
    return not elsewhere and refusal.code < 500 and refusal.code != 401


def about_topic(refusal: Refused) -> bool:
    """The topic is gone; the chat around it may still be there."""
    return refusal.code == 400 and refusal.says(*_NO_TOPIC)


def no_drafts(refusal: Refused) -> bool:
    """This chat, or this server, shows no drafts; a post may go there all the same."""
    return refusal.code in (400, 404)


def no_method(refusal: Refused) -> bool:
    """This server does not know the method at all: an older one, or another program."""
    return refusal.code == 404


def is_gone(refusal: Refused) -> bool:
    """The message that was to be edited is not there any more."""
    return refusal.code == 400 and refusal.says("message to edit not found", "message_id_invalid")


def edit_in_vain(refusal: Refused) -> bool:
    """There is nothing left to edit: it reads so already, or the message is gone (TEL-6)."""
    return refusal.migrate_to is not None or refusal.says(*_EDIT_IN_VAIN)


def delete_in_vain(refusal: Refused) -> bool:
    """The message is gone already, or too old to be taken back."""
    return refusal.migrate_to is not None or refusal.says(*_DELETE_IN_VAIN)


def _refusal(status: int, answer: JsonObject) -> TelegramFailure:
    code, description = answer.get("error_code"), answer.get("description")
    number = code if isinstance(code, int) else status
    parameters = object_of(answer, "parameters")
    retry_after = parameters.get("retry_after")
    if number == 429:
        return RateLimited(float(retry_after) if isinstance(retry_after, int | float) else None)
    moved = parameters.get("migrate_to_chat_id")
    return Refused(
        number,
        description if isinstance(description, str) else f"HTTP {status}",
        str(moved) if isinstance(moved, int) else None,
    )
