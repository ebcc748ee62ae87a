"""Names of models: ``provider:name``, what each provider needs, and sensible choices.

Pure: it imports no provider's library, so that listing names costs nothing.
"""

from difflib import get_close_matches
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

from adapters.models.settings import ModelSettings
from runtime.domain.errors import InvalidInput
from runtime.domain.printable import quoted

Provider = Literal["openai", "anthropic", "google", "compatible", "ollama", "offline"]
PROVIDERS: Final[tuple[Provider, ...]] = get_args(Provider)

# Checked on 2026-11-20 against the names that pydantic-ai 2.68.0 (openai 3.52, anthropic 2.11,
# google-genai 2.34) knows: each provider's middle model, able to use tools, at 2 USD or less per
# million input tokens.
OPENAI_MODEL: Final = "gpt-6.1-terra"
ANTHROPIC_MODEL: Final = "claude-sonnet-5-5"
GOOGLE_MODEL: Final = "gemini-3.8-flash"
# Many compatible servers hold one model and take any name; Ollama needs the name of a pulled one.
COMPATIBLE_MODEL: Final = "default"
OLLAMA_MODEL: Final = "llama3.2"
OFFLINE: Final = "offline:offline"

OPENAI_URL: Final = "https://api.openai.com/v1"
ANTHROPIC_URL: Final = "https://api.anthropic.com"
GOOGLE_URL: Final = "https://generativelanguage.googleapis.com/"

_ORDER: Final[tuple[Provider, ...]] = ("anthropic", "google", "compatible", "ollama")
"""The providers after OpenAI, the first one that is there is taken."""

# Sizes of context windows in tokens, by the beginning of the name; the same source and date. What
# another server's models can read, it says itself: in its list, or when something is too long.
_CONTEXT: Final[dict[Provider, tuple[tuple[str, int], ...]]] = {
    "openai": (("gpt-6", 1_050_000), ("gpt-5.6", 1_050_000), ("gpt-5", 400_000), ("", 128_000)),
    "anthropic": (
        ("claude-haiku-4", 200_000),
        ("claude-opus-4-1", 200_000),
        ("claude-3", 200_000),
        ("claude-", 1_000_000),
        ("", 200_000),
    ),
    "google": (("gemini-", 1_000_000), ("", 128_000)),
    "compatible": (),
    "ollama": (),
    "offline": (("", 128_000),),
}


def split(name: str) -> tuple[Provider, str]:
    """The provider and the provider's own name for the model.

    Raises `InvalidInput` with the nearest names for one that no provider knows.
    """
    head, separator, tail = name.strip().partition(":")
    for provider in PROVIDERS:
        if head == provider and separator and tail:
            if provider == "offline" and name != OFFLINE:
                break
            return provider, tail
    raise InvalidInput("model", _unknown(name, head if separator else ""))


def _unknown(name: str, head: str) -> str:
    known = [default_name(provider) for provider in PROVIDERS]
    near: list[str] = []
    if head:
        tail = name.partition(":")[2]
        providers = get_close_matches(head, PROVIDERS, n=2, cutoff=0.5)
        near = [f"{provider}:{tail or '<name>'}" for provider in providers if provider != "offline"]
        if "offline" in providers:
            near.append(OFFLINE)
    else:
        near = [one for one in known if name and (name in one or one.startswith(name))]
        near = near or get_close_matches(name, known, n=2, cutoff=0.6)
        tails = {one.partition(":")[2]: one for one in known}
        near += [tails[tail] for tail in get_close_matches(name, tails, n=2, cutoff=0.5)]
    form = "" if head and near else " Write provider:name, such as " + ", ".join(known) + "."
    meant = f" Did you mean {' or '.join(dict.fromkeys(near))}?" if near else ""
    return f"{quoted(name)} names no model.{form}{meant}"


def default_name(provider: Provider, settings: ModelSettings | None = None) -> str:
    """The model that is taken from a provider when the operator named none."""
    chosen: dict[Provider, str] = {
        "openai": OPENAI_MODEL,
        "anthropic": ANTHROPIC_MODEL,
        "google": GOOGLE_MODEL,
        "compatible": (settings and settings.compatible_model) or COMPATIBLE_MODEL,
        "ollama": (settings and settings.ollama_model) or OLLAMA_MODEL,
        "offline": OFFLINE.partition(":")[2],
    }
    return f"{provider}:{chosen[provider]}"


def missing(provider: Provider, settings: ModelSettings) -> str:
    """What must be set before the provider can be asked; empty when nothing is missing."""
    needed: dict[Provider, tuple[object, str]] = {
        "openai": (settings.openai_api_key, "OPENAI_API_KEY"),
        "anthropic": (settings.anthropic_api_key, "ANTHROPIC_API_KEY"),
        "google": (settings.gemini_api_key, "GEMINI_API_KEY"),
        "compatible": (settings.openai_base_url, "OPENAI_BASE_URL"),
        "ollama": (settings.ollama_url, "a running Ollama or models.ollama_url"),
        "offline": (True, ""),
    }
    present, name = needed[provider]
    return "" if present else name


def own_server(settings: ModelSettings) -> bool:
    """Whether the operator named a server that speaks OpenAI's format and is not OpenAI's."""
    if settings.openai_base_url is None:
        return False
    host = urlsplit(settings.openai_base_url).hostname or ""
    return not f".{host}".endswith(".openai.com")


def choose(settings: ModelSettings) -> str:
    """The default model's name: the operator's word, else the first provider found (OPS-3).

    A key for OpenAI's format is for the server that was named with it, which has its own models.
    """
    if settings.default is not None:
        return settings.default
    first: Provider = "compatible" if own_server(settings) else "openai"
    keyed: tuple[Provider, ...] = (first,) if settings.openai_api_key else ()
    for provider in (*keyed, *_ORDER):
        if not missing(provider, settings):
            return default_name(provider, settings)
    return OFFLINE


def is_unknown(name: str) -> bool:
    """Whether a name stands for the model that a server has, because nobody said which."""
    return name == f"compatible:{COMPATIBLE_MODEL}"


def context_tokens(name: str, settings: ModelSettings) -> int | None:
    """The size of a model's context window in tokens: what is set, what its server listed, or what
    is known of its name; None where nobody knows."""
    provider, own = split(name)
    if settings.context_tokens is not None and provider != "offline":
        return settings.context_tokens
    known = (size for start, size in _CONTEXT[provider] if own.startswith(start))
    return settings.sizes.get(name) or next(known, None)
