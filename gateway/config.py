"""The configuration: the only module that reads the environment and configuration files (OPS-1).

Sources, the later over the earlier: defaults, `gatehouse.toml`, `secrets.toml` in the home folder,
the well-known variables of other tools (``OPENAI_API_KEY``), ``GATEHOUSE_*``. It reports all that
is wrong at once. It opens nothing else and decides nothing.
"""

import json
import os
import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from pydantic import JsonValue, SecretStr, ValidationError
from pydantic_core import ErrorDetails

from gateway.config_keys import Path as Key
from gateway.config_keys import Problem, Taken, from_environment, from_file, leaves, value_of
from gateway.config_model import Settings
from gateway.config_text import encoding_problem, header_problem, trim

PREFIX: Final = "GATEHOUSE_"
FILE: Final = "gatehouse.toml"
SECRETS: Final = "secrets.toml"
TOKEN: Final = "token"
"""The owner's token, which `gateway.home_token` makes."""
PLAIN: Final[dict[str, Key]] = {
    "OPENAI_API_KEY": ("models", "openai_api_key"),
    "OPENAI_BASE_URL": ("models", "openai_base_url"),
    "ANTHROPIC_API_KEY": ("models", "anthropic_api_key"),
    "GEMINI_API_KEY": ("models", "gemini_api_key"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("observability", "otlp_endpoint"),
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": ("observability", "otlp_endpoint"),
    "SLACK_BOT_TOKEN": ("slack", "bot_token"),
    "SLACK_APP_TOKEN": ("slack", "app_token"),
    "SLACK_SIGNING_SECRET": ("slack", "signing_secret"),
    "SLACK_API_URL": ("slack", "api_url"),
    "TELEGRAM_BOT_TOKEN": ("telegram", "token"),
    "TELEGRAM_API_URL": ("telegram", "api_url"),
}
"""Variables that other tools know too."""
_OTHERS: Final = frozenset({"CONFIG", "HOME", "URL", "TOKEN", "TASK_TOKEN"})
_KUBERNETES: Final = re.compile(r"(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP)(_\w+)?)?)")
"""Kubernetes sets these in every container beside a service that is named gatehouse."""


class ConfigError(Exception):
    """The configuration cannot be used; `problems` holds all that is wrong with it."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Config:
    """The settings, where each key came from, and the places on this machine.

    `origins` holds the keys that were set; the rest are defaults. `variables` are the names of
    the environment, never its values: skills may require some. `sources` are the files that were
    read, `watched` those and the places where files would be read from.
    """

    settings: Settings
    origins: Mapping[Key, str]
    home: Path
    file: Path | None
    sources: tuple[Path, ...]
    variables: frozenset[str]
    watched: tuple[Path, ...] = ()

    @property
    def database_url(self) -> str:
        """The operator's, or the file in the home folder."""
        return self.settings.database.url or f"sqlite+aiosqlite:///{self.home / 'gatehouse.db'}"

    @property
    def workspace(self) -> Path:
        """The operator's folder, or the one in the home folder."""
        return self.settings.workspace.path or self.home / "workspace"

    def with_address(self, host: str, port: int) -> "Config":
        """The same, listening elsewhere."""
        http = self.settings.http.model_copy(update={"host": host, "port": port})
        return replace(self, settings=self.settings.model_copy(update={"http": http}))

    def origin(self, key: Key) -> str:
        """Where a key's value came from."""
        return self.origins.get(key, "default")


@dataclass(frozen=True, slots=True)
class Client:
    """Which gateway the command line talks to: the one at `url`, with the token that was given
    together with it, or, where that is empty, the one of its own home, by a socket (OPS-12)."""

    url: str
    token: SecretStr | None
    home: Path


def gateway_version() -> str:
    """The installed version; a checkout that was never installed has none."""
    try:
        return version("gatehouse")
    except PackageNotFoundError:
        return "from a checkout"


def load(file: Path | None = None, *, environment: Mapping[str, str] | None = None) -> Config:
    """Read everything. Raises `ConfigError`; `environment` stands in for the process's own."""
    variables = os.environ if environment is None else environment
    home = _home(variables)
    taken, sources = Taken(), []
    places = _places(file, variables, home)
    found = _find(file, places, taken.problems)
    if found is not None:
        taken.add(_read(found, taken.problems))
        sources.append(found)
    secrets = home / SECRETS
    if _is_private(secrets, taken.problems):
        taken.add(_read(secrets, taken.problems))
        sources.append(secrets)
    own_token = home / TOKEN
    _is_private(own_token, taken.problems)
    taken.add(_plain(variables))
    taken.add(from_environment(_own(variables), PREFIX))
    _resolve_paths(taken, found)
    settings = _check(taken)
    if settings is not None:
        for tokens_file in _token_files(settings):
            taken.problems += _token_problems(tokens_file)
    if settings is None or taken.problems:
        raise ConfigError(taken.problems)
    tokens = (*_token_files(settings), own_token)
    return Config(
        settings=settings,
        origins=taken.origins,
        home=home,
        file=found,
        sources=(*sources, *tokens),
        variables=frozenset(variables),
        watched=(*places, secrets, *tokens),
    )


def client(config: Config, *, environment: Mapping[str, str] | None = None) -> Client:
    """Which gateway to talk to: that of ``GATEHOUSE_URL`` with ``GATEHOUSE_TOKEN``, else the one of
    this home. The home's token goes to no address: another program may listen there."""
    variables = os.environ if environment is None else environment
    url, text = (trim(variables.get(f"{PREFIX}{name}", "")) for name in ("URL", "TOKEN"))
    if not text and not url:
        text = next(iter(read_tokens(config.home / TOKEN)), "")
    return Client(url.rstrip("/"), SecretStr(text) if text else None, config.home)


def read_tokens(path: Path) -> tuple[str, ...]:
    """The tokens of a token file: one a line, `#` begins a comment; none if it cannot be read."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return ()
    stripped = (trim(line) for line in lines)
    return tuple(line for line in stripped if line and not line.startswith("#"))


def _token_problems(path: Path) -> Iterator[Problem]:
    """What no bearer of a token could send; a file that is not there yet has no problem."""
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        yield Problem(str(path), f"is not UTF-8 text, at byte {error.start}")
    except OSError:
        return
    for number, token in enumerate(read_tokens(path), 1):
        if problem := header_problem(token):
            yield Problem(str(path), f"its token number {number} {problem}")


@dataclass(frozen=True, slots=True)
class Tokens:
    """The bearer tokens that hold (API-1)."""

    admin: tuple[str, ...]
    read_only: tuple[str, ...]


def tokens_of(config: Config) -> Tokens:
    """The tokens of the settings, of the token files and of the home, as these are now."""
    http = config.settings.http
    return Tokens(
        (*_tokens(http.admin_token, http.admin_token_file), *read_tokens(config.home / TOKEN)),
        _tokens(http.read_only_token, http.read_only_token_file),
    )


def _tokens(token: SecretStr | None, file: Path | None) -> tuple[str, ...]:
    own = () if token is None else (token.get_secret_value(),)
    return (*own, *(() if file is None else read_tokens(file)))


def secrets_of(config: Config) -> tuple[str, ...]:
    """Every secret value that is configured, longest first: the log masks them (I9)."""
    values = [value for path, _ in leaves() for value in _secret(config.settings, path)]
    http = config.settings.http
    for file in (http.admin_token_file, http.read_only_token_file, config.home / TOKEN):
        values += [] if file is None else read_tokens(file)
    password = re.search(r"://[^/@]*:([^/@]+)@", config.settings.database.url or "")
    values += [password[1]] if password else []
    values += config.settings.tools.exec.env.values()
    return tuple(sorted({value for value in values if len(value) >= 6}, key=len, reverse=True))


def _secret(settings: Settings, path: Key) -> list[str]:
    value: object = settings
    for name in path:
        value = getattr(value, name)
    return _secrets_in(value)


def _secrets_in(value: object) -> list[str]:
    """Of a key that holds a secret, or tables that do, such as further workspaces."""
    if isinstance(value, SecretStr):
        return [value.get_secret_value()]
    inner = value.values() if isinstance(value, dict) else ()
    found = [getattr(one, name) for one in inner for name in getattr(one, "model_fields_set", ())]
    return [secret for each in found for secret in _secrets_in(each)]


def _home(variables: Mapping[str, str]) -> Path:
    named = variables.get(f"{PREFIX}HOME", "")
    try:
        return Path(named).expanduser().absolute() if named else Path.home() / ".gatehouse"
    except RuntimeError:
        what = "this user has no home folder; name a folder that it may write to, without ~"
        raise ConfigError([Problem(f"{PREFIX}HOME", what)]) from None


def _expanded(path: Path, origin: str) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:
        what = "nobody knows the home folder that ~ stands for; write the whole path"
        raise ConfigError([Problem(str(path), what, origin)]) from None


def _places(file: Path | None, variables: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """Where the file may be, the first one first: the one that is named, and no other then."""
    named = variables.get(f"{PREFIX}CONFIG", "")
    if file is not None or named:
        origin = "--config" if file is not None else f"{PREFIX}CONFIG"
        return (_expanded(file or Path(named), origin).absolute(),)
    return tuple(path.absolute() for path in (Path(FILE), home / FILE))


def _find(file: Path | None, places: tuple[Path, ...], problems: list[Problem]) -> Path | None:
    found = next((path for path in places if path.is_file()), None)
    if found is None and len(places) == 1:
        origin = "--config" if file is not None else f"{PREFIX}CONFIG"
        problems.append(Problem(str(places[0]), f"there is no such file, but {origin} names it"))
    return found


def _is_private(secrets: Path, problems: list[Problem]) -> bool:
    try:
        mode = stat.S_IMODE(secrets.stat().st_mode)
    except OSError:
        return False
    if mode & 0o077:
        what = f"others on this machine may read it; run: chmod 600 {secrets}"
        problems.append(Problem(str(secrets), what))
        return False
    return True


def _read(path: Path, problems: list[Problem]) -> Taken:
    try:
        # Some editors begin a file with a mark of the byte order.
        raw = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        problems.append(Problem(str(path), f"is not valid TOML: {error}"))
    except UnicodeDecodeError as error:
        problems.append(Problem(str(path), f"is not UTF-8 text, at byte {error.start}"))
    except OSError as error:
        problems.append(Problem(str(path), f"cannot be read: {error.strerror}"))
    else:
        return from_file(raw, str(path))
    return Taken()


def _own(variables: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in variables.items()
        if name.startswith(PREFIX)
        and (rest := name.removeprefix(PREFIX)) not in _OTHERS
        and not _KUBERNETES.fullmatch(rest)
    }


def _plain(variables: Mapping[str, str]) -> Taken:
    taken = Taken()
    infos = dict(leaves())
    for name, path in PLAIN.items():
        text = variables.get(name, "")
        if problem := encoding_problem(text):
            taken.problems.append(Problem(".".join(path), problem, f"environment variable {name}"))
        elif trim(text):
            taken.put(path, value_of(text, infos[path]), f"environment variable {name}")
    return taken


_PATHS: Final[tuple[Key, ...]] = (
    ("workspace", "path"),
    ("tools", "roots"),
    ("http", "admin_token_file"),
    ("http", "read_only_token_file"),
)


def _resolve_paths(taken: Taken, file: Path | None) -> None:
    """A relative path in the file is meant from the file's folder, a variable's from this one."""
    for key in _PATHS:
        origin = taken.origins.get(key)
        if origin is None:
            continue
        base = file.parent if file is not None and origin.startswith(str(file)) else Path.cwd()
        table = taken.values[key[0]]
        if isinstance(table, dict):
            table[key[1]] = _absolute(table[key[1]], base, origin)


def _absolute(value: JsonValue, base: Path, origin: str) -> JsonValue:
    if isinstance(value, str):
        return str(base / _expanded(Path(value), origin))
    if isinstance(value, list):
        return [_absolute(one, base, origin) for one in value]
    return value


def _check(taken: Taken) -> Settings | None:
    try:
        # As JSON, so that types are strict (no "yes" for true) and paths and sets still texts.
        return Settings.model_validate_json(json.dumps(taken.values), strict=True)
    except ValidationError as error:
        taken.problems += [_problem(one, taken) for one in error.errors()]
        return None


def _problem(error: ErrorDetails, taken: Taken) -> Problem:
    where = tuple(str(part) for part in error["loc"])
    origin = next((taken.origins[where[:n]] for n in (2, 3, 1) if where[:n] in taken.origins), "")
    return Problem(".".join(where), _rule(error), origin)


_RULES: Final[dict[str, str]] = {
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be a text in quotes",
    "tuple_type": "must be a list in square brackets",
    "dict_type": "must be a table",
    "path_type": "must be a path in quotes",
    "int_from_float": "must be a whole number",
}


def _rule(error: ErrorDetails) -> str:
    """The rule in words; a value is repeated only where it can be no secret."""
    rule = _RULES.get(error["type"])
    if rule is None:
        text = error["msg"].removeprefix("Value error, ")
        return text.replace("Input should be", "must be")
    given = error["input"]
    names = " ".join(str(part) for part in error["loc"])
    secret = any(word in names for word in ("token", "key", "secret", "env"))
    # Before an @ an address may hold a password.
    if secret or not isinstance(given, str | int | float | bool) or "@" in str(given):
        return rule
    return f"{rule}, not {json.dumps(given)}"


def _token_files(settings: Settings) -> tuple[Path, ...]:
    files = (settings.http.admin_token_file, settings.http.read_only_token_file)
    return tuple(file for file in files if file is not None)
