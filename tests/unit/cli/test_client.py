"""What the command line says of a gateway that refuses."""

import asyncio
import errno
import socket
import struct

import pytest

from gateway.cli.answers import Refused, Unreachable
from gateway.cli.client import GatewayClient


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize("kind", ["session", "run", "pairing"])
def test_what_is_not_found_names_the_command_that_lists_it(kind: str) -> None:
    refused = Refused(404, f"no {kind} has the id x", "not_found", kind)
    assert str(refused) == (
        f"no {kind} has the id x. `gatehouse {kind}{'s' if kind != 'pairing' else ''} list` "
        "shows those that there are."
    )


@pytest.mark.requirement("OPS-2")
def test_what_no_command_lists_is_said_alone() -> None:
    assert str(Refused(404, "no file has the id x", "not_found", "file")) == "no file has the id x"


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize("reset", [True, False])
async def test_a_connection_that_ends_before_the_answer_was_cut(reset: bool) -> None:
    async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if reset:
            # A socket that does not linger is closed by a reset.
            option = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, option)
        writer.close()

    async with await asyncio.start_server(end, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with GatewayClient(f"http://127.0.0.1:{port}", None) as client:
            with pytest.raises(Unreachable, match="the connection was cut"):
                await client.get("/v1/runtime")


@pytest.mark.requirement("OPS-2")
@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ECONNREFUSED, "the connection was refused"),
        (errno.ECONNRESET, "the connection was cut"),
        (errno.ENETUNREACH, "Network is unreachable"),
    ],
)
async def test_a_call_that_fails_says_why_and_not_only_whom_it_called(
    number: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listener that dies while it is called refuses the call or resets it."""

    async def fail(*_: object, **__: object) -> None:
        raise OSError(number, "Connect call failed ('127.0.0.1', 1)")

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", fail)
    async with GatewayClient("http://127.0.0.1:1", None) as client:
        with pytest.raises(Unreachable, match=said) as raised:
            await client.get("/v1/runtime")
        assert "Connect call failed" not in str(raised.value)
