"""Decisions about what acts later, addresses and actions (POL-9, POL-10, APR-9)."""

from dataclasses import replace

import pytest

from runtime.domain.decisions import SessionMode
from runtime.domain.grants import Grant, GrantKind
from runtime.domain.people import Trust
from runtime.policy.decide import Bounds, CallFacts, decide
from tests.unit.policy import cases
from tests.unit.policy.cases import WIDEST_FIRST, rules, runs, writes

BYPASS, _, _, DONT_ASK, _ = WIDEST_FIRST


def acts(*sinks: str, **changes: bool) -> CallFacts:
    """A call that writes what later acts."""
    return replace(writes("skills/x/SKILL.md"), sinks=sinks or ("skills",), **changes)


@pytest.mark.requirement("POL-9")
def test_what_later_acts_is_written_only_by_asking() -> None:
    found = [decide(acts(), Bounds(mode=mode)) for mode in WIDEST_FIRST]
    assert [one.verdict for one in found] == ["allow", "ask", "ask", "deny", "deny"]
    assert "`skills` later acts as an instruction or as code" in found[0].rule
    assert found[2].rule.startswith("instruction: `skills`")
    grant = Grant(tool="write_file", kind=GrantKind.PATH, key="skills/x/SKILL.md", text="x")
    assert decide(acts(), Bounds(grants=(grant,))).verdict == "ask"
    assert decide(acts(), Bounds(trust=Trust.GUEST)).verdict == "deny"
    assert decide(acts(), Bounds(session_mode=SessionMode.PLAN)).verdict == "deny"


@pytest.mark.requirement("POL-9")
@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        ("write_file(skills/**)", "allow"),
        ("write_file(skills/x/*)", "allow"),
        ("write_file(=skills/x/SKILL.md)", "allow"),
        ("write_file(**)", "ask"),
        ("write_file(*kills/**)", "ask"),
        ("write_file(skill*/**)", "ask"),
        ("write_file", "ask"),
        ("*", "ask"),
        ("edit_file(skills/**)", "ask"),
    ],
)
def test_a_rule_covers_what_acts_only_where_it_names_it(rule: str, verdict: str) -> None:
    assert decide(acts(), Bounds(rules=rules(allow=(rule,)))).verdict == verdict


@pytest.mark.requirement("POL-9")
def test_long_term_notes_are_free_for_the_owner_alone_and_until_the_run_is_tainted() -> None:
    call = replace(writes("memory/a.md"), memory=True, private=True)
    assert decide(call, Bounds()).verdict == "allow"
    assert decide(call, Bounds(tainted=True)).verdict == "ask"
    assert decide(call, Bounds(trust=Trust.MEMBER)).verdict == "ask"
    assert decide(call, Bounds(group=True)).verdict == "deny"
    assert decide(call, Bounds(child=True)).verdict == "deny"
    named = rules(allow=("write_file(memory/**)",))
    assert decide(call, Bounds(tainted=True, rules=named)).verdict == "allow"
    assert decide(call, Bounds(tainted=True, mode=BYPASS)).verdict == "allow"
    assert decide(call, Bounds(tainted=True, mode=DONT_ASK)).verdict == "deny"


@pytest.mark.requirement("POL-10")
def test_a_fetch_asks_unless_its_address_was_given_or_its_host_is_allowed() -> None:
    call = cases.asks_for()
    found = [decide(call, Bounds(mode=mode)).verdict for mode in WIDEST_FIRST]
    assert found == ["allow", "ask", "ask", "deny", "deny"]
    given = frozenset({"https://example.org/a"})
    for mode in WIDEST_FIRST:
        assert decide(call, Bounds(mode=mode, given=given)).verdict == "allow"
    assert decide(cases.asks_for("https://example.org/ab"), Bounds(given=given)).verdict == "ask"
    host = rules(allow=("web_fetch(example.org)",))
    assert decide(call, Bounds(rules=host)).verdict == "allow"
    other = rules(allow=("web_fetch(*.example.org)",))
    assert decide(call, Bounds(rules=other)).verdict == "ask"
    grant = Grant(tool="web_fetch", kind=GrantKind.HOST, key="example.org", text="x")
    assert decide(call, Bounds(grants=(grant,))).verdict == "allow"
    assert decide(call, Bounds(given=given, rules=rules(ask=("web_fetch",)))).verdict == "ask"


@pytest.mark.requirement("APR-9")
def test_the_text_of_a_command_is_allowed_only_where_commands_begin() -> None:
    named, everything = rules(allow=("exec(make test)",)), rules(allow=("exec",))
    prefix = rules(allow=("exec(make:*)",))
    here, there = runs("make test"), runs("make test", elsewhere=True)
    assert decide(here, Bounds(rules=named)).verdict == "allow"
    assert decide(there, Bounds(rules=named)).verdict == "ask"
    assert decide(there, Bounds(rules=prefix)).verdict == "ask"
    assert decide(there, Bounds(rules=everything)).verdict == "allow"
    assert decide(there, Bounds(rules=rules(deny=("exec(make:*)",)))).verdict == "deny"


@pytest.mark.parametrize(
    ("rule", "command", "verdict"),
    [
        ("make:*", "make test", "allow"),
        ("make:*", "make -f ./Makefile test", "allow"),
        ("make:*", "make V=1 test", "allow"),
        ("make:*", "make CC=./x test", "ask"),
        ("make:*", "make PYTHONPATH=1 test", "ask"),
        ("make test:*", "make test GIT_CONFIG_COUNT=0", "ask"),
        ("make:*", "make BASH_ENV=1 test", "ask"),
        ("npm run:*", "npm run build", "allow"),
        ("npm run:*", "npm run @x", "ask"),
        ("npm run:*", "npm run build --userconfig x", "ask"),
        ("npm run:*", "npm run build --script-shell python3", "ask"),
        ("uv run:*", "uv run app.py", "ask"),
        ("npm exec:*", "npm exec -c make", "ask"),
        ("pnpm exec:*", "pnpm exec sh notes", "ask"),
        ("yarn:*", "yarn node notes", "ask"),
        ("R:*", "R -q -f notes.txt", "ask"),
        ("mix run:*", "mix run notes.txt", "ask"),
        ("uv run app.py:*", "uv run app.py --fast", "allow"),
        ("cmake:*", "cmake notes", "ask"),
        ("docker compose:*", "docker compose up -d web", "allow"),
        ("docker build:*", "docker build -t name .", "allow"),
        ("docker build:*", "docker build notes", "ask"),
        ("pip install:*", "pip install requests", "allow"),
        ("pip install:*", "pip install ./notes", "ask"),
        ("pytest:*", "pytest -q -k one", "allow"),
        ("pytest:*", "pytest -p one", "ask"),
        ("pytest:*", "pytest -k @a.txt", "ask"),
        ("uv run pytest:*", "uv run pytest -pevil", "ask"),
        ("uv run pytest:*", "uv run pytest -q", "allow"),
        ("make:*", "make sub/x CC=", "ask"),
        ("npm test:*", "npm test notes.js", "ask"),
        ("rake:*", "rake -fx", "ask"),
        ("scons:*", "scons -Csub", "ask"),
        ("make:*", "make -f notes/x.txt", "ask"),
        ("make:*", "make -fnotes/x.txt", "ask"),
        ("make:*", "make -sCdocs", "ask"),
        ("make:*", "make SHELL=./x.sh test", "ask"),
        ("make:*", "make -f notes/x.txt \u200b", "ask"),
        ("make -C docs:*", "make -C docs html", "allow"),
        ("sh:*", "sh x.sh", "ask"),
        ("sh run.sh:*", "sh run.sh one", "allow"),
        ("npm:*", "npm run build", "allow"),
        ("npm:*", "npm --prefix web test", "ask"),
        ("npm test:*", "npm test --node-options=--require=./notes/x.js", "ask"),
        ("git log:*", "git log -1", "allow"),
        ("git log:*", "git log -1 --output=Makefile", "ask"),
        ("git grep:*", "git grep -Osh needle", "ask"),
        ("git commit:*", "git commit -m words", "allow"),
        ("git:*", "git checkout main", "allow"),
        ("git:*", "git -c core.fsmonitor=make status", "ask"),
        ("git bisect:*", "git bisect run sh notes/x.txt", "ask"),
        ("git bisect:*", "git bisect good", "allow"),
        ("git submodule:*", "git submodule foreach make", "ask"),
        ("git fetch:*", "git fetch --upload-pack=make .", "ask"),
        ("git fetch:*", "git fetch origin", "allow"),
    ],
)
@pytest.mark.requirement("POL-9")
def test_a_rule_for_a_beginning_covers_only_the_code_that_it_guards(
    rule: str, command: str, verdict: str
) -> None:
    bounds = Bounds(rules=rules(allow=(f"exec({rule})",)))
    assert decide(runs(command), bounds).verdict == verdict
    assert decide(runs(command), Bounds(rules=rules(allow=("exec",)))).verdict == "allow"


@pytest.mark.requirement("APR-9")
def test_a_granted_action_is_that_action_and_no_other_with_its_text() -> None:
    grant = Grant(tool="exec", kind=GrantKind.ACTION, key="digest", text="x")
    bounds = Bounds(grants=(grant,))
    assert decide(replace(runs("sh a.sh"), action="digest"), bounds).verdict == "allow"
    assert decide(replace(runs("sh a.sh"), action="other"), bounds).verdict == "ask"
