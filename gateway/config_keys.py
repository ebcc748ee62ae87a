"""The names of settings: which keys exist, how they may be written, and the nearest to a wrong one.

Pure. Keys are written ``max_steps`` or ``maxSteps`` in a file, and ``GATEHOUSE_AGENTS__MAX_STEPS``
in the environment. A path is a tuple of the names that the sections use.
"""

import json
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Annotated, Literal, Union, get_args, get_origin

from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo

from gateway.config_model import Settings
from gateway.config_text import encoding_problem, trim

Path = tuple[str, ...]
Tree = dict[str, JsonValue]
Kind = Literal["text", "whole", "number", "switch", "list", "table"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: `where` is a key or a file, `what` is the rule."""

    where: str
    what: str
    source: str = ""

    def __str__(self) -> str:
        place = f" ({self.source})" if self.source else ""
        return f"{self.where}: {self.what}{place}"


@dataclass(slots=True)
class Taken:
    """What one source sets: values by their names, where each came from, what was wrong."""

    values: Tree = field(default_factory=dict)
    origins: dict[Path, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def put(self, path: Path, value: JsonValue, origin: str) -> None:
        """Set one key, over what another source set."""
        table = self.values
        for name in path[:-1]:
            inner = table.setdefault(name, {})
            if not isinstance(inner, dict):
                inner = table[name] = {}
            table = inner
        table[path[-1]] = value
        self.origins[path] = origin

    def add(self, other: "Taken") -> None:
        """Take another source's values over these, and its problems too."""
        for path, origin in other.origins.items():
            self.put(path, _at(other.values, path), origin)
        self.problems += other.problems


def leaves(model: type[BaseModel] = Settings, above: Path = ()) -> Iterator[tuple[Path, FieldInfo]]:
    """Every key that holds a value, with its path, in the order of the sections."""
    for name, info in model.model_fields.items():
        inner = section_of(info)
        if inner is None:
            yield (*above, name), info
        else:
            yield from leaves(inner, (*above, name))


def section_of(info: FieldInfo) -> type[BaseModel] | None:
    """The section that a field holds, or None where it holds a value."""
    kind = info.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def camel(name: str) -> str:
    """``max_steps`` as ``maxSteps``."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def from_file(raw: Mapping[str, object], file: str) -> Taken:
    """Read a parsed file; keys are checked here, values by the sections' rules."""
    taken = Taken()
    _table(raw, Settings, (), taken, file)
    return taken


def from_environment(variables: Mapping[str, str], prefix: str) -> Taken:
    """Read variables such as ``GATEHOUSE_HTTP__PORT``; an empty one counts as not set."""
    taken = Taken()
    known = {
        "__".join(map(spelling, path)).upper(): (path, info)
        for path, info in leaves()
        for spelling in (camel, str)
    }
    for variable, text in sorted(variables.items()):
        if not trim(text):
            continue
        if problem := encoding_problem(text):
            taken.problems.append(Problem(variable, problem, "environment"))
            continue
        found = known.get(variable.removeprefix(prefix).upper())
        if found is None:
            names = ["__".join(path).upper() for path, _ in leaves()]
            near = get_close_matches(variable.removeprefix(prefix).upper(), names, n=1, cutoff=0.5)
            hint = f"; did you mean {prefix}{near[0]}?" if near else ""
            taken.problems.append(Problem(variable, f"is not a setting{hint}", "environment"))
        else:
            path, info = found
            taken.put(path, value_of(text, info), f"environment variable {variable}")
    return taken


def value_of(text: str, info: FieldInfo) -> JsonValue:
    """A variable's text as the type of its key; a text that is none is left for the check."""
    kind = kind_of(info.annotation)
    if kind in ("list", "table") and text.lstrip()[:1] in ("[", "{"):
        try:
            return _json(text)
        except ValueError:
            return text
    if kind == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    if kind == "switch":
        return _SWITCHES.get(text.strip().lower(), text)
    if kind in ("whole", "number"):
        try:
            return int(text) if kind == "whole" else float(text)
        except ValueError:
            return text
    return text


def kind_of(annotation: object) -> Kind:
    """What a type looks like to the person who sets it."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return kind_of(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return kind_of(next(one for one in get_args(annotation) if one is not type(None)))
    if origin is tuple:
        return "list"
    if origin is dict:
        return "table"
    plain: dict[object, Kind] = {bool: "switch", int: "whole", float: "number"}
    return plain.get(annotation, "text")


_SWITCHES: dict[str, JsonValue] = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def _json(text: str) -> JsonValue:
    value: JsonValue = json.loads(text)
    return value


def _table(
    raw: Mapping[str, object], model: type[BaseModel], above: Path, taken: Taken, file: str
) -> None:
    source = f"{file}, [{'.'.join(above)}]" if above else file
    names = {written: name for name in model.model_fields for written in (camel(name), name)}
    seen: dict[str, str] = {}
    for written, value in raw.items():
        name = names.get(written)
        where = ".".join((*above, written))
        if name is None:
            taken.problems.append(Problem(where, _unknown(written, model, above), source))
        elif name in seen:
            taken.problems.append(Problem(where, f"is set twice, as {seen[name]} too", source))
        else:
            seen[name] = written
            _one(value, model.model_fields[name], (*above, name), taken, file)


def _one(value: object, info: FieldInfo, path: Path, taken: Taken, file: str) -> None:
    section = section_of(info)
    source = f"{file}, [{'.'.join(path[:-1])}]" if path[:-1] else file
    if section is None:
        taken.put(path, _json(json.dumps(value, default=str)), source)
    elif isinstance(value, dict):
        _table(value, section, path, taken, file)
    else:
        what = f"must be a table, written [{'.'.join(path)}]"
        taken.problems.append(Problem(".".join(path), what, source))


def _unknown(written: str, model: type[BaseModel], above: Path) -> str:
    near = get_close_matches(_flat(written), [_flat(name) for name in model.model_fields], n=1)
    if near:
        name = next(name for name in model.model_fields if _flat(name) == near[0])
        return f"is not a setting; did you mean {'.'.join((*above, name))}?"
    elsewhere = [path for path, _ in leaves() if _flat(path[-1]) == _flat(written)]
    if elsewhere:
        return f"is not a setting; did you mean {'.'.join(elsewhere[0])}?"
    return f"is not a setting; there are {', '.join(model.model_fields)}"


def _flat(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _at(tree: Tree, path: Path) -> JsonValue:
    value: JsonValue = tree
    for name in path:
        value = value[name] if isinstance(value, dict) else None
    return value
