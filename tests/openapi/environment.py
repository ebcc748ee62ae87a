"""The variables by which an exploration speaks to its hooks, which run in another process."""

from typing import Final

KNOWN: Final = "GATEHOUSE_OPENAPI_KNOWN"
"""A file with the ids that exist."""
SEEN: Final = "GATEHOUSE_OPENAPI_SEEN"
"""A file to which each answer is written."""
ROLE: Final = "GATEHOUSE_OPENAPI_ROLE"
"""What the token may do: admin or read."""
QUICK: Final = "GATEHOUSE_OPENAPI_QUICK"
"""Set where it must not take long."""
HOOKS: Final = "tests.openapi.hooks"
"""The module of the hooks."""
