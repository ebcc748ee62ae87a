"""The client for a model's name; only the provider that it names is imported."""

from adapters.models.clients.client import Client
from adapters.models.names import split
from adapters.models.settings import ModelSettings


def open_client(name: str, settings: ModelSettings) -> Client:
    """The client for ``provider:name``. Raises `ImportError` when its library is missing."""
    provider, own = split(name)
    match provider:
        case "anthropic":
            # Lazy: each provider's library takes tens of megabytes, and one is asked.
            from adapters.models.clients import anthropic

            return anthropic.connect(own, settings)
        case "google":
            # Lazy for the same reason.
            from adapters.models.clients import google

            return google.connect(own, settings)
        case "openai" | "compatible" | "ollama":
            # Lazy for the same reason.
            from adapters.models.clients import openai

            return openai.connect(own, settings, provider)
        case _:
            raise ValueError(f"{name} needs no client")
