"""The one failure a Bot API method can answer with."""

from collections.abc import Mapping


class ApiError(Exception):
    """An answer with `ok: false`; `code` is both the HTTP status and ``error_code``."""

    def __init__(
        self, code: int, description: str, parameters: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


def bad_request(reason: str) -> ApiError:
    """400 with the prefix that the real server puts before every such reason."""
    return ApiError(400, f"Bad Request: {reason}")


def forbidden(reason: str) -> ApiError:
    """403 with the real prefix."""
    return ApiError(403, f"Forbidden: {reason}")


def conflict(reason: str) -> ApiError:
    """409 with the real prefix."""
    return ApiError(409, f"Conflict: {reason}")
