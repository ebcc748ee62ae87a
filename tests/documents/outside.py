"""Which examples cannot be run here, each with the reason and with what tries it instead."""

import re
from dataclasses import dataclass
from typing import Final

from tests.documents.examples import Example


@dataclass(frozen=True, slots=True)
class Outside:
    """Commands of a document that need what no test has: all that match `pattern`, from their
    beginning."""

    document: str
    pattern: str
    reason: str

    def covers(self, example: Example) -> bool:
        """Whether this is one of them."""
        found = re.match(self.pattern, example.command)
        return example.document == self.document and found is not None


_ENGINE: Final = (
    "needs a container engine; tests/image builds the Dockerfile and runs the same image, and "
    "tests/scenario/process/test_compose.py the services of the compose file"
)
_SLACK: Final = (
    "needs an application in a Slack workspace; tests/contract/chat does the same with a server "
    "that speaks Slack's protocol"
)
_TELEGRAM: Final = (
    "needs a bot of Telegram's; tests/contract/chat does the same with a server that speaks its "
    "protocol"
)
OUTSIDE: Final = (
    Outside("README.md", "make test", "is the run that this test is part of"),
    Outside("README.md", "docker ", _ENGINE),
    Outside("README.md", "createdb ", "tests make their databases without PostgreSQL's programs"),
    Outside("docs/deploy/README.md", "docker |cd |cp |chmod ", _ENGINE),
    Outside(
        "docs/deploy/kubernetes.md",
        "kubectl ",
        "needs a cluster; tests/scenario/process/test_kubernetes.py holds the manifest to the "
        "program",
    ),
    Outside("docs/slack.md", "export |gatehouse serve", _SLACK),
    Outside("docs/telegram.md", "export |gatehouse ", _TELEGRAM),
)
