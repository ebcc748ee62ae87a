"""One tree of errors, named after what the caller does next.

GatehouseError
|- InvalidInput              tell the caller which field broke which rule
|- TooLarge                  tell the caller which limit it is over
|- NotFound                  the id names nothing (or nothing the caller may see)
|- Conflict                  the state moved on; carries the present state
|  `- IllegalTransition
|- Forbidden                 the caller may not; says which rule
|- StaleLease                stop at once: another worker owns this now
|- DeliveryError             what a chat platform made of a send
|  |- DeliveryRetry          try again, not before `after_s`
|  |- DeliveryRejected       never going to work; the reason stays on the row
|  `- DeliveryUnknown        it may have been posted; never resend blindly
|- ModelError                what a provider made of a request
|  |- ModelRetry             try again, not before `after_s` if given
|  `- ModelRejected          authentication, refusal or a bad request: do not repeat
|- ToolError                 tell the model, in one plain sentence
`- Unavailable               a part of ours is down; nothing was done, try later
   |- QueueFull              so much waits already that no more is taken
   `- StoreUnavailable
      |- StoreAway          the server does not answer: wait, it comes back by itself
      |- StoreFull
      |- StoreCorrupt
      `- CommitUnknown       the connection died inside COMMIT: look before you repeat
"""

from dataclasses import dataclass, field
from typing import Final, Literal


class GatehouseError(Exception):
    """The root; never raised itself."""


@dataclass(eq=False)
class InvalidInput(GatehouseError):
    """A value breaks a rule: `field` names it, `rule` says what it must be."""

    field: str
    rule: str

    def __str__(self) -> str:
        return f"{self.field}: {self.rule}"


@dataclass(eq=False)
class TooLarge(GatehouseError):
    """More than is taken: `rule` says whose limit that is, and what to do about it."""

    rule: str

    def __str__(self) -> str:
        return self.rule


_NAMED_BY: Final = {"pairing": "code"}
"""What people name a thing by, where it is not an id."""


@dataclass(eq=False)
class NotFound(GatehouseError):
    """No `kind` has this `id`."""

    kind: str
    id: str

    def __str__(self) -> str:
        return f"no {self.kind} has the {_NAMED_BY.get(self.kind, 'id')} {self.id}"


@dataclass(eq=False)
class Conflict(GatehouseError):
    """The operation does not fit the present `state`."""

    detail: str
    state: str = ""

    def __str__(self) -> str:
        return self.detail


class IllegalTransition(Conflict):
    """A run cannot go from `old` to `new` (MSG-6)."""

    def __init__(self, *, run_id: str, old: str, new: str) -> None:
        super().__init__(f"run {run_id} is {old} and cannot become {new}", old)


@dataclass(eq=False)
class Forbidden(GatehouseError):
    """The caller may not do this; `rule` says why."""

    rule: str

    def __str__(self) -> str:
        return self.rule


@dataclass(eq=False)
class StaleLease(GatehouseError):
    """Another worker, or a later fence of the same one, holds `what`."""

    what: str

    def __str__(self) -> str:
        return f"the lease on {self.what} is held by another worker"


@dataclass(eq=False)
class DeliveryError(GatehouseError):
    """A send did not end in a receipt."""

    reason: str

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class DeliveryRetry(DeliveryError):
    """The platform did not take the message; send again, not before `after_s` seconds."""

    after_s: float | None = None


@dataclass(eq=False)
class DeliveryRejected(DeliveryError):
    """The platform will never take the message. `account_wide` says that no other would pass."""

    account_wide: bool = False


class DeliveryUnknown(DeliveryError):
    """The connection ended after the request had left: it may have been posted (MSG-11)."""


ModelCause = Literal[
    "unreached",
    "timeout",
    "error",
    "busy",
    "not_a_model",
    "cut",
    "key",
    "credit",
    "unknown_model",
    "filter",
    "too_long",
    "request",
    "library",
    "defect",
]
"""Why a model request failed: the server was not reached, sent nothing in time, answered with an
error of its own, is busy, is no model server at that address, broke off; the key, the account or
the model's name is wrong; the content was filtered, is too long, or the request was refused for
something else; a library is missing; a defect of ours (MDL-6)."""


@dataclass(eq=False)
class ModelError(GatehouseError):
    """A model request did not end in a response; `cause` says why."""

    reason: str
    cause: ModelCause = field(default="error", kw_only=True)

    def __str__(self) -> str:
        return self.reason


@dataclass(eq=False)
class ModelRetry(ModelError):
    """Worth repeating: 408, 409, 425, 429, 5xx, network, timeout, overloaded (MSG-18).

    `model` was asked, at `host`: a name and a port at most, no path and no credentials. `status` is
    what its provider answered by HTTP, 0 where it did not. `waited_s`: how long was waited for a
    `timeout`.
    """

    after_s: float | None = None
    model: str = field(default="", kw_only=True)
    host: str = field(default="", kw_only=True)
    status: int = field(default=0, kw_only=True)
    cause: ModelCause = field(default="unreached", kw_only=True)
    waited_s: float = field(default=0.0, kw_only=True)


@dataclass(eq=False)
class ModelRejected(ModelError):
    """Not worth repeating. `public` is a sentence that may be shown to a person. `content`: what
    was asked is refused, so that a request which holds less may pass. Of what is `too_long`:
    `limit` is the size of the model's context and `asked` that of the request, in the provider's
    tokens, 0 where it did not say."""

    public: str = "The model provider refused the request."
    content: bool = False
    cause: ModelCause = field(default="request", kw_only=True)
    limit: int = field(default=0, kw_only=True)
    asked: int = field(default=0, kw_only=True)


@dataclass(eq=False)
class ToolError(GatehouseError):
    """A call failed in a way that the model can mend; `detail` is what it is told."""

    detail: str

    def __str__(self) -> str:
        return self.detail


@dataclass(eq=False)
class Unavailable(GatehouseError):
    """A part of the gateway is down; nothing was done."""

    detail: str = ""
    hint: str = field(default="", kw_only=True)

    def __str__(self) -> str:
        return f"{self.detail} {self.hint}".strip()


class QueueFull(Unavailable):
    """As much waits as may; the caller tries again once some of it is done (SCALE-5)."""


class StoreUnavailable(Unavailable):
    """The database cannot be reached or is locked."""


class StoreAway(StoreUnavailable):
    """The database server does not answer, or it is starting or stopping."""


class StoreFull(StoreUnavailable):
    """The disk, or the database's quota, is full."""


class StoreCorrupt(StoreUnavailable):
    """The database file is damaged; restore a backup."""


class CommitUnknown(StoreUnavailable):
    """The connection was lost inside COMMIT, so the outcome must be looked up."""
