"""The parameters of a PostgreSQL address, as hosters hand them out (MDL-8). It opens no connection,
and of a file it only looks whether it can be read.

They are libpq's (https://www.postgresql.org/docs/current/libpq-connect.html). Each is taken in the
driver's terms or refused by its name: sent on, an unknown one would be a setting that the server
refuses, and left out, one that protects a connection would protect nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from ssl import get_default_verify_paths
from typing import Final

from runtime.domain.errors import InvalidInput

SETTING: Final = "database.url"
_VALUES: Final[dict[str, tuple[str, ...]]] = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "target_session_attrs": (
        "any",
        "read-write",
        "read-only",
        "primary",
        "standby",
        "prefer-standby",
    ),
    "sslnegotiation": ("postgres", "direct"),
    "channel_binding": ("disable", "prefer"),
    "gssencmode": ("disable", "prefer"),
}
"""The values that a parameter may have. Of the last two the driver does what these ask for."""
_FILES: Final = frozenset({"sslrootcert", "sslcert", "sslkey", "sslcrl", "passfile"})
_DRIVER: Final = _FILES | {
    "sslmode",
    "target_session_attrs",
    "sslnegotiation",
    "sslpassword",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "krbsrvname",
    "gsslib",
}
_SERVER: Final = frozenset({"application_name", "options"})
_PLACE: Final = frozenset({"host", "port"})
_ENGINE: Final = frozenset({"prepared_statement_cache_size"})
_KNOWN: Final = _DRIVER | _SERVER | _PLACE | _ENGINE | _VALUES.keys() | {"connect_timeout"}
_REASONS: Final = {
    "channel_binding": "the driver has no channel binding; take it out, and let "
    "sslmode=verify-full with sslrootcert=system make sure of the server",
    "gssencmode": "the driver has no encryption by GSSAPI; take it out and use sslmode",
    "user": "write it before the @ of the address",
    "password": "write it before the @ of the address",
    "dbname": "write it behind the / of the address",
}


@dataclass(slots=True)
class PostgresParameters:
    """The parameters by whom they are for.

    `driver` holds libpq's names, which asyncpg reads from an address, `server` the settings of a
    session, `place` further hosts and ports, `engine` what is SQLAlchemy's. `timeout_s` is how long
    a connection may take to be made, in seconds.
    """

    driver: dict[str, str] = field(default_factory=dict)
    server: dict[str, str] = field(default_factory=dict)
    place: list[tuple[str, str]] = field(default_factory=list)
    engine: dict[str, str] = field(default_factory=dict)
    timeout_s: float | None = None


def read_parameters(given: Iterable[tuple[str, str]]) -> PostgresParameters:
    """Sort the parameters of an address. Raises `InvalidInput`, which names the parameter and
    repeats no value."""
    read, seen = PostgresParameters(), set[str]()
    for written, value in given:
        name = "sslmode" if written == "ssl" else written
        if name in _PLACE:
            read.place.append((name, value))
            continue
        if name in seen:
            raise _refused(name, "is given twice; leave one")
        seen.add(name)
        _check(name, value)
        if name == "connect_timeout":
            read.timeout_s = _seconds(name, value)
        elif name in _FILES:
            read.driver[name] = _file(name, value)
        elif name in _DRIVER:
            read.driver[name] = value
        elif name in _SERVER:
            read.server[name] = value
        elif name in _ENGINE:
            read.engine[name] = value
    return read


def _check(name: str, value: str) -> None:
    if name not in _KNOWN:
        near = get_close_matches(name, _KNOWN, n=1, cutoff=0.8)
        what = f"did you mean {near[0]}?" if near else "take it out"
        raise _refused(name, f"is not supported: {_REASONS.get(name, what)}")
    values = _VALUES.get(name)
    if values is not None and value not in values:
        # A mode is no secret, but what stands in its place may be one.
        wanted = f"must be {', '.join(values[:-1])} or {values[-1]}"
        raise _refused(name, f"{wanted}: {_REASONS[name]}" if name in _REASONS else wanted)
    if name in _ENGINE and not value.isdecimal():
        raise _refused(name, "must be a whole number")


def _seconds(name: str, value: str) -> float | None:
    """As libpq: 0 and less are no limit of the address's own."""
    try:
        seconds = int(value)
    except ValueError:
        raise _refused(name, "must be a whole number of seconds") from None
    return float(seconds) if seconds > 0 else None


def _file(name: str, value: str) -> str:
    if name == "sslrootcert" and value == "system":
        value = get_default_verify_paths().cafile or ""
        if not value:
            raise _refused(name, "is system, which has no file of certificates; name one")
    try:
        with Path(value).open("rb"):
            return value
    except OSError as error:
        raise _refused(name, f"names a file that cannot be read: {error.strerror}") from None
    except ValueError:
        raise _refused(name, "names a file that cannot be read") from None


def _refused(name: str, rule: str) -> InvalidInput:
    shown = name if name.isascii() and name.isidentifier() and len(name) <= 40 else "one of them"
    return InvalidInput(SETTING, f"its parameter {shown} {rule}")
