"""The commands of the program against a running gateway, as a person types them."""

import json
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest

from gateway.cli.client import GatewayClient
from tests.conftest import FailAfter
from tests.scenario.process.program import ADMIN, BEARER, Place, command, gateway, reaching
from tests.wire.openai import ModelServer


@pytest.mark.requirement("TTY-1")
async def test_one_message_prints_one_reply(place: Place, fail_after: FailAfter) -> None:
    # One of its group that loads everything itself, see `nursery`.
    place.loaded = False
    async with fail_after(60), gateway(place) as program:
        there = reaching(place, await program.url())
        said = await command(there, "chat", "-m", "list files")
        piped = await command(there, "chat", "--session", "other", typed="hello\n")
        helped = await command(there, "chat", "-m", "/help")
        failed = await command(there, "chat", "-m", "read none.md")
    assert (said.code, piped.code, helped.code) == (0, 0, 0), said.err + piped.err + helped.err
    assert "[empty folder]" in said.out
    assert "offline model" in piped.out
    assert "/status" in helped.out
    assert 'gatehouse: a step failed: read_file {"path": "none.md"}' in failed.err
    assert "a step failed" not in said.err


@pytest.mark.requirement("TTY-1")
async def test_without_a_gateway_the_chat_brings_its_own(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        said = await command(place, "chat", "-m", "hello")
        again = await command(place, "chat", "-m", "/status")
    assert said.code == 0, said.err
    assert "offline model" in said.out
    assert "terminal:main" in again.out
    assert (place.home / "chat.log").is_file()


@pytest.mark.requirement("TTY-1", "OPS-2")
async def test_a_reply_that_waits_for_approval_says_how_to_give_it(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), gateway(place) as program:
        there = reaching(place, await program.url())
        waits = await command(there, "chat", "-m", "run `echo from the sandbox`")
        assert waits.code == 4
        behind = await command(there, "chat", "-m", "and then?")
        assert behind.code == 4
        assert "your message is kept" in behind.err
        assert "your message is kept" not in waits.err
        listed = await command(there, "approvals", "list", "--json")
        (card,) = json.loads(listed.out)
        assert f"gatehouse approvals approve {card['code']}" in waits.err
        done = await command(there, "approvals", "approve", card["code"])
        assert done.code == 0, done.err
        assert 'Allowed once: exec {"command": "echo from the sandbox"}' in done.out
        assert "Asked for by Owner (owner) in terminal:main." in done.out
        assert f"`gatehouse runs show {card['run_id']}`" in done.out
        denied = await command(there, "chat", "--session", "b", "-m", "run `make && make`")
        (card,) = json.loads((await command(there, "approvals", "list", "--json")).out)
        whole = await command(there, "approvals", "approve", card["code"], "--session")
        assert (whole.code, "can be allowed once only; leave out --session" in whole.err) == (
            1,
            True,
        )
        said = await command(there, "approvals", "deny", card["code"], "--reason", "not now")
        assert denied.code == 4
        assert 'Denied: exec {"command": "make && make"}' in said.out
        assert "terminal:b. The agent is told: not now." in said.out
        again = await command(there, "approvals", "approve", card["code"])
        assert again.code == 1
        assert card["code"] in again.err


@pytest.mark.requirement("OPS-2")
async def test_every_reading_command_has_json_and_people_output(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(120), gateway(place) as program:
        there = reaching(place, await program.url())
        await command(there, "chat", "-m", "hello")
        (run,) = json.loads((await command(there, "runs", "list", "--json")).out)
        for arguments in (
            ("status",),
            ("sessions", "list"),
            ("sessions", "show", "terminal:main"),
            ("runs", "list", "--session", "terminal:main"),
            ("agents", "tree", "terminal:main"),
            ("runs", "show", run["id"]),
            ("approvals", "list"),
            ("pairing", "list"),
            ("context", "terminal:main"),
            ("policy", "explain", "terminal:main", "exec", '{"command": "ls"}'),
            ("config", "show"),
            ("config", "path"),
            ("version",),
        ):
            plain = await command(there, *arguments)
            assert plain.code == 0, (arguments, plain)
            assert plain.out or plain.err, arguments
            if arguments[0] == "runs":
                assert "hello" in plain.out, arguments
            told = await command(there, *arguments, "--json")
            assert told.code == 0, (arguments, told)
            json.loads(told.out)
        code = await command(there, "pairing", "owner-code")
        assert "The code before it was not used, and no longer works." in code.out
        exported = await command(there, "sessions", "export", "terminal:main")
        lines = [json.loads(line) for line in exported.out.splitlines()]
        assert [line["kind"] for line in lines][:2] == ["user", "assistant"]
        assert lines[0]["text"] == "hello"
        unknown = await command(there, "context", "terminal:mian")
        assert (unknown.code, unknown.out) == (1, "")
        assert "no session has the id or the key 'terminal:mian'" in unknown.err
        unknown = await command(there, "runs", "show", "terminal:main")
        assert "`gatehouse runs list` shows" in unknown.err


@pytest.mark.requirement("MSG-22")
async def test_a_turn_that_was_taken_back_is_shown_as_such(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), gateway(place) as program:
        there = reaching(place, await program.url())
        await command(there, "chat", "-m", "hello")
        (run,) = json.loads((await command(there, "runs", "list", "--json")).out)
        said = await command(there, "chat", "-m", "/undo")
        while "still on its way" in said.out:
            said = await command(there, "chat", "-m", "/undo")
        assert said.out.startswith("Taken back: `hello`.")
        shown = await command(there, "sessions", "show", "terminal:main")
        assert shown.out.count("  (taken back)\n") == 2
        assert "\nundone      yes" in (await command(there, "runs", "show", run["id"])).out


@pytest.mark.requirement("MSG-12", "WEB-3")
async def test_a_model_that_the_provider_lists_is_chosen_and_answers(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60), ModelServer().running() as server:
        server.models = ["first", "second-large", "second-small"]
        place.variables |= {
            "OPENAI_API_KEY": "sk-test-key",
            "OPENAI_BASE_URL": server.url,
            "GATEHOUSE_MODELS__DEFAULT": "openai:first",
        }
        async with gateway(place) as program:
            there = reaching(place, await program.url())
            said = [
                (await command(there, "chat", "-m", text)).out
                for text in (
                    "/model",
                    "/model second",
                    "/model nonsense",
                    "/model anthropic:claude-large",
                    "/model second-small",
                    "who are you?",
                )
            ]
            async with GatewayClient(await program.url(), ADMIN) as client:
                listed = await client.items("/v1/models", most=10)
                (session,) = await client.items("/v1/sessions", most=2)
                path = f"/v1/sessions/{session['id']}/route-policy"
            async with aiohttp.request(
                "PUT",
                f"{await program.url()}{path}",
                json={"model": "openai:second-large"},
                headers=BEARER,
            ) as chosen_on_page:
                on_page = await chosen_on_page.json()
    assert [one["name"] for one in listed if one["default"]] == ["openai:first"]
    assert {one["name"] for one in listed} >= {"openai:second-large", "openai:second-small"}
    assert on_page["model"] == "openai:second-large"
    shown, near, unknown, missing, chosen, _ = said
    assert "The model is openai:first, the default." in shown
    assert "- `openai:second-large`" in shown
    assert "Similar names: `openai:second-large`, `openai:second-small`." in near
    assert "There is no model `nonsense` that I can use." in unknown
    assert "anthropic is not set up here" in missing
    assert "ANTHROPIC_API_KEY" in missing
    assert "The model is openai:second-small from the next step on." in chosen
    assert [prompt.body["model"] for prompt in server.prompts] == ["second-small"]


@pytest.mark.requirement("POL-1", "CTX-2")
async def test_a_person_sees_why_a_call_is_asked_about_and_what_the_prompt_holds(
    place: Place, fail_after: FailAfter
) -> None:
    place.configure('[policy]\nask = ["read_file(notes/*)"]\ndeny = ["exec(rm:*)"]\n')
    async with fail_after(120), gateway(place) as program:
        there = reaching(place, await program.url())
        await command(there, "chat", "-m", "hello")
        listed = await command(there, "sessions", "list", "--json")
        session = json.loads(listed.out)[0]["id"]
        denied = await command(
            there, "policy", "explain", session, "exec", '{"command": "rm -r notes"}'
        )
        assert denied.out.startswith("deny")
        assert "exec(rm:*)" in denied.out
        asked = (
            await command(there, "policy", "explain", session, "exec", '{"command": "ls"}')
        ).out
        assert asked.count("default on commands") == 2, "in the verdict, and once in the chain"
        allowed = await command(there, "policy", "explain", session, "list_dir")
        assert "No rule allows it" not in allowed.out
        for wrong, code, said in (
            ("{command: ls}", 2, "ARGUMENTS is not JSON"),
            ('"ls"', 2, "ARGUMENTS must be a JSON object, not a text"),
            ('{"comand": "ls"}', 1, "comand"),
        ):
            ended = await command(there, "policy", "explain", session, "exec", wrong)
            assert (ended.code, ended.out) == (code, ""), ended
            assert said in ended.err
            assert '{"command": "' in ended.err, "an example"
        context = json.loads((await command(there, "context", session, "--json")).out)
        names = [block["name"] for block in context["blocks"]]
        assert names[:2] == ["runtime", "AGENTS.md"]
        assert all(block["tokens"] > 0 for block in context["blocks"])


@pytest.mark.requirement("CTX-5")
async def test_who_owns_the_gateway_sees_which_file_of_the_workspace_is_skipped(
    place: Place, fail_after: FailAfter
) -> None:
    said = "USER.md is skipped: it is not UTF-8 (byte 3)"
    async with fail_after(60), gateway(place) as program:
        there = reaching(place, await program.url())
        before = await command(there, "chat", "-m", "/status")
        (place.workspace / "USER.md").write_bytes(b"Caf\xe9")
        chat = await command(there, "chat", "-m", "/status")
        status = await command(there, "status")
        (session,) = json.loads((await command(there, "sessions", "list", "--json")).out)
        context = await command(there, "context", session["id"])
    assert "skipped" not in before.out
    assert f"workspace: {said}" in chat.out
    assert said in status.out
    assert "ready: yes" in status.out
    assert "listens to api, terminal, web" in status.out
    assert "fence" not in status.out
    assert said in context.err


@pytest.mark.requirement("OPS-2")
async def test_exit_codes_say_what_went_wrong(place: Place, fail_after: FailAfter) -> None:
    nowhere = reaching(place, "http://127.0.0.1:9")
    async with fail_after(60):
        unreachable = await command(nowhere, "sessions", "list")
        chat = await command(nowhere, "chat", "-m", "hello")
        usage = await command(place, "sessions", "lst")
        async with gateway(place) as program:
            there = reaching(place, await program.url())
            unknown = await command(there, "runs", "show", "run_01jd00000000000000000000zz")
            wrong = await command(
                reaching(place, await program.url(), {"GATEHOUSE_TOKEN": "made-up"}), "status"
            )
    assert (unreachable.code, chat.code, usage.code, unknown.code) == (3, 3, 2, 1)
    assert "gatehouse serve" in unreachable.err
    assert unreachable.out == ""
    assert "run_01jd" in unknown.err
    assert wrong.code == 1
    assert "GATEHOUSE_TOKEN" in wrong.err


@pytest.mark.requirement("OPS-2", "OPS-12")
async def test_what_cannot_be_done_in_an_empty_home_is_said_and_nothing_is_made(
    place: Place, fail_after: FailAfter
) -> None:
    stranger = replace(place, variables={"GATEHOUSE_TOKEN": "made-up"})
    nonsense = replace(place, variables={"GATEHOUSE_URL": "nonsense"})
    async with fail_after(60):
        rotated = await command(place, "token", "rotate")
        backup = await command(place, "backup", "create")
        refused = await command(stranger, "chat", "-m", "hello")
        nowhere = await command(nonsense, "chat", "-m", "hello")
        listed = await command(nonsense, "status")
    assert (rotated.code, backup.code, refused.code) == (1, 1, 1)
    assert "has no token yet" in rotated.err
    assert "There is no database" in backup.err
    assert "the token in GATEHOUSE_TOKEN is refused" in refused.err
    assert "Owner code" not in refused.err
    assert (nowhere.code, listed.code) == (2, 2)
    assert "GATEHOUSE_URL is 'nonsense', which is not the address" in nowhere.err
    assert not place.home.exists()


@pytest.mark.requirement("CTX-1")
async def test_init_makes_what_is_missing_and_force_keeps_a_backup(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        made = await command(place, "init")
        mine = place.workspace / "SOUL.md"
        mine.write_text("mine")
        kept = await command(place, "init")
        assert mine.read_text() == "mine"
        forced = await command(place, "init", "--force")
    assert "made AGENTS.md" in made.out
    assert "0 made" in kept.out
    assert "replaces SOUL.md, keeps the old one as SOUL.md.bak-1" in forced.out
    assert (place.workspace / "SOUL.md.bak-1").read_text() == "mine"
    assert mine.read_text() != "mine"


async def test_migrate_makes_the_database_and_then_has_nothing_to_do(
    place: Place, fail_after: FailAfter
) -> None:
    async with fail_after(60):
        first = await command(place, "migrate", "--json")
        second = await command(place, "migrate")
    assert json.loads(first.out)["before"] is None
    assert json.loads(first.out)["after"]
    assert "nothing to do" in second.out


@pytest.mark.requirement("OPS-5")
async def test_doctor_names_what_is_wrong_and_the_fix(place: Place, fail_after: FailAfter) -> None:
    place.configure('[http]\nhost = "0.0.0.0"\nread_only_token = "made-up-token"\n')
    place.variables["SLACK_BOT_TOKEN"] = "xoxb-test-token"
    async with fail_after(60):
        checked = await command(place, "doctor", "--json")
        people = await command(place, "doctor")
    found = {check["name"]: check for check in json.loads(checked.out)}
    assert checked.code == 1
    assert found["exposure"]["state"] == "warn"
    assert "SLACK_APP_TOKEN" in found["slack"]["fix"]
    assert found["database"]["state"] == "warn"
    assert found["workspace"]["fix"] == "Run `gatehouse init`."
    assert "chmod 600" in found["permissions"]["fix"]
    assert found["model"]["state"] == "warn"
    assert "fix: " in people.out
    assert "xoxb-test-token" not in checked.out + people.out
    assert not (place.home / "gatehouse.db").exists()


async def test_the_slack_manifest_is_printed(place: Place, fail_after: FailAfter) -> None:
    async with fail_after(60):
        printed = await command(place, "slack", "manifest")
    assert printed.code == 0, printed.err
    assert "chat:write" in printed.out


@pytest.mark.requirement("POL-1", "CTX-2")
async def test_every_bound_that_was_asked_and_every_blocks_tokens_are_printed(
    tmp_path: Path, fail_after: FailAfter
) -> None:
    place = Place(tmp_path)
    place.configure('[policy]\nallow = ["exec(ls:*)"]\ndeny = ["exec(rm:*)"]\n')
    async with fail_after(60), gateway(place) as program:
        there = reaching(place, await program.url())
        await command(there, "chat", "-m", "/plan")
        (session,) = json.loads((await command(there, "sessions", "list", "--json")).out)
        asked = ("policy", "explain", session["id"], "exec", '{"command": "rm x"}')
        explained = await command(there, *asked)
        prompt = await command(there, "context", session["id"])
    for said in (
        "deny rule",
        "exec(rm:*)",
        "plan mode runs commands that only read, and refuses rm",
        "permission mode",
    ):
        assert said in explained.out, said
    lines = [line.split() for line in prompt.out.splitlines()]
    tokens = {line[0]: int(line[1]) for line in lines if len(line) > 1 and line[1].isdecimal()}
    assert {"runtime", "AGENTS.md", "IDENTITY.md", "tools", "skills"} <= tokens.keys()
    assert all(tokens.values())
