"""Looking for a model server, once, at start: which models it has.

It asks only where the answer decides which model is taken, and never fails. An Ollama that nobody
named is waited for 300 ms; a server that the operator named, two seconds.
"""

from typing import Final
from urllib.parse import urlsplit

from adapters.models import model_lists, names
from adapters.models.settings import ModelSettings

LOCAL_OLLAMA: Final = "http://127.0.0.1:11434"
BOUND_S: Final = 0.3


async def discover(settings: ModelSettings, *, local: str = LOCAL_OLLAMA) -> ModelSettings:
    """The same settings with a local Ollama's address and the missing model names filled in.

    An Ollama that has no model is as good as none, and is left out unless the operator named it.
    """
    if settings.default is not None:
        return settings
    chosen, _ = names.split(names.choose(settings))
    if chosen == "compatible":
        return await _compatible(settings)
    if chosen in ("ollama", "offline"):
        return await _ollama(settings, settings.ollama_url or local)
    return settings


async def find_again(settings: ModelSettings) -> ModelSettings:
    """The settings with the model that their server lists now (MDL-7). Never fails."""
    unnamed = {"compatible_model": None, "ollama_model": None, "unlisted": ""}
    return await discover(settings.model_copy(update=unnamed))


async def _compatible(settings: ModelSettings) -> ModelSettings:
    if settings.compatible_model is not None:
        return settings
    listed = await model_lists.ask("compatible", settings)
    if not listed.names:
        return settings.model_copy(update={"unlisted": _unlisted(settings, listed)})
    # A proxy of OpenAI lists embeddings too, in no order.
    usual = names.OPENAI_MODEL in listed.names
    chosen = names.OPENAI_MODEL if usual else listed.names[0]
    sizes = {f"compatible:{name}": size for name, size in listed.sizes.items()}
    return settings.model_copy(update={"compatible_model": chosen, "sizes": sizes})


def _unlisted(settings: ModelSettings, listed: model_lists.Listed) -> str:
    """Why no name is known, and what to do."""
    url = (settings.openai_base_url or "").rstrip("/")
    shown = _without_password(url)
    if listed.trouble:
        mend = "Check that server, OPENAI_BASE_URL and OPENAI_API_KEY."
        return f"{shown} did not list its models: {listed.trouble}. {mend}"
    if not listed.unlisted:
        return f"{shown} lists no model. Load one there, and start again."
    if not url.endswith("/v1"):
        return f"{shown} did not list its models: does the address end in /v1?"
    return f'{shown} does not list its models. Name one: models.default = "compatible:NAME".'


def _without_password(url: str) -> str:
    """An address for people: without what stands before the host's name."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


async def _ollama(settings: ModelSettings, url: str) -> ModelSettings:
    asked = settings.model_copy(update={"ollama_url": url})
    listed = await model_lists.ask("ollama", asked, within_s=BOUND_S, by_proxy=False)
    if not listed.names:
        return settings
    name = settings.ollama_model or listed.names[0]
    return asked.model_copy(update={"ollama_model": name})
