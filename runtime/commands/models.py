"""The word ``/model`` in words: what may be chosen, and why a name cannot be. Pure."""

from difflib import get_close_matches
from typing import Final

from runtime.ports.model import ModelListing

SHOWN: Final = 40
"""Names in one answer; who looks for another says a part of it."""
NEAR: Final = 8
LONGEST: Final = 64


def find(listing: ModelListing, asked: str) -> str | None:
    """The model that somebody means: by its whole name, or without the provider where one model
    alone is called so."""
    wanted = _plain(asked)
    if wanted in listing.names:
        return wanted
    provider, _, own = wanted.partition(":")
    if provider in listing.unlisted and own and not own.isspace():
        return wanted
    alike = [name for name in listing.names if wanted.lower() in (name.lower(), _own(name))]
    return alike[0] if len(alike) == 1 else None


def listed(listing: ModelListing) -> str:
    """What may be chosen, and whose list could not be read."""
    lines = [f"- `{name}`" for name in listing.names[:SHOWN]]
    if (more := len(listing.names) - SHOWN) > 0:
        lines.append(f"- and {more} more: `/model WORD` lists those with WORD in their name")
    lines += [
        f"- any other of `{provider}`, which has no list: `/model {provider}:NAME`"
        for provider in listing.unlisted
    ]
    lines += [
        f"- `{provider}` has more, but I could not read its list: {why}"
        for provider, why in listing.silent.items()
    ]
    return "\n".join(["I can use:", "", *lines])


def unknown(listing: ModelListing, asked: str) -> str:
    """Why a name cannot be chosen, and what is nearest to it."""
    wanted = _plain(asked)
    shown = wanted if len(wanted) <= LONGEST else f"{wanted[:LONGEST]}..."
    provider, separator, _ = wanted.partition(":")
    if separator and provider in listing.missing:
        return (
            f"I cannot use `{shown}`: {provider} is not set up here. "
            f"The gateway's operator has to set {listing.missing[provider]}."
        )
    if separator and provider in listing.silent:
        return (
            f"I cannot tell whether there is a model `{shown}`: I could not read the list of "
            f"{provider}, {listing.silent[provider]}."
        )
    near = _near(listing, wanted)
    said = f"There is no model `{shown}` that I can use."
    if not near:
        return f"{said} `/model` alone lists those that I can."
    return f"{said} Similar names: {', '.join(f'`{one}`' for one in near)}."


def _near(listing: ModelListing, wanted: str) -> list[str]:
    own = _own(wanted)
    holding = [name for name in listing.names if own and own in name.lower()]
    by_own = {_own(name): name for name in listing.names}
    close = [by_own[one] for one in get_close_matches(own, by_own, n=NEAR, cutoff=0.6)]
    return list(dict.fromkeys([*holding, *close]))[:NEAR]


def _own(name: str) -> str:
    """The provider's name of a model, in lower case."""
    return name.partition(":")[2].lower() or name.lower()


def _plain(asked: str) -> str:
    """What was asked for without the marks of code around it."""
    return " ".join(asked.replace("`", " ").split())
