"""Codes of chats where a command takes an id."""

from collections.abc import AsyncIterator, Mapping

import pytest

from gateway.cli.answers import Refused
from gateway.cli.client import GatewayClient, JsonObject
from gateway.cli.codes import id_of

pytestmark = pytest.mark.requirement("OPS-2")

FIRST = "tsk_01jd0000000000000000004sgdn3"
SAME = "tsk_01jd1111111111111111114sgdn3"
OTHER = "tsk_01jd0000000000000000005sg6en"


class Lister(GatewayClient):
    """Two pages of tasks."""

    def __init__(self, *ids: str) -> None:
        super().__init__("http://127.0.0.1:1", None)
        self.ids = ids
        self.reads = 0

    async def pages(self, path: str, query: Mapping[str, str]) -> AsyncIterator[list[JsonObject]]:
        assert path == "/v1/tasks"
        for one in self.ids:
            self.reads += 1
            yield [{"id": one}]


async def found(gateway: Lister, name: str) -> str:
    return await id_of(gateway, name, "/v1/tasks", kind="task")


@pytest.mark.parametrize("code", ["5sg6en", "5SG6EN"])
async def test_a_code_names_what_has_it(code: str) -> None:
    assert await found(Lister(FIRST, OTHER), code) == OTHER


async def test_an_id_is_asked_about_as_it_stands() -> None:
    gateway = Lister(FIRST)
    assert await found(gateway, "tsk_none") == "tsk_none"
    assert gateway.reads == 0


async def test_a_code_of_several_is_refused_with_their_ids() -> None:
    with pytest.raises(Refused) as refused:
        await found(Lister(FIRST, OTHER, SAME), "4sgdn3")
    assert str(refused.value) == (
        f"several tasks have the code '4sgdn3': {FIRST}, {SAME}. Write the whole id."
    )


async def test_a_code_of_nothing_names_the_command_that_lists() -> None:
    with pytest.raises(Refused) as refused:
        await found(Lister(FIRST), "5sg6en")
    assert str(refused.value) == (
        "no task has the code '5sg6en'. `gatehouse tasks list SESSION` shows those that there are."
    )
