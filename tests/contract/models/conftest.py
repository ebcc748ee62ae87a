"""Model tests over aimock."""

from tests.wire.aimock import aimock_server

__all__ = ["aimock_server"]
