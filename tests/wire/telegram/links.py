"""What the server makes of an address in a link: normalised, a mention of a person, or nothing."""

import re
from urllib.parse import urlsplit, urlunsplit

_USER = re.compile(r"tg:(?://)?user/?\?id=(\d{1,19})\Z", re.IGNORECASE)
_HOST = re.compile(r"(?:[\w-]+\.)+[\w-]{2,}\Z|\d{1,3}(?:\.\d{1,3}){3}\Z")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def mentioned_user(url: str) -> int:
    """The user id of `tg://user?id=N`, else 0."""
    match = _USER.match(url.strip())
    return int(match[1]) if match else 0


def checked_link(url: str) -> str:
    """`url` as the server stores it, or an empty text for one that it does not take as a link."""
    url = url.strip()
    if not url or re.search(r"\s", url):
        return ""
    if url.lower().startswith(("tg:", "ton:", "tonsite:")):
        return url
    if not url.lower().startswith(("http://", "https://")):
        if _SCHEME.match(url) and not re.match(r"[\w.-]+:\d", url):
            return ""
        url = f"http://{url}"
    return _normalised(url)


def _normalised(url: str) -> str:
    try:
        split = urlsplit(url)
        host, port = split.hostname or "", split.port
    except ValueError:
        return ""
    if not _HOST.match(host):
        return ""
    place = host if port is None else f"{host}:{port}"
    path = split.path or "/"
    tail = url.partition("?")[1] and not split.query
    rebuilt = urlunsplit((split.scheme.lower(), place, path, split.query, split.fragment))
    return f"{rebuilt}?" if tail else rebuilt
