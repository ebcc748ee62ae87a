"""A Slack call without a good answer, and what that means: retry, give up, look it up, tell.

    SlackFailure
    |- Unreachable    nothing reached Slack
    |  `- NotServed   nobody there takes such a call
    |- RateLimited    Slack refused to look at it yet
    |- Refused        Slack answered with an error code
    `- Unanswered     it left, and there is no readable answer: the effect is unknown

Codes and their meaning: the error tables of the methods' reference pages.
"""

from dataclasses import dataclass
from typing import Literal

from runtime.domain.errors import (
    DeliveryError,
    DeliveryRejected,
    DeliveryRetry,
    DeliveryUnknown,
    Forbidden,
    Unavailable,
)

TokenName = Literal["bot", "app"]

#: Slack takes nothing there, or not this change, in whatever form. A code that is in no list here
#: is taken for a refusal of the form: Slack adds codes, and its pages do not name all of them.
_OF_ITS_PLACE = frozenset(
    {
        "cannot_dm_bot",
        "cannot_reply_to_message",
        "cant_update_message",
        "channel_not_found",
        "edit_window_closed",
        "is_archived",
        "is_inactive",
        "message_limit_exceeded",
        "message_not_found",
        "messages_tab_disabled",
        "not_in_channel",
        "restricted_action",
        "restricted_action_non_threadable_channel",
        "restricted_action_read_only_channel",
        "restricted_action_thread_locked",
        "restricted_action_thread_only_channel",
        "team_not_found",
        "thread_not_found",
        "user_not_found",
    }
)
_OF_ITS_TEXT = frozenset(
    {
        "invalid_blocks",
        "invalid_blocks_format",
        "msg_blocks_too_long",
        "msg_too_long",
        "no_text",
    }
)
#: Slack will not take this file, whoever sends it; what else the message says may still go.
FILE_REFUSALS = {
    "file_type_not_allowed": "this workspace does not allow files of its type",
    "file_upload_size_restricted": "it is larger than this workspace allows",
    "file_uploads_disabled": "this workspace allows no files",
    "file_uploads_except_images_disabled": "this workspace allows no files but images",
}

#: The bot token is no good any more, whatever it is used for.
DEAD_TOKEN = frozenset(
    {"account_inactive", "invalid_auth", "not_authed", "token_expired", "token_revoked"}
)
#: Slack takes nothing from the account: no other message of it would pass.
_ACCOUNT_WIDE = DEAD_TOKEN | {
    "ekm_access_denied",
    "enterprise_is_restricted",
    "not_allowed_token_type",
    "org_login_required",
    "team_access_not_granted",
}
MISSING_SCOPE = "missing_scope"
#: Of one method, what it is about, or both; said to a token's first call, of the token.
_NOT_PERMITTED = frozenset({"access_denied", MISSING_SCOPE, "no_permission"})
# Refused before Slack did anything: `request_timeout` means that the body came in truncated.
_NOT_YET = frozenset({"request_timeout", "service_unavailable", "team_added_to_org"})
# Slack's pages say of both that some part of the operation may have succeeded before the error.
_PERHAPS_DONE = frozenset({"fatal_error", "internal_error"})
_EXPLAINED = {
    "channel_not_found": "Slack knows no such channel, or the bot was removed from it",
    "is_archived": "the channel is archived",
    "msg_too_long": "the message is too long for Slack",
    "not_in_channel": "the bot is not in this channel: invite it there",
    "restricted_action": "a setting of the workspace forbids the bot to post here",
}
_WHERE = {
    "bot": (
        "Copy the Bot User OAuth Token (xoxb-...) from OAuth & Permissions of your application "
        "at https://api.slack.com/apps"
    ),
    "app": (
        "Copy an App-Level Token (xapp-...) with the scope connections:write from Basic "
        "Information of your application at https://api.slack.com/apps"
    ),
}


class SlackFailure(Exception):
    """A call had no good answer; never raised itself. `after_s` are seconds that Slack named."""

    after_s: float | None = None


class Unreachable(SlackFailure):
    """Nothing reached Slack; the text says how far it came."""


class NotServed(Unreachable):
    """What answers at Slack's address has no such method, or does not take what it is given."""


@dataclass(eq=False)
class RateLimited(SlackFailure):
    """429: call this method again after `after_s` seconds, if Slack named a time."""

    after_s: float | None

    def __str__(self) -> str:
        return "Slack limits the rate (ratelimited)"


@dataclass(eq=False)
class Refused(SlackFailure):
    """Slack answered `ok: false` to `method` with the code `error`; `needed` is the scope it
    misses."""

    error: str
    needed: str = ""
    method: str = ""

    def __str__(self) -> str:
        return f"{self.error} ({self.needed})" if self.needed else self.error


class Unanswered(SlackFailure):
    """The request left, and no readable answer came back."""


def delivery_error(failure: SlackFailure) -> DeliveryError:
    """For a post: only what surely did not happen may be tried again."""
    if isinstance(failure, RateLimited):
        return DeliveryRetry(str(failure), failure.after_s)
    if isinstance(failure, Unanswered):
        return DeliveryUnknown(str(failure))
    if not isinstance(failure, Refused):
        return DeliveryRetry(str(failure))
    if failure.error in _NOT_YET:
        return DeliveryRetry(str(failure))
    if failure.error in _PERHAPS_DONE:
        return DeliveryUnknown(str(failure))
    return DeliveryRejected(_reason(failure), account_wide=_is_account_wide(failure))


def repeatable_error(failure: SlackFailure) -> DeliveryError:
    """For what may safely run twice (reading, editing): an unknown outcome is a retry."""
    verdict = delivery_error(failure)
    return DeliveryRetry(verdict.reason) if isinstance(verdict, DeliveryUnknown) else verdict


def lookup_error(failure: SlackFailure) -> DeliveryError:
    """For a look at the history. With the account shut out, it can be looked at when it is not;
    a rejection says that this history is closed, and nothing about the message."""
    verdict = repeatable_error(failure)
    if isinstance(verdict, DeliveryRejected):
        reason = f"the history cannot be read: {verdict.reason}"
        return DeliveryRetry(reason) if verdict.account_wide else DeliveryRejected(reason)
    return verdict


def connection_error(failure: SlackFailure, token: TokenName) -> Forbidden | Unavailable:
    """For the start: is the `token` wrong, which the operator must mend, or is Slack away?"""
    if isinstance(failure, Refused) and failure.error in _ACCOUNT_WIDE | _NOT_PERMITTED:
        return wrong_token(token, str(failure))
    return Unavailable("Slack cannot be reached.", hint=f"{failure}. Trying again.")


def wrong_token(token: TokenName, problem: str) -> Forbidden:
    return Forbidden(f"Slack does not accept the {token} token: {problem}. {_WHERE[token]}.")


def file_refusal(failure: SlackFailure) -> str:
    """Why Slack will never take a file, in words for the person; empty where it may yet do so, and
    where no message at all would pass."""
    if isinstance(failure, NotServed):
        return "Slack does not take it"
    if not isinstance(failure, Refused) or _is_account_wide(failure):
        return ""
    if failure.error in _NOT_YET | _PERHAPS_DONE:
        return ""
    if failure.error == MISSING_SCOPE:
        scope = failure.needed or "files:write"
        return f"Slack asks for the scope `{scope}`, which whoever runs me has to add"
    if failure.error in _NOT_PERMITTED:
        return "Slack does not let me send files here"
    known = FILE_REFUSALS.get(failure.error) or _EXPLAINED.get(failure.error)
    return known or f"Slack refused it (`{failure.error}`)"


def refuses_form(failure: Refused) -> bool:
    """Whether a plainer form of the same words may pass (REN-3). Nothing happened yet."""
    elsewhere = _NOT_YET | _PERHAPS_DONE | _ACCOUNT_WIDE | _NOT_PERMITTED | _OF_ITS_PLACE
    return failure.error not in elsewhere and failure.error not in FILE_REFUSALS


def refuses_method(failure: SlackFailure) -> bool:
    """Whether the same call would be refused again, while others of the account may pass."""
    if not isinstance(failure, Refused):
        return isinstance(failure, NotServed)
    return failure.error not in _NOT_YET | _PERHAPS_DONE | _ACCOUNT_WIDE | _OF_ITS_TEXT


def _is_account_wide(failure: Refused) -> bool:
    """Whether no message of the account would pass: without its scope nobody can be written to."""
    cannot_write = failure.error == MISSING_SCOPE and failure.method.startswith("chat.")
    return cannot_write or failure.error in _ACCOUNT_WIDE


def _reason(failure: Refused) -> str:
    explained = _EXPLAINED.get(failure.error)
    return f"{failure}: {explained}" if explained else str(failure)
