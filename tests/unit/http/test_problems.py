"""What an error of the engine is to a client."""

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gateway.http.problems import problems
from runtime.domain.errors import StoreFull, StoreUnavailable


@pytest.mark.requirement("OPS-11")
@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (
            StoreFull("/var/lib/gatehouse is full"),
            "There is no room left for the gateway's database. Nothing was done; make room and "
            "try again.",
        ),
        (StoreUnavailable("127.0.0.1:5432 refused"), "Nothing was done; try again."),
    ],
)
async def test_a_full_disk_is_named_and_its_place_is_not(error: Exception, detail: str) -> None:
    async def handler(_request: web.Request) -> web.StreamResponse:
        raise error

    answer = await problems(make_mocked_request("POST", "/v1/sessions"), handler)
    assert isinstance(answer, web.Response)
    assert answer.status == 503
    assert json.loads(answer.text or "")["detail"] == detail
