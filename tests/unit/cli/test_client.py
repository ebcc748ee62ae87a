"""What the command line says of a gateway that refuses."""

import pytest

from gateway.cli.answers import Refused


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
