"""schemathesis finds nothing: no 5xx, no answer outside its schema, nobody in without a token.

Each run of these tests tries the same requests. `python -m tests.openapi` tries many more.
"""

from pathlib import Path
from typing import Final

import pytest

from tests.openapi.exploration import Findings, Order, Role, explore

EXAMPLES: Final = 2
NEVER: Final[dict[str, str]] = {}
"""Routes that do nothing in an exploration but refuse, and why. Other tests use them."""


@pytest.mark.requirement("API-1", "API-2", "API-3")
@pytest.mark.parametrize("role", ["admin", "read"])
async def test_an_exploration_finds_nothing(tmp_path: Path, role: Role) -> None:
    findings = await explore(tmp_path, Order(role, EXAMPLES, quick=True))
    assert findings.passed, findings.told
    assert not (tmp_path / ".schemathesis").exists()
    routes = findings.routes
    assert findings.statuses.keys() == routes
    assert not [answer for answer in findings.answers if answer[1] >= 500]
    if role == "admin":
        assert routes - findings.succeeded == NEVER.keys()
    else:
        assert findings.succeeded == {route for route in routes if route.startswith("GET ")}
        _each_is_refused(findings, routes - findings.succeeded)


def _each_is_refused(findings: Findings, writes: set[str]) -> None:
    """A token that may only read gets 403 from each route that writes."""
    assert all(findings.statuses[route][403] for route in writes)
