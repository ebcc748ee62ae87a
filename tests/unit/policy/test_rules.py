"""Rules as the operator writes them: what they surely cover, and what they may concern (POL-3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.domain.errors import InvalidInput
from runtime.domain.grants import Grant, GrantKind
from runtime.policy.rules import Rule

GIT_STATUS = Rule.parse("exec(git status:*)")
NO_RM = Rule.parse("exec(rm:*)")
NO_PUSH = Rule.parse("exec(git push:*)")


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize(
    "command",
    ["git status", "git status --short", "  git   status -uno src/a.py", "git status -- notes"],
)
def test_a_prefix_rule_covers_plain_words_that_begin_so(command: str) -> None:
    assert GIT_STATUS.allows("exec", command)


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize(
    "command",
    [
        "git status; rm -rf /",
        "git status && x",
        "git status || x",
        "git status & x",
        "git status | sh",
        "git status > f",
        "git status >> ~/.bashrc",
        "git status < f",
        "git status $(rm f)",
        "git status `rm f`",
        "git status $HOME",
        "git status\nrm f",
        "git status\r\nrm f",
        "git status \\\n rm",
        "git status 'a",
        'git status "$(rm f)"',
        "git status {a,b}",
        "git status *",
        "git status !!",
        "git status # x",
        "git 'status'",
        "g\\it status",
        "GIT_PAGER=rm git status",
        "env git status",
        "git -C . status",
        "git statusx",
        "git",
        "xgit status",
        "./git status",
        "",
        "(git status)",
        "git\u00a0status",
    ],
)
def test_a_prefix_rule_covers_nothing_that_a_shell_would_read_otherwise(command: str) -> None:
    assert not GIT_STATUS.allows("exec", command)


@pytest.mark.requirement("POL-3")
def test_the_prefix_ends_at_a_word() -> None:
    assert not Rule.parse("exec(git st:*)").allows("exec", "git status")
    assert not Rule.parse("exec(ls:*)").allows("exec", "lsof")


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize(
    "command",
    [
        "rm f",
        "rm",
        "sudo rm -rf /",
        "a; rm -rf x",
        "a && rm x",
        "a | xargs rm",
        "a\nrm x",
        "\\rm f",
        '"rm" x',
        "'rm' x",
        'r"m" x',
        "r''m x",
        "r\\m x",
        "r\\\nm x",
        "$'rm' x",
        "$(rm x)",
        "`rm x`",
        '"$(rm x)"',
        "echo ok >f;rm x",
        "rm>log x",
        "rm<list",
        "rm${IFS}x",
        "rm$IFS-rf",
        "{rm,-rf,x}",
        "/bin/rm x",
        "../../bin/rm x",
        "FOO=1 rm x",
        "env -i rm x",
        "sh -c 'rm x'",
        "(rm x)",
        "if true; then rm x; fi",
        "/bin/r? x",
        "r* x",
        "r$@m x",
        "$TOOL x",
        "X=rm; $X f",
        "echo x |${Y} f",
        "!rm x",
        "nice -n 5 rm x",
    ],
)
def test_a_deny_rule_concerns_a_command_in_whatever_dress(command: str) -> None:
    assert NO_RM.touches("exec", command)


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git  push origin",
        "git -C /tmp push",
        "git -c a=b --no-pager push -f",
        "git 'push'",
        "git $VERB origin",
        "cd x && git push",
    ],
)
def test_a_deny_rule_of_two_words_sees_past_options(command: str) -> None:
    assert NO_PUSH.touches("exec", command)


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "ls *",
        "ls src/*.py",
        "grep -r arm .",
        "echo $HOME",
        "cat form rmdir.txt",
        "sed s/a/b/",
    ],
)
def test_a_deny_rule_leaves_other_commands_alone(command: str) -> None:
    assert not NO_RM.touches("exec", command)


@pytest.mark.requirement("POL-3")
def test_a_deny_rule_of_two_words_leaves_other_verbs_alone() -> None:
    assert not NO_PUSH.touches("exec", 'git commit -m "push it"')
    assert not NO_PUSH.touches("exec", "git status")


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize(
    ("pattern", "subject", "covered"),
    [
        ("write_file(notes/**)", "notes/a.md", True),
        ("write_file(notes/**)", "notes/deep/er/a.md", True),
        ("write_file(notes/**)", "notes", False),
        ("write_file(notes/**)", "notesx/a.md", False),
        ("write_file(notes/**)", "other/notes/a.md", False),
        ("write_file(notes/**)", "notes/../AGENTS.md", False),
        ("write_file(notes/**)", "notes/..", False),
        ("write_file(notes/*)", "notes/deep/a.md", False),
        ("write_file(**/*.md)", "a.md", True),
        ("write_file(**/*.md)", "x/y/a.md", True),
        ("write_file(a?.md)", "ab.md", True),
        ("write_file(a?.md)", "a/.md", False),
        ("write_file(a.md)", "axmd", False),
        ("write_file", "anything", True),
        ("write_*(x)", "x", True),
    ],
)
def test_a_path_pattern_covers_what_it_names(pattern: str, subject: str, covered: bool) -> None:
    assert Rule.parse(pattern).allows("write_file", subject) is covered


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize(
    "subject", ["secrets/a", "secrets/a\nb", "secrets/\n", "open/../secrets/a", "secrets/x/../y"]
)
def test_a_denied_folder_is_not_entered_by_odd_names(subject: str) -> None:
    assert Rule.parse("write_file(secrets/**)").touches("write_file", subject)


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize("above", [".", "work"])
def test_a_search_from_above_concerns_the_denied_folder(above: str) -> None:
    assert Rule.parse("grep(work/secrets/**)").touches("grep", above)
    assert not Rule.parse("grep(work/secrets/**)").touches("grep", "notes")


@pytest.mark.requirement("POL-3")
def test_tool_names_may_be_wild_and_stop_where_the_pattern_says() -> None:
    rule = Rule.parse("mcp__github__*")
    assert rule.allows("mcp__github__create_issue", "")
    assert rule.touches("mcp__github__create_issue", "anything")
    assert not rule.touches("mcp__gitlab__create_issue", "")


@pytest.mark.requirement("POL-3")
@pytest.mark.parametrize("text", ["", "exec(", "exec)", "exec (ls)", "exec(ls) x", "(ls)", "a b"])
def test_what_is_no_pattern_is_named_in_the_error(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Rule.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.requirement("APR-3", "APR-9")
@given(st.sampled_from(GrantKind), st.text(max_size=60), st.text(max_size=60))
def test_a_session_grant_covers_its_own_key_and_no_other(
    kind: GrantKind, key: str, other: str
) -> None:
    grant = Grant(tool="exec", kind=kind, key=key, text="")
    by_action = kind is GrantKind.ACTION
    mine = {"action": key, "subject": other} if by_action else {"action": other, "subject": key}
    theirs = {"action": other, "subject": key} if by_action else {"action": key, "subject": other}
    assert grant.covers("exec", **mine) is bool(key)
    assert grant.covers("exec", **theirs) is (bool(key) and key == other)
    assert not grant.covers("write_file", **mine)


@pytest.mark.requirement("POL-3")
@given(st.text(alphabet="git status;&|<>$`(){}\\\"'\n*? -xrm", max_size=40))
def test_what_a_prefix_rule_covers_is_one_command_of_plain_words(command: str) -> None:
    if GIT_STATUS.allows("exec", command):
        assert command.split()[:2] == ["git", "status"]
        assert not set(command) & set(";&|<>$`(){}\\\"'\n*?")


@pytest.mark.requirement("POL-3")
@given(
    st.sampled_from(["exec(git status:*)", "exec(ls)", "write_file(a/**)", "exec", "*(=x)"]),
    st.text(alphabet="git status;ls a/b\n$x=", max_size=30),
)
def test_what_a_rule_covers_it_also_concerns(pattern: str, subject: str) -> None:
    rule = Rule.parse(pattern)
    for tool in ("exec", "write_file"):
        if rule.allows(tool, subject):
            assert rule.touches(tool, subject)
