"""Reads many event streams at once, in a process of its own: what it costs is not the server's.

    python -m tests.benchmarks.stream_readers PORT STREAMS TOKENS

It prints ``ready`` once every stream is open, then a line of JSON for each event of the kind
`MARK`: the monotonic times at which each stream had it, in seconds.
"""

import asyncio
import gc
import json
import sys
import time

MARK = b"event: session.created\n"


class Readers:
    """The times at which each stream had each marked event."""

    def __init__(self, streams: int) -> None:
        self.streams = streams
        self.open = 0
        self.opening = asyncio.Semaphore(50)
        self.times: dict[int, list[float]] = {}

    async def read(self, port: int, token: str) -> None:
        """One stream, until the server ends it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
        writer.write(
            f"GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
            f"Authorization: Bearer {token}\r\n\r\n".encode()
        )
        line = await reader.readline()
        if b" 200 " not in line:
            raise RuntimeError(line.decode())
        seen = 0
        async for line in reader:
            if line == b"event: ready\n":
                self.open += 1
                self.opening.release()
                if self.open == self.streams:
                    print("ready", flush=True)
            elif line == MARK:
                had = self.times.setdefault(seen, [])
                had.append(time.perf_counter())
                seen += 1
                if len(had) == self.streams:
                    print(json.dumps(had), flush=True)
                    del self.times[seen - 1][:]


async def main(port: int, streams: int, tokens: list[str]) -> None:
    """Open the streams some at a time, and read them."""
    readers = Readers(streams)
    async with asyncio.TaskGroup() as group:
        for number in range(streams):
            await readers.opening.acquire()
            token = tokens[number % len(tokens)]
            group.create_task(readers.read(port, token), name=f"reader {number}")


if __name__ == "__main__":
    gc.freeze()
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].split(",")))
