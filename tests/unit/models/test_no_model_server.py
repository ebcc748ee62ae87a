"""What answers in place of a model server is said, once (MDL-6)."""

import pytest

from runtime.domain.errors import ModelRejected
from tests.unit.models.raw import answering, refusal
from tests.unit.models.samples import collect, request
from tests.unit.models.test_provider import model_at

pytestmark = pytest.mark.requirement("MDL-6")
ANSWERS = {
    "an error about the path": refusal(200, {"error": "Unexpected endpoint or method. (POST /x)"}),
    "a page to log in": refusal(200, "<html><body>Log in</body></html>", kind="text/html"),
    "another API": refusal(200, {"status": "up"}),
    "no such path": refusal(404, {"detail": "Not Found"}),
    "a page that says so": refusal(404, "<html>404</html>", kind="text/html"),
    "another method": refusal(405, "Method Not Allowed", kind="text/plain"),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_what_is_no_model_server_is_named_and_asked_once(answer: bytes) -> None:
    async with answering(answer) as server, model_at(server.url, "compatible") as model:
        with pytest.raises(ModelRejected) as caught:
            await collect(model, request("hi"))
        assert server.asked == 1
    assert caught.value.cause == "not_a_model"
    assert "/v1" in caught.value.public
    assert not caught.value.content, "the message is not to blame"
