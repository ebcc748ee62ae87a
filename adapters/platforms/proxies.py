"""Which proxy a client asks: one rule for all, that of the environment (MDL-8).

``HTTPS_PROXY``, ``HTTP_PROXY`` and, for what these leave open, ``ALL_PROXY``; ``NO_PROXY`` names
the hosts that are asked without one. The libraries of the model providers read these variables in
the same way; aiohttp, Slack's library and the standard library would each leave out a part. The
last one reads the variables; in it a small name goes before a capital one.
"""

from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies_environment

_KINDS: Final = {"ws": "http", "wss": "https"}
_READ: Final = ("https", "http", "all")
_SCHEMES: Final = ("http", "https")


def proxy_for(url: str) -> str | None:
    """The address of the proxy for a request to `url`; None where it goes out directly."""
    parts, proxies = urlsplit(url), getproxies_environment()
    kind = _KINDS.get(parts.scheme, parts.scheme)
    proxy = proxies.get(kind) or proxies.get("all")
    host = parts.hostname or ""
    if not proxy or _for_everything(proxies):
        return None
    port = parts.port or (443 if kind == "https" else 80)
    if any(_is_excepted(host, port, entry.strip()) for entry in proxies.get("no", "").split(",")):
        return None
    return _with_scheme(proxy)


def _is_excepted(host: str, port: int, entry: str) -> bool:
    """Whether an entry of ``NO_PROXY`` names a host, in small letters, or one above it; an entry
    that begins with a dot names the hosts below it alone."""
    named = entry.lower()
    below = f".{named.removeprefix('.')}"
    names = (host, f"{host}:{port}")
    return bool(named) and (named in names or any(name.endswith(below) for name in names))


def proxy_problems() -> tuple[str, ...]:
    """What of the variables no client can follow, a sentence each; no value is repeated, for it
    may hold a password."""
    proxies = getproxies_environment()
    if _for_everything(proxies):
        return ()
    return tuple(
        f"{kind.upper()}_PROXY {problem}"
        for kind in _READ
        if kind in proxies and (problem := _problem(proxies[kind]))
    )


def unread_exceptions() -> tuple[str, ...]:
    """The entries of ``NO_PROXY`` that name no host: ranges of addresses and patterns."""
    proxies = getproxies_environment()
    entries = [] if _for_everything(proxies) else proxies.get("no", "").split(",")
    return tuple(entry.strip() for entry in entries if "/" in entry or "*" in entry)


def proxy_names() -> tuple[str, ...]:
    """The variables that name a proxy, in capitals, in the order in which they are looked at."""
    proxies = getproxies_environment()
    return tuple(f"{kind.upper()}_PROXY" for kind in _READ if kind in proxies)


def _for_everything(proxies: dict[str, str]) -> bool:
    return "*" in (entry.strip() for entry in proxies.get("no", "").split(","))


def _with_scheme(proxy: str) -> str:
    """As other programs read it: an address without a scheme is one of HTTP."""
    return proxy if "://" in proxy else f"http://{proxy}"


def _problem(proxy: str) -> str:
    if any(char.isspace() or not char.isprintable() for char in proxy):
        return "has white space or a control character in it; set it again"
    scheme = ""
    try:
        parts = urlsplit(_with_scheme(proxy))
        if parts.hostname and parts.port != 0:
            scheme = parts.scheme
    except ValueError:
        # A port or a bracket that is none: as an address without a host.
        pass
    if not scheme:
        return "is no address; write it like http://proxy.example.org:3128, or unset it"
    if scheme not in _SCHEMES:
        kind = "a SOCKS proxy" if scheme.startswith("socks") else "no HTTP proxy"
        return (
            f"names {kind}, which is not supported; name one that begins with http://, or unset "
            "it, or set NO_PROXY=* to use none"
        )
    return ""
