"""Whether a command may run a program, for rules that deny or ask: doubt means yes (POL-3)."""

import pytest

from runtime.policy.shell_words import may_run

pytestmark = pytest.mark.requirement("POL-3")


@pytest.mark.parametrize(
    ("command", "wanted", "may"),
    [
        ("ls", "", True),
        ("", "rm", False),
        ("ls rm", "rm", True),
        ("/bin/rm x", "rm", True),
        ("rmdir x", "rm", False),
        ("ls;rm x", "rm", True),
        ('"r"m x', "rm", True),
        ("r\\\nm x", "rm", True),
        ("git status", "git push", False),
        ("git -C x push", "git push", True),
        ("git -C push", "git push", True),
        ("git --a b -c d push", "git push", True),
        ("git x push", "git push", False),
        ("git push -f x", "git push x", True),
        ("git push a x", "git push x", False),
        ("git $X", "git push", True),
        ("$X y", "rm", True),
        ("A=1 B=2 sudo $X y", "rm", True),
        ("ls $X y", "rm", False),
        ("$X status", "git push", False),
        ("$X -f push", "git push", True),
        ("$X push", "git push", True),
        ("{a,b} x", "rm", True),
        ("[r]m x", "rm", True),
        ("git " + "-a " * 70, "git push", True),
        ("git " + "-a b " * 10, "git push", False),
        ("rm a " * 500, "rm x", False),
        ("rm a " * 501, "rm x", True),
    ],
)
def test_whether_any_part_may_begin_with_the_words(command: str, wanted: str, may: bool) -> None:
    assert may_run(command, wanted.split()) is may
