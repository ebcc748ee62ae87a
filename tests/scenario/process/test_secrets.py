"""The secrets of a gateway stay in it: no file that holds one tells it to anybody (POL-7)."""

from pathlib import Path

import pytest

from tests.conftest import FailAfter
from tests.scenario.process.program import Place, gateway
from tests.scenario.process.talk import conversation, finished, reply

TOKEN = "made-up-admin-token-0123456789"


@pytest.mark.requirement("POL-7")
async def test_a_secret_of_the_gateway_in_a_file_is_masked_for_model_page_and_database(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    place = Place(tmp_path, {"GATEHOUSE_HTTP__READ_ONLY_TOKEN": TOKEN})
    (place.workspace / "files").mkdir(parents=True)
    (place.workspace / "files/leak.txt").write_text(f"the token is {TOKEN}, keep it\n")
    async with fail_after(60), gateway(place) as program:
        async with conversation(await program.url()) as talk:
            sent = await talk.submit("read leak.txt")
            assert await finished(talk, sent.run_id) == "completed"
            assert "the token is" in reply(talk, sent.run_id)
            assert TOKEN not in reply(talk, sent.run_id)
        program.process.terminate()
        assert await program.ended() == 0
    kept = b"".join(file.read_bytes() for file in place.home.glob("gatehouse.db*"))
    assert b"the token is" in kept
    assert TOKEN.encode() not in kept
