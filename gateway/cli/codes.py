"""Codes on the command line: the end of an id, by which a chat names a schedule or a task."""

import re
from typing import TYPE_CHECKING, Final

from gateway.cli.answers import Refused
from runtime.domain.ids import CODE_LENGTH, code_of

if TYPE_CHECKING:
    from gateway.cli.client import GatewayClient

_CODE: Final = re.compile(rf"[0-9a-z]{{{CODE_LENGTH}}}")
"""No id has this form: it begins with its kind."""


async def id_of(
    gateway: "GatewayClient", name: str, path: str, *, kind: str, key: str = "id"
) -> str:
    """The id that `name` is the code of among what `path` lists; what is no code is an id already.

    `key` is where an item has its id. Raises `Refused` for a code of nothing, or of several.
    """
    code = name.lower()
    if not _CODE.fullmatch(code):
        return name
    pages = gateway.pages(path, {"limit": "200"})
    ids = [str(item.get(key)) async for page in pages for item in page]
    found = [one for one in ids if code_of(one) == code]
    if not found:
        raise Refused(404, f"no {kind} has the code {code!r}", "not_found", kind)
    if len(found) > 1:
        detail = f"several {kind}s have the code {code!r}: {', '.join(found)}. Write the whole id."
        raise Refused(409, detail)
    return found[0]
