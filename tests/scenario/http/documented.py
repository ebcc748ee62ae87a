"""The routes of a gateway as its OpenAPI document describes them, for tests that try every one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import jsonschema_rs
from sqlalchemy import Connection

from gateway.http.app import DOCUMENT, build_app
from tests.scenario.harness import Site

NOT_CALLERS: Final = frozenset({"leases", "logins", "wakeups", "alembic_version"})
"""Tables that change with time or with who comes in, whatever is asked."""
_WRONG: Final = (5, "", [5], {"nonsense": 5}, "\u00e9 \n", True, None, -1, "x" * 100_001)


@dataclass(frozen=True, slots=True)
class Route:
    """One route. `path` has its variables in braces; `body` is the schema of its JSON and None
    where it takes none. An `uploads` takes bytes."""

    method: str
    path: str
    statuses: frozenset[int]
    parameters: Mapping[str, Mapping[str, object]]
    body: Mapping[str, object] | None
    components: Mapping[str, object]
    reads: bool
    uploads: bool

    @property
    def name(self) -> str:
        """As `GET /v1/sessions`."""
        return f"{self.method} {self.path}"

    @property
    def creates(self) -> bool:
        """Whether it takes a key that makes it safe to send again."""
        return "Idempotency-Key" in self.parameters

    def wrong_fields(self) -> dict[str, object]:
        """For each field of the body a value that its schema does not allow."""
        if self.body is None:
            return {}
        schema = self._resolved(self.body)
        found: dict[str, object] = {}
        for name, one in dict(schema.get("properties", {})).items():
            check = jsonschema_rs.Draft202012Validator({**one, "components": self.components})
            found[name] = next(value for value in _WRONG if not check.is_valid(value))
        return found

    def _resolved(self, schema: Mapping[str, object]) -> Mapping[str, object]:
        ref = schema.get("$ref")
        return schema if ref is None else self.components["schemas"][str(ref).split("/")[-1]]

    def wrong_parameters(self) -> list[tuple[str, str]]:
        """Values of the query that break a rule, with the parameter that they are of."""
        found = [("nonsense", "1")]
        for name, schema in self.parameters.items():
            if "enum" in self._resolved(schema):
                found.append((name, "nonsense"))
            elif schema.get("type") == "integer":
                least, most = schema.get("minimum"), schema.get("maximum")
                bounds = [least - 1 if least else "-1", most + 1 if most else 2**31]
                found += [(name, str(one)) for one in (*bounds, "ten", "1.5", "", "9" * 20)]
            elif schema.get("type") == "boolean":
                found += [(name, "perhaps"), (name, "")]
            elif schema.get("pattern"):
                found += [(name, "a b"), (name, "a" * 65)]
            elif name == "cursor":
                found += [(name, "x"), (name, "W251bGxd"), (name, "%C3%A9"), (name, "9" * 99)]
        return found


def routes_of(gateway: Site) -> list[Route]:
    """Every route of `/v1`."""
    document = build_app(gateway.services)[DOCUMENT].document
    return [
        _route(method.upper(), path, one, document["components"])
        for path, operations in document["paths"].items()
        for method, one in operations.items()
    ]


def _route(
    method: str, path: str, one: Mapping[str, object], components: Mapping[str, object]
) -> Route:
    content = one.get("requestBody", {}).get("content", {})
    return Route(
        method,
        path,
        frozenset(int(status) for status in one["responses"]),
        {
            parameter["name"]: parameter["schema"]
            for parameter in one["parameters"]
            if parameter["in"] != "path"
        },
        content["application/json"]["schema"] if "application/json" in content else None,
        components,
        one["x-read-only-token"],
        "application/octet-stream" in content,
    )


async def settled(gateway: Site) -> None:
    """Return once nothing is left to be sent, and mail that was read is noted as delivered; no
    account of Slack is connected here."""
    waiting = (
        "SELECT (SELECT count(*) FROM outbox"
        " WHERE state IN ('pending', 'sending', 'streaming') AND channel <> 'slack')"
        " + (SELECT count(*) FROM mailbox_messages JOIN inputs ON inputs.id = input_id"
        " WHERE mailbox_messages.state = 'queued' AND inputs.state IN ('taken', 'undone'))"
    )
    while await gateway.database.read(lambda conn: conn.exec_driver_sql(waiting).scalar_one()):
        pass


async def contents(gateway: Site) -> dict[str, list[tuple[object, ...]]]:
    """All rows of the database that a request could change."""

    def work(conn: Connection) -> dict[str, list[tuple[object, ...]]]:
        names = conn.exec_driver_sql(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            " AND sql NOT LIKE 'CREATE VIRTUAL%'"
        ).scalars()
        return {
            name: [tuple(row) for row in conn.exec_driver_sql(f'SELECT * FROM "{name}"')]
            for name in names
            if name not in NOT_CALLERS
        }

    return await gateway.database.read(work)
