"""Messages of ours as Slack's payloads. Pure, and the same at every attempt.

A message is a list of posts, each within Slack's limits; the n-th post is always the same, so that
an attempt can go on where the last one ended. Every post carries the outbox id and its number as
metadata, by which an unknown outcome is looked up (MSG-11). Text stays short of nothing: what does
not fit one post makes the next.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pydantic import JsonValue

from adapters.platforms.cards import SCOPES, approval_text, code, question_text
from adapters.rendering import SlackLimits, SlackPart, render_slack
from adapters.slack.cards import approval_buttons, button_rows, question_buttons
from adapters.slack.ingress import COMMAND_PREFIX
from runtime.domain.files import size_text
from runtime.domain.json_fields import number_of, object_of, objects_of, text_of
from runtime.domain.messages import (
    ApprovalPart,
    FilePart,
    OutboundMessage,
    OutboundPart,
    QuestionPart,
    TextPart,
)
from runtime.domain.value import JsonObject

METADATA_TYPE = "gatehouse_outbox"
# Cards are sections, so that a line for buttons can stand below; two blocks are kept free.
_CARD = SlackLimits(markdown=0, blocks=48)


@dataclass(frozen=True, slots=True)
class Post:
    """One message in Slack: `blocks` as people see it, `text` for notifications and alone."""

    text: str
    blocks: tuple[JsonObject, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """How a post is put: with its layout and buttons or as plain text, with the mark of its row or
    without."""

    plain: bool = False
    marked: bool = True

    def plainer(self, error: str) -> "Form | None":
        """What to try after Slack refused this form with a code; None where nothing is left.

        The mark goes last, unless the code says that it is what Slack dislikes: without it, an
        unknown outcome can be looked up by the words alone (MSG-11).
        """
        if self.marked and (self.plain or "metadata" in error):
            return replace(self, marked=False)
        return None if self.plain else replace(self, plain=True)


@dataclass(frozen=True, slots=True)
class Upload:
    """One file; `path` is on the gateway's machine, `facts` are its kind and size in words."""

    name: str
    path: str
    facts: str = ""


def posts_of(message: OutboundMessage) -> tuple[Post | Upload, ...]:
    """Everything that the message needs, in order; empty where it holds no text at all."""
    return tuple(post for part in message.parts for post in _posts(part, message.outbox_id))


def post_payload(message: OutboundMessage, post: Post, number: int, form: Form) -> JsonObject:
    """Arguments of `chat.postMessage`, in one of the forms of REN-3."""
    payload: JsonObject = {
        "channel": message.target.chat_id,
        **_body(post, plain=form.plain),
        # A preview of a link in an answer would be taken for a part of the answer.
        "unfurl_links": False,
        "unfurl_media": False,
    }
    if form.marked:
        payload["metadata"] = metadata_of(message, number)
    if message.target.thread_id is not None:
        payload["thread_ts"] = message.target.thread_id
    return payload


def update_payload(message: OutboundMessage, post: Post, ts: str, form: Form) -> JsonObject:
    """Arguments of `chat.update`. Without a mark in the call, a post keeps the one that it has."""
    body = _body(post, plain=form.plain)
    if form.marked:
        body["metadata"] = metadata_of(message, 0)
    # Without blocks in the call, Slack would go on showing the old ones.
    return {"channel": message.target.chat_id, "ts": ts, "blocks": [], **body}


def metadata_of(message: OutboundMessage, number: int) -> JsonObject:
    """What marks a post as the `number`-th of its row of the outbox."""
    carried: JsonObject = {"outbox_id": message.outbox_id, "part": number}
    return {"event_type": METADATA_TYPE, "event_payload": carried}


def share_blocks(message: OutboundMessage, upload: Upload, number: int) -> list[JsonValue]:
    """What stands beside a shared file: a small line, and in its id the mark of the post.

    A share takes no metadata, so a block's id says which post of which row it is; `markdown`
    blocks are answered with ``internal_error`` there.
    """
    line: JsonObject = {"type": "plain_text", "text": upload.facts or upload.name, "emoji": False}
    return [
        {"type": "context", "block_id": file_mark(message.outbox_id, number), "elements": [line]}
    ]


def file_mark(outbox_id: str, number: int) -> str:
    """The mark of a shared file as the `number`-th post of a row of the outbox."""
    return f"{METADATA_TYPE}:{outbox_id}:{number}"


def marks_of(posted: JsonObject) -> frozenset[str]:
    """The marks on a message of the history; none where it is no file of ours that has one."""
    ids = (text_of(block, "block_id") for block in objects_of(posted, "blocks"))
    return frozenset(found for found in ids if found.startswith(f"{METADATA_TYPE}:"))


def file_facts(part: FilePart) -> str:
    """The kind and the size of a file; empty where its size is not known."""
    return f"{part.media_type}, {size_text(part.size_bytes)}" if part.size_bytes else ""


def file_not_sent(upload: Upload, reason: str) -> Post:
    """What stands where a file would that is not sent; its name is never lost."""
    return _post(render_slack(f"File {code(upload.name)} could not be sent: {reason}.")[0])


def part_number(posted: JsonObject, outbox_id: str) -> int | None:
    """Which post of the outbox row this message of the history is, if it is one."""
    metadata = object_of(posted, "metadata")
    carried = object_of(metadata, "event_payload")
    if metadata.get("event_type") != METADATA_TYPE or carried.get("outbox_id") != outbox_id:
        return None
    return number_of(carried, "part")


def status_line(state: str) -> str:
    """What stands beside the bot's name while a run works; empty ends it."""
    if state == "done":
        return ""
    if state in ("thinking", "writing"):
        return f"is {state}..."
    return f"is using {state}..."


def card(markdown: str, hint: str, *, actions: JsonObject | None = None) -> tuple[Post, ...]:
    """A card: its text, then one small line, then `actions`, a block of buttons, if there is one.

    All of the text is shown; a long card takes several posts and ends in the last.
    """
    posts = [_post(part) for part in render_slack(markdown, limits=_CARD)]
    foot = " ".join(part.text for part in render_slack(hint, limits=_CARD))
    blocks: list[JsonObject] = [
        {"type": "context", "elements": [{"type": "mrkdwn", "text": foot}]},
    ]
    if actions is not None:
        blocks.append(actions)
    last = posts[-1]
    closing = replace(last, text=f"{last.text}\n\n{foot}", blocks=(*last.blocks, *blocks))
    return (*posts[:-1], closing)


def _posts(part: OutboundPart, message_id: str) -> Iterable[Post | Upload]:
    match part:
        case TextPart():
            return _text(part, message_id)
        case ApprovalPart():
            return _approval(part)
        case QuestionPart():
            return _question(part)
        case FilePart():
            return [Upload(part.name, part.path, file_facts(part))]


def _text(part: TextPart, message_id: str) -> Iterable[Post]:
    """A text; its buttons stand below the last post."""
    rows = button_rows(part.buttons, message_id)
    limits = _CARD if rows else SlackLimits()
    posts = [_post(rendered) for rendered in render_slack(part.markdown, limits=limits)]
    if not rows or not posts:
        return posts
    return [*posts[:-1], replace(posts[-1], blocks=(*posts[-1].blocks, *rows))]


def _approval(part: ApprovalPart) -> tuple[Post, ...]:
    allow = f"{COMMAND_PREFIX}approve {part.code}"
    ways = [
        f"`{allow}{'' if choice == 'once' else f' {choice}'}` ({SCOPES[choice]})"
        for choice in part.choices
        if choice in SCOPES
    ]
    if "approve" in part.choices:
        ways.append(f"`{allow}`")
    if "deny" in part.choices:
        ways.append(f"`{COMMAND_PREFIX}deny {part.code}`")
    hint = f"Press a button, or reply {', '.join(ways)}, or use `/gatehouse approve {part.code}`."
    buttons = None if part.outcome else approval_buttons(part)
    return card(approval_text(part), part.outcome or hint, actions=buttons)


def _question(part: QuestionPart) -> tuple[Post, ...]:
    hint = f"Press a button, or answer with `{COMMAND_PREFIX}answer {part.code} your answer`"
    hint += ", or with the number of an option." if part.options else "."
    buttons = None if part.outcome else question_buttons(part)
    return card(question_text(part), part.outcome or hint, actions=buttons)


def _post(part: SlackPart) -> Post:
    return Post(part.text, tuple(_json(block) for block in part.blocks))


def _json(block: dict[str, str | dict[str, str]]) -> JsonObject:
    return {key: dict(value) if isinstance(value, dict) else value for key, value in block.items()}


def _body(post: Post, *, plain: bool) -> JsonObject:
    if plain:
        return {"text": post.text}
    blocks: list[JsonValue] = list(post.blocks)
    return {"text": post.text, "blocks": blocks}
