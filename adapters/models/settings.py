"""What the operator configured about models; ``gateway.config`` builds it.

It holds values only: it reads no environment and asks nobody. `discover` fills in what a local
server offers, `model_registry` turns it into models.
"""

from collections.abc import Mapping

from pydantic import SecretStr

from runtime.domain.value import Value


class ModelSettings(Value):
    """Keys, addresses and names; everything may be left out (OPS-3).

    ``default`` and ``fallback`` are names like ``openai:gpt-6-luna``; ``offered`` is what `/model`
    lists, and is worked out when empty. ``compatible_model`` and ``ollama_model`` are the names
    that those servers know their model by. ``context_tokens`` overrules the size of the context
    window of every model but the offline one. ``timeout_s`` is the longest wait for the next
    bytes of a response. ``sizes`` are those of models by name, as their server listed them, in
    tokens. ``unlisted`` is for people: why `discover` could not learn which models the
    server at ``openai_base_url`` has, and what to do.
    """

    default: str | None = None
    fallback: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()
    openai_api_key: SecretStr | None = None
    openai_base_url: str | None = None
    compatible_model: str | None = None
    anthropic_api_key: SecretStr | None = None
    anthropic_base_url: str | None = None
    gemini_api_key: SecretStr | None = None
    gemini_base_url: str | None = None
    ollama_url: str | None = None
    ollama_model: str | None = None
    context_tokens: int | None = None
    timeout_s: float = 120.0
    sizes: Mapping[str, int] = {}
    unlisted: str = ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """The keys in clear, for masking them where a provider repeats one."""
        keys = (self.openai_api_key, self.anthropic_api_key, self.gemini_api_key)
        return tuple(value for key in keys if key and (value := key.get_secret_value()))
