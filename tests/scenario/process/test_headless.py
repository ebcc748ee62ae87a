"""A deployment that is made of variables alone, as `docker run --env ...` makes it (OPS-9)."""

import signal
from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.scenario.gateway.town import Town, town_at
from tests.scenario.process.compose import image
from tests.scenario.process.program import gateway
from tests.wire.openai import says
from tests.wire.slack import ANNA

LIMIT_S = 240.0


def headless(town: Town) -> Path:
    """Make the town's machine a container's: one volume, no file, variables; the volume."""
    volume = town.place.path / "data"
    (town.place.home / "gatehouse.toml").unlink()
    town.place.variables |= {
        name: str(volume) if value == "/data" else value
        for name, value in image().env.items()
        if name not in ("PATH", "HOME")
    }
    town.place.variables |= {
        "GATEHOUSE_SLACK__OWNERS": f'["{ANNA}"]',
        "GATEHOUSE_TELEGRAM__OWNERS": f'["{town.ann.id}"]',
    }
    return volume


@pytest.mark.requirement("OPS-9", "CTX-1")
async def test_variables_alone_make_a_deployment_whose_identity_files_heal(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    async with fail_after(LIMIT_S), town_at(tmp_path) as town:
        town.model.plays = lambda prompt: says("Here ", "I am.")
        volume = headless(town)
        async with gateway(town.place, *image().command[3:]) as program:
            await program.url()
            await town.on_slack("hello")
            town.on_telegram("hello")
            await town.slack.wait_for_post(
                lambda post: post.visible_text == "Here I am.", within=LIMIT_S
            )
            await town.telegram.wait_for_message(
                lambda one: one.text == "Here I am.", timeout=LIMIT_S
            )
            program.signal(signal.SIGTERM)
            assert await program.ended() == 0
        workspace = volume / "workspace"
        (workspace / "SOUL.md").unlink()
        (workspace / "USER.md").write_text("Mine.", encoding="utf-8")
        async with gateway(town.place, *image().command[3:]) as program:
            await program.url()
            assert (workspace / "SOUL.md").read_text(encoding="utf-8").strip()
            assert (workspace / "USER.md").read_text(encoding="utf-8") == "Mine."
        assert not town.place.home.joinpath("gatehouse.db").exists(), "all of it is in the volume"
