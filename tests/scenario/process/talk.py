"""Talking to a running gateway over HTTP, with the command line's own client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.cli.answers import Unreachable
from gateway.cli.client import GatewayClient
from gateway.cli.conversation import TERMINAL, Conversation
from tests.scenario.process.program import ADMIN


@asynccontextmanager
async def conversation(url: str, name: str = "main") -> AsyncIterator[Conversation]:
    """The terminal's session of this name."""
    async with GatewayClient(url, ADMIN) as client:
        yield await Conversation.open(client, name)


@asynccontextmanager
async def followed(talk: Conversation) -> AsyncIterator[asyncio.Event]:
    """Set whenever there is news in a conversation, so that waiting costs the machine nothing."""
    news = asyncio.Event()
    following = asyncio.create_task(talk.follow(news.set), name="following")
    try:
        yield news
    finally:
        following.cancel()
        await asyncio.wait([following])


async def finished(talk: Conversation, run_id: str) -> str:
    """The state in which a run ended."""
    async with followed(talk) as news:
        while True:
            news.clear()
            state = str((await talk.run(run_id))["state"])
            if state in TERMINAL:
                await talk.refresh()
                return state
            await news.wait()


async def say(talk: Conversation, text: str) -> str:
    """What the agent answers, where a person allows what it asks for, and answers a question with
    the first of its options."""
    sent = await talk.submit(text)
    async with followed(talk) as news:
        while True:
            news.clear()
            await talk.refresh()
            for card in talk.cards():
                if card.kind == "question":
                    assert await talk.answer(card, card.options[0]) == ""
                else:
                    assert await talk.decide(card, "once") == ""
            if (await talk.run(sent.run_id))["state"] in TERMINAL:
                await talk.refresh()
                return reply(talk, sent.run_id)
            await news.wait()


async def gone(url: str) -> None:
    """Wait until nothing answers at the address."""
    async with GatewayClient(url, ADMIN) as client:
        while True:
            try:
                await client.get("/healthz")
            except Unreachable:
                return


def reply(talk: Conversation, run_id: str) -> str:
    """The last thing that a run said."""
    said = [one for one in talk.entries if one.run_id == run_id and one.kind == "assistant"]
    return said[-1].text if said else ""
