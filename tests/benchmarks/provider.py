"""A provider in a process of its own: it speaks OpenAI's format and says one word.

It answers at once, or `SLOW_S` later where it is told to take its time.

    python -m tests.benchmarks.provider

It says its address on a line.
"""

import asyncio
import json
import sys

from aiohttp import web

from adapters.system.clock import SystemClock

SLOW = "Take your time."
SLOW_S = 4.0
CHUNKS = (
    {"role": "assistant", "content": "Done."},
    {},
)


async def complete(request: web.Request) -> web.StreamResponse:
    """One streamed answer."""
    if SLOW.encode() in await request.read():
        await SystemClock().sleep(SLOW_S)
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    body = b""
    for place, delta in enumerate(CHUNKS):
        last = place == len(CHUNKS) - 1
        choice = {"index": 0, "delta": delta, "finish_reason": "stop" if last else None}
        usage = {"prompt_tokens": 2000, "completion_tokens": 2, "total_tokens": 2002}
        chunk = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "instant",
            "choices": [choice],
            **({"usage": usage} if last else {}),
        }
        body += b"data: " + json.dumps(chunk).encode() + b"\n\n"
    await response.write(body + b"data: [DONE]\n\n")
    return response


async def models(_request: web.Request) -> web.Response:
    """The one model."""
    return web.json_response({"object": "list", "data": [{"id": "instant", "object": "model"}]})


async def main() -> None:
    """Serve until the standard input ends."""
    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.add_routes([web.post("/v1/chat/completions", complete), web.get("/v1/models", models)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    sys.stdout.write(f"http://{host}:{port}/v1\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
