"""The model of the soak: a pure function of what it is asked, but for the trouble that is ordered.

A wish reads ``w000017 tool``. Its first request gets the tool call of its kind, the next one the
answer that carries the token.
"""

import re
from collections import deque

from tests.soak.ledger import Ledger
from tests.wire.openai import Answer, ModelServer, Prompt, calls, says, use

WISH = re.compile(r"(w\d{6}) (\w+)")
SLIM = Prompt({}, "", ())
KEPT = 50
RESULT = 200


class Script:
    """Plays the model; `trouble` is what the next requests meet instead of an answer."""

    def __init__(self, server: ModelServer, ledger: Ledger) -> None:
        self._server = server
        self._ledger = ledger
        self._slimmed = 0
        self.trouble: deque[Answer] = deque()
        server.plays = self.play

    def play(self, prompt: Prompt) -> Answer:
        """What the model says to this."""
        self._forget()
        if self.trouble:
            return self.trouble.popleft()
        found = WISH.findall(prompt.asked)
        if not found:
            return says("I was asked for nothing that I know.")
        token, kind = found[-1]
        if any("outcome is unknown" in result for result in prompt.results):
            self._ledger.unsure.add(token)
        if prompt.results:
            self._ledger.results[token] = prompt.results[-1][:RESULT]
            return says("Answer ", f"{token}.")
        return self._first(token, kind)

    def _first(self, token: str, kind: str) -> Answer:
        if kind == "read":
            return calls(use("read_file", path="AGENTS.md", limit=5))
        if kind == "tool":
            return calls(use("exec", command=f"echo {token} >> effects"))
        if kind in ("file", "permit"):
            return calls(use("write_file", path=f"{kind}/{token}.txt", content=token))
        if kind == "approval":
            return calls(use("exec", command=f"printf '{token}\\n' >> effects"))
        if kind == "question":
            return calls(
                use("ask_user", question=f"Which one, {token}?", options=["left", "right"])
            )
        if kind == "stop":
            return says("Thinking about it. ", hold=token, ending=f"Answer {token}.")
        return says("Answer ", f"{token}.")

    def _forget(self) -> None:
        """Requests are large: drop the old ones, but not their number, which names the calls."""
        prompts = self._server.prompts
        while self._slimmed < len(prompts) - KEPT:
            prompts[self._slimmed] = SLIM
            self._slimmed += 1
