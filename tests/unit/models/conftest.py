"""Model tests over aimock."""

from tests.wire.aimock import aimock, aimock_server

__all__ = ["aimock", "aimock_server"]
