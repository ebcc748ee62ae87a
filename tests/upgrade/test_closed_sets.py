"""A new member of a closed set is known to one release before the next one writes it (SCALE-4).

Code that meets a state, a kind or a part that it does not know cannot go on with that row, so
during a rolling upgrade the newer version must write none. `closed_sets.toml` holds every member
that the first release knows, and each later one with the release that first reads it and the one
that first writes it.
"""

import importlib
import pkgutil
import re
import tomllib
import typing
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import pytest

import runtime.domain
from runtime.domain.value import Value
from tests.architecture.source import python_files

pytestmark = pytest.mark.requirement("SCALE-4")
FILE = Path(__file__).with_name("closed_sets.toml")
ROOT = Path(__file__).resolve().parents[2]
NOT_STORED = frozenset({"IdPrefix", "Standing"})
"""Enumerations whose members no row holds by themselves."""

Sets = Mapping[str, frozenset[str]]


def sets_of_today() -> Sets:
    """Every enumeration of the domain, and every closed choice of a value that a row may hold."""
    found: dict[str, frozenset[str]] = {}
    for module in pkgutil.iter_modules(runtime.domain.__path__, "runtime.domain."):
        for name, one in vars(importlib.import_module(module.name)).items():
            if not isinstance(one, type) or one.__module__ != module.name:
                continue
            if issubclass(one, StrEnum) and name not in NOT_STORED:
                found[name] = frozenset(member.value for member in one)
            elif issubclass(one, Value):
                for field, information in one.model_fields.items():
                    choices = _choices(information.annotation)
                    if choices:
                        found[f"{name}.{field}"] = choices
    return found


def _choices(annotation: Any) -> frozenset[str]:
    if typing.get_origin(annotation) is Literal:
        return frozenset(str(one) for one in typing.get_args(annotation))
    parts = [_choices(part) for part in typing.get_args(annotation)]
    return frozenset[str]().union(*parts)


def broken(today: Sets, held: Mapping[str, Any], release: str) -> list[str]:
    """What breaks the rule in a tree of `release`, whose sets are `today`."""
    told: dict[str, set[str]] = {name: set(members) for name, members in held["first"].items()}
    said = []
    for one in held.get("added", ()):
        told.setdefault(one["set"], set()).add(one["member"])
        if _order(one["written"]) <= _order(one["known"]):
            said.append(f"{one['set']}: {one['member']} is written no later than it is known")
        if _order(one["known"]) > _order(release):
            said.append(
                f"{one['set']}: {one['member']} is known to a release that is not there yet"
            )
    for name, members in today.items():
        for member in sorted(members - told.get(name, set())):
            said.append(
                f"{name}: {member} is new; add it to {FILE.name} with the release that reads it "
                "first, and write it from the next one on"
            )
    for name, kept in told.items():
        for member in sorted(kept - today.get(name, frozenset())):
            said.append(f"{name}: {member} can no longer be read; rows may still hold it")
    return said


def written_too_early(held: Mapping[str, Any], release: str) -> list[str]:
    """Places that write a member before its release; reading code stands in `runtime/domain`."""
    early = [one for one in held.get("added", ()) if _order(one["written"]) > _order(release)]
    code = [
        file
        for layer in ("runtime", "adapters", "gateway")
        for file in python_files(layer)
        if not file.path.startswith("runtime/domain/")
    ]
    return [
        f"{file.path}: {one['set']}, {one['member']}"
        for one in early
        for file in code
        if _writing(one["set"], one["member"]) in file.text
    ]


def _writing(name: str, member: str) -> str:
    """What code looks like that makes such a value: the member, or a value with the field."""
    value, _, field = name.partition(".")
    return f"{value}(" if field else f"{name}.{member.upper()}"


def _order(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release))


def _release() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return str(project["project"]["version"])


def _held() -> Mapping[str, Any]:
    return tomllib.loads(FILE.read_text("utf-8"))


def test_every_member_is_known_before_it_is_written() -> None:
    assert broken(sets_of_today(), _held(), _release()) == []
    assert written_too_early(_held(), _release()) == []


def test_the_sets_are_found() -> None:
    today = sets_of_today()
    assert "waiting_for_approval" in today["RunState"]
    assert today["FilePart.kind"] == {"file"}
    assert today["NoticeMessage.role"] == {"notice"}
    assert len(today) > 12


@pytest.mark.parametrize(
    ("added", "why"),
    [
        ([], "RunState: dreaming is new"),
        ([("0.2.0", "0.2.0")], "written no later than it is known"),
        ([("0.3.0", "0.4.0")], "a release that is not there yet"),
        ([("0.2.0", "0.3.0")], ""),
    ],
)
def test_a_new_member_has_to_wait(added: Sequence[tuple[str, str]], why: str) -> None:
    entries = [
        {"set": "RunState", "member": "dreaming", "known": known, "written": written}
        for known, written in added
    ]
    held = {"first": {"RunState": ["queued"]}, "added": entries}
    said = broken({"RunState": frozenset({"queued", "dreaming"})}, held, "0.2.0")
    assert [why in one for one in said] == ([True] if why else [])


def test_a_member_that_went_is_told() -> None:
    said = broken({"RunState": frozenset()}, {"first": {"RunState": ["queued"]}}, "0.2.0")
    assert said == ["RunState: queued can no longer be read; rows may still hold it"]


def test_code_that_writes_too_early_is_found() -> None:
    for name, member in (("RunState", "queued"), ("FilePart.kind", "file")):
        entry = {"set": name, "member": member, "known": "0.1.0", "written": "9.0.0"}
        assert written_too_early({"added": [entry]}, "1.0.0") != []
