"""Whether the settings open the gateway to more people than their operator meant. Pure."""

import ipaddress

from gateway.config import Config, tokens_of


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def refusal(config: Config) -> str | None:
    """Why the gateway must not listen there, and what to do; None when it may (API-1)."""
    host = config.settings.http.host
    if is_loopback(host) or tokens_of(config).admin:
        return None
    return (
        f"http.host is {host}, which others can reach, and there is no admin token. Set "
        "http.admin_token_file (or GATEHOUSE_HTTP__ADMIN_TOKEN), or listen on 127.0.0.1."
    )
