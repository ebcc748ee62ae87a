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
        # What may stand between two words of one command.
        ("git >x push", "git push", True),
        ("git 2>&1 push", "git push", True),
        ("git <f -C x >>'y z' push", "git push", True),
        ("git {a}>&- push", "git push", True),
        ("git -C 'a b' push", "git push", True),
        ('git --git-dir "a b c" push', "git push", True),
        ("git -C a\\ b\\ c push", "git push", True),
        ("ls # it's\ngit -C 'a b c' push", "git push", True),
        ("git $(echo push)", "git push", True),
        ("git `echo push`", "git push", True),
        ("git $(echo $(echo push)) x", "git push", True),
        ("A='b c' $X y", "rm", True),
        ("$(which rm) y", "rm", True),
        ("$(x) y", "rm", True),
        ("@(r|s)m y", "rm", True),
        ("alias a=/bin/rm; a x", "rm", True),
        ("git -c alias.p=push p", "git push", True),
        # Everyday commands that nothing of this may mean.
        ("git log --grep=push", "git push", False),
        ("git log 2>/dev/null | head", "git push", False),
        ("git log > push", "git push", False),
        ("git commit -m 'push it'", "git push", False),
        ("echo $(date) > rm.txt", "rm", False),
        ("x=$(date); ls", "rm", False),
        ("(cd sub && make) 2>&1 | tail", "rm", False),
        ("for f in $(ls); do wc -l $f; done", "rm", False),
        ("if [ $(wc -l < f) -gt 2 ]; then ls; fi", "rm", False),
        ("git log -S 'a b' --oneline", "git push", False),
        ("make CFLAGS='-O2 -g' test", "rm", False),
    ],
)
def test_whether_any_part_may_begin_with_the_words(command: str, wanted: str, may: bool) -> None:
    assert may_run(command, wanted.split()) is may
