"""The fence around content from outside, so that the model takes it for data (TOOL-11).

The label in both tags is derived from the content, so that the same content is fenced by the same
bytes (a prompt stays cacheable) and the content cannot name the label of its own closing tag.
"""

import hashlib

import regex

from runtime.domain.printable import printable_name

_TAG = "untrusted"
_IGNORED = r"[\s/\u00ad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe0f\uff0f\ufeff]"
# Bounded repeats: a text of nothing but brackets and spaces costs no more than its length.
_IMITATION = regex.compile(
    rf"[<\uff1c\ufe64\u2039\u2329\u27e8\u3008](?={_IGNORED}{{0,16}}"
    + rf"{_IGNORED}{{0,4}}".join(_TAG)
    + ")",
    regex.IGNORECASE,
)
_SOURCE_LIMIT = 120
"""Characters of the label: a fence adds at most 700 bytes."""


def fence(text: str, source: str) -> str:
    """`text` between tags that say it is untrusted and name its `source`.

    What looks like such a tag inside of `text` loses its opening bracket.
    """
    body = _IMITATION.sub("(", text)
    label = _label(source)
    digest = hashlib.blake2b(f"{label}\0{body}".encode("utf-8", "replace"), digest_size=8)
    nonce = digest.hexdigest()
    return (
        f'<{_TAG} id="{nonce}" source="{label}">\n'
        f"{body}{'' if body.endswith(chr(10)) else chr(10)}"
        f'</{_TAG} id="{nonce}">'
    )


def _label(source: str) -> str:
    return "".join("_" if c in '"<>' else c for c in printable_name(source, _SOURCE_LIMIT))
