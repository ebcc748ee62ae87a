"""The paths of the files that a call of a file tool names, also inside a patch."""

import json
import re
from collections.abc import Sequence
from typing import Final

_PATCHED: Final = re.compile(
    r"^(?:\*\*\* Add File: (?P<added>.+)"
    r"|\*\*\* Update File: (?P<updated>.+)(?:\n\*\*\* Move to: (?P<moved>.+))?"
    r"|--- .+\n\+\+\+ (?!/dev/null)(?:b/)?(?P<written>[^\t\n]+)"
    r"|rename to (?P<renamed>.+))",
    re.MULTILINE,
)
"""The files that a patch leaves, by the headers of both of its spellings."""


def paths_of(arguments: str) -> Sequence[str]:
    """The paths of the files that a call names, by its arguments as JSON."""
    try:
        found = json.loads(arguments)
    except ValueError:
        return ()
    found = found if isinstance(found, dict) else {}
    path, patch = found.get("path"), found.get("patch")
    if isinstance(path, str):
        return (path,) if path else ()
    if not isinstance(patch, str):
        return ()
    headers = (match.groupdict() for match in _PATCHED.finditer(patch.replace("\r\n", "\n")))
    return [(one["moved"] or next(filter(None, one.values()))).strip() for one in headers]
