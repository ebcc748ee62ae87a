"""PostgreSQL addresses as hosters hand them out (MDL-8): taken in the driver's terms, or named."""

from pathlib import Path
from ssl import get_default_verify_paths

import pytest

from runtime.bus.postgres import driver_url
from runtime.domain.errors import InvalidInput
from runtime.store.dialect import database_url, parameters_of
from runtime.store.postgres_address import read_parameters

pytestmark = pytest.mark.requirement("MDL-8")

BASE = "postgres://made:up-pass-0001@db.example.org:5433/gate"


def test_what_hosters_add_is_taken(tmp_path: Path) -> None:
    certificates = tmp_path / "root.crt"
    certificates.write_text("made up", encoding="ascii")
    url = (
        f"{BASE}?sslmode=verify-full&sslrootcert={certificates}&connect_timeout=7&options=-c%20a.b"
        "%3D1&application_name=mine&target_session_attrs=read-write&channel_binding=prefer"
        "&gssencmode=disable&prepared_statement_cache_size=0&host=other:1&host=third"
    )
    told = read_parameters(parameters_of(database_url(url)))
    assert told.driver == {
        "sslmode": "verify-full",
        "sslrootcert": str(certificates),
        "target_session_attrs": "read-write",
    }
    assert told.server == {"options": "-c a.b=1", "application_name": "mine"}
    assert told.engine == {"prepared_statement_cache_size": "0"}
    assert told.place == [("host", "other:1"), ("host", "third")]
    assert told.timeout_s == 7.0
    assert "application_name" not in driver_url(url)
    assert "sslmode=verify-full" in driver_url(url)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_each_scheme_means_the_same(scheme: str) -> None:
    url = f"{scheme}://db/gate?sslmode=require"
    assert read_parameters(parameters_of(database_url(url))).driver == {"sslmode": "require"}
    assert driver_url(url) == "postgresql://db/gate?sslmode=require"


@pytest.mark.skipif(
    get_default_verify_paths().cafile is None,
    reason="this machine has no file of certificates; install ca-certificates",
)
def test_the_certificates_of_the_system_are_a_file() -> None:
    told = read_parameters([("sslrootcert", "system")])
    assert Path(told.driver["sslrootcert"]).is_file()


@pytest.mark.parametrize("text", ["0", "-1"])
def test_no_time_of_its_own_is_the_usual_one(text: str) -> None:
    assert read_parameters([("connect_timeout", text)]).timeout_s is None


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("channel_binding=require", "channel_binding must be disable or prefer: the driver has no"),
        ("gssencmode=require", "gssencmode must be disable or prefer"),
        ("sslmode=yes-0001", "sslmode must be disable, allow, prefer, require, verify-ca or"),
        ("ssl=true-0001", "sslmode must be"),
        ("target_session_attrs=x-0001", "target_session_attrs must be any, read-write"),
        ("connect_timeout=ten-0001", "connect_timeout must be a whole number of seconds"),
        ("sslrootcert=/nowhere/0001", "sslrootcert names a file that cannot be read"),
        ("sslkey=%00-0001", "sslkey names a file that cannot be read"),
        ("pgbouncer=0001", "pgbouncer is not supported: take it out"),
        ("sslmod=0001", "sslmod is not supported: did you mean sslmode?"),
        ("password=up-pass-0001", "password is not supported: write it before the @"),
        ("sslmode=require&sslmode=disable", "sslmode is given twice"),
        ("ssl=require&sslmode=require", "sslmode is given twice"),
        ("prepared_statement_cache_size=x-0001", "must be a whole number"),
        ("%0A%1b=0001", "one of them is not supported"),
    ],
)
def test_what_cannot_be_followed_is_named_without_its_value(query: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=r"database\.url") as caught:
        database_url(f"{BASE}?{query}")
    assert said in str(caught.value)
    assert "0001" not in str(caught.value)
    with pytest.raises(InvalidInput, match=r"database\.url"):
        driver_url(f"{BASE}?{query}")
