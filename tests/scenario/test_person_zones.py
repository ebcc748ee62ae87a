"""Where a person's clocks are: what their profile or their browser says, until they say it."""

import pytest

from tests.scenario.schedules.test_reminders import House, hears, house
from tests.scenario.schedules.test_tools import Agent

__all__ = ["house"]
pytestmark = pytest.mark.requirement("SCH-8")


async def test_the_zone_is_that_of_the_persons_profile_until_they_say_another(
    house: House,
) -> None:
    async with house.begins() as at:
        told = await hears(at, "/remind tomorrow at 9: tea", timezone="Europe/Berlin")
        assert "on Saturday 16 January 2027, 09:00 (Europe/Berlin): tea" in told
        assert "/timezone" not in told
        assert await hears(at, "/timezone", timezone="Europe/Berlin") == (
            "Your time zone is Europe/Berlin, as your profile or your browser says."
        )
        # Who travels has another profile.
        assert "09:00 (Asia/Tokyo)" in await hears(
            at, "/remind tomorrow at 9: tea", timezone="Asia/Tokyo"
        )
        for useless in ("Mars/Olympus", ""):
            asked = await hears(at, "/remind tomorrow at 9: tea", timezone=useless)
            assert asked.startswith("I do not know your time zone, and this depends on it.")
        await hears(at, "/timezone America/Lima", timezone="Asia/Tokyo")
        assert "09:00 (America/Lima)" in await hears(
            at, "/remind tomorrow at 9: tea", timezone="Asia/Tokyo"
        )


async def test_a_tool_knows_the_zone_of_the_persons_profile(house: House) -> None:
    agent = Agent()
    async with house.begins(agent.model) as at:
        said: dict[str, object] = {"timezone": "Asia/Tokyo"}
        answer = await agent.does(at, "create", said=said, when="tomorrow at 9", text="tea")
        assert "zone: Asia/Tokyo" in answer
        assert "- Saturday 16 January 2027, 09:00 (Asia/Tokyo)" in answer
