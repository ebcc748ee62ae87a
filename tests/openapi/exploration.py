"""One exploration of the API by schemathesis, and what it reached."""

import asyncio
import json
import os
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from gateway.http.app import DOCUMENT, build_app
from tests.openapi.environment import HOOKS, KNOWN, QUICK, ROLE, SEEN
from tests.openapi.gateway import explored
from tests.scenario.harness import ADMIN, READER

ROOT: Final = Path(__file__).parents[2]
SCHEMATHESIS: Final = Path(sys.executable).with_name("schemathesis")
Role = Literal["admin", "read"]
TOKENS: Final[dict[Role, str]] = {"admin": ADMIN, "read": READER}
CONFIGURATION: Final = f"""
hooks = "{HOOKS}"
continue-on-failure = true
request-timeout = 60
[generation]
database = "none"
allow-x00 = false
max-examples = {{examples}}
deterministic = {{deterministic}}
no-shrink = true
[output.sanitization]
enabled = false
[output.truncation]
enabled = false
[warnings]
enabled = false
[cache]
enabled = false
"""


@dataclass(frozen=True, slots=True)
class Order:
    """What is explored: by which token, with at most how many invented requests for each route
    beside the systematic ones. Without a seed every exploration tries the same. A `quick`
    one tries a few of the cases that are alike, and writes with a token that may only read without
    a body. With a `path`, a regular expression, it is the routes with such a path alone."""

    role: Role
    examples: int
    seed: int | None = None
    quick: bool = False
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """What came of it: whether schemathesis found nothing, what it said, each answer, and the
    routes that the document names, but for its own, which schemathesis reads first."""

    passed: bool
    told: str
    routes: set[str]
    answers: list[tuple[str, int, float]]

    @property
    def statuses(self) -> dict[str, Counter[int]]:
        """How often each route answered with which status."""
        found: dict[str, Counter[int]] = {}
        for route, status, _ in self.answers:
            found.setdefault(route, Counter())[status] += 1
        return found

    @property
    def succeeded(self) -> set[str]:
        """Routes that did what they are for at least once."""
        return {
            route
            for route, statuses in self.statuses.items()
            if any(status < 400 for status in statuses)
        }


async def explore(folder: Path, order: Order) -> Findings:
    """Start a gateway in `folder` and try its API."""
    known, seen, settings = folder / "known.json", folder / "seen.jsonl", folder / "settings.toml"
    seen.touch()
    (folder / "gateway").mkdir()
    text = CONFIGURATION.format(
        examples=order.examples,
        deterministic="true" if order.seed is None else "false",
    )
    settings.write_text(text, encoding="utf-8")
    async with explored(folder / "gateway") as (gateway, has):
        document = build_app(gateway.services)[DOCUMENT].document
        known.write_text(json.dumps(asdict(has)), encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            *(SCHEMATHESIS, "--config-file", settings, "run", f"{gateway.url}/v1/openapi.json"),
            *("--header", f"Authorization: Bearer {TOKENS[order.role]}"),
            # Bad requests are refused before it matters whose they are.
            # The examples of the document are among what covers a schema, too.
            *(("--phases", "coverage,fuzzing,stateful") if order.quick else ()),
            *("--mode", "positive" if order.quick and order.role == "read" else "all"),
            "--no-color",
            *(() if order.seed is None else ("--seed", str(order.seed))),
            *(() if order.path is None else ("--include-path-regex", order.path)),
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                KNOWN: str(known),
                SEEN: str(seen),
                ROLE: order.role,
                **({QUICK: "1"} if order.quick else {}),
            },
            cwd=folder,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            told, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    lines = seen.read_text(encoding="utf-8").splitlines()
    answers = [(str(route), int(status), float(ms)) for route, status, ms in map(json.loads, lines)]
    routes = {
        f"{method.upper()} {path}"
        for path, operations in document["paths"].items()
        for method in operations
        if path != "/v1/openapi.json"
    }
    return Findings(process.returncode == 0, told.decode(errors="replace"), routes, answers)
