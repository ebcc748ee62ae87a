"""The key by which a client repeats a request without doing it twice."""

import hashlib
import json
from dataclasses import dataclass
from typing import Final

KEPT_MS: Final = 7 * 24 * 3600 * 1000
"""How long a key is remembered behind the request that it came with."""


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The name of a request that creates something, and a digest of what it asks. It is remembered
    for `kept_ms`, or for good."""

    name: str
    digest: str
    kept_ms: int | None = KEPT_MS


def request_key(kind: str, client_key: str | None, request: object) -> RequestKey | None:
    """The key of a request; None where the client gave none. The client's is only unique among
    requests of a kind."""
    if client_key is None:
        return None
    text = json.dumps(request, sort_keys=True, ensure_ascii=False)
    return RequestKey(f"{kind}:{client_key}", hashlib.sha256(text.encode()).hexdigest())
