"""What every state machine shares: an example opens a database of its own, as a test does."""

from tests.support.compiled_statements import compiled_once

__all__ = ["compiled_once"]
