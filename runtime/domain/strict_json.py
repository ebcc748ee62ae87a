"""JSON that somebody else wrote, read so that it means one thing only (APR-9). Pure.

Python takes the last of two equal keys, others the first: a person could read one command and
another would run. So keys that come twice are refused, and so is what JSON does not have (NaN,
Infinity) or what programs read differently: numbers beyond a double, and nesting without end.
"""

import json
from typing import Final

from pydantic import JsonValue

from runtime.domain.printable import printable_name

MOST_DIGITS: Final = 40
"""Digits of a whole number."""
DEEPEST: Final = 64
"""Objects and lists inside one another."""


class NotStrict(ValueError):
    """One sentence part that says what is wrong, and names the key or the number."""


def read_json(text: str | bytes) -> JsonValue:
    """The value of a JSON text. Raises `NotStrict`."""
    try:
        found: JsonValue = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_int=_integer,
            parse_float=_float,
        )
    except json.JSONDecodeError as error:
        where = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise NotStrict(f"it is not JSON: {where}") from error
    except UnicodeDecodeError as error:
        raise NotStrict("it is not UTF-8") from error
    except RecursionError:
        raise NotStrict(_TOO_DEEP) from None
    _check_depth(found)
    return found


_TOO_DEEP: Final = f"it is nested more than {DEEPEST} levels deep"


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for place, key in enumerate(keys) if key in keys[:place])
        raise NotStrict(f'the key "{printable_name(twice, 60)}" comes twice in one object')
    return found


def _constant(name: str) -> JsonValue:
    raise NotStrict(f"it holds {name}, which JSON does not have")


def _integer(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise NotStrict(f"it holds a number of more than {MOST_DIGITS} digits")
    return int(digits)


def _float(digits: str) -> float:
    found = float(digits)
    if found in (float("inf"), float("-inf")):
        raise NotStrict(f"it holds the number {digits[:MOST_DIGITS]}, which is too large")
    return found


def _check_depth(value: JsonValue) -> None:
    level: list[JsonValue] = [value]
    depth = 0
    while level:
        depth += 1
        inner = [one for one in level if isinstance(one, dict | list)]
        if inner and depth > DEEPEST:
            raise NotStrict(_TOO_DEEP)
        level = [
            one
            for container in inner
            for one in (container.values() if isinstance(container, dict) else container)
        ]
