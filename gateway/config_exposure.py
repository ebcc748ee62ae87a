"""Whether the settings open the gateway to more people than their operator meant. Pure."""

import ipaddress


def is_loopback(host: str) -> bool:
    """Whether an address to listen on is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
