"""What people have an agent run on an ordinary day, one script each; none may fail."""

from typing import Final

BUILD: Final = r"""
hello: hello.c
	cc -O1 -o hello hello.c
check: hello
	./hello | grep -q "hello, world"
clean:
	rm -f hello
"""
HELLO: Final = r"""#include <stdio.h>
int main(void) { printf("hello, world\n"); return 0; }
"""
TESTS: Final = """import unittest
class Sums(unittest.TestCase):
    def test_one(self):
        self.assertEqual(1 + 1, 2)
if __name__ == "__main__":
    unittest.main()
"""

GIT: Final = (
    "git init -q -b main project && cd project && git config user.email a@b.c && "
    "git config user.name A && git status",
    "cd project && echo one > a.txt && git add a.txt && git commit -qm First",
    "cd project && git log --oneline | grep First",
    "cd project && git branch side && git branch --list | grep side",
    "cd project && git checkout -q side && echo two >> a.txt && git commit -qam Second",
    "cd project && git diff main side | grep '^+two'",
    "cd project && git checkout -q main && git merge -q side && grep two a.txt",
    "cd project && echo three >> a.txt && git stash -q && git stash pop -q && grep three a.txt",
    "cd project && git blame a.txt | head -n 1",
    "cd project && git commit -qam Third && git rebase -q side",
    "cd project && git tag v1 && git describe --tags",
    "cd project && git show HEAD:a.txt",
    "cd project && git mv a.txt b.txt && git commit -qm Moved && git log --follow --oneline b.txt",
    "cd project && git reset -q --hard HEAD~1 && test -f a.txt",
    "cd project && git cherry-pick ORIG_HEAD && test -f b.txt",
    "cd project && git worktree add -q ../tree side && ls ../tree && git worktree remove ../tree",
    "cd project && git grep -n one",
    "cd project && git archive HEAD | tar -t",
    "git clone -q project copy && cd copy && git pull -q && git log -1",
    "cd project && git gc -q && git fsck",
    "cd project && git clean -fdxq && git ls-files",
    "cd project && git format-patch -1 --stdout | git apply --stat",
)
FILES: Final = (
    "ls",
    "ls -la . | grep hundred",
    "pwd | grep files$",
    "touch a",
    "mkdir b && rmdir b",
    "mkdir -p deep/er/est && rm -r deep",
    "echo hi > out.txt && cat out.txt",
    "echo more >> out.txt && wc -l out.txt | grep 2",
    "cp out.txt copied.txt && cmp out.txt copied.txt",
    "cp -r cases copied && rm -rf copied",
    "mv copied.txt moved.txt && test ! -e copied.txt",
    "mkdir here && mv moved.txt here/ && mv here/moved.txt . && rmdir here",
    "ln -s out.txt link && readlink link && cat link",
    "ln out.txt hard && test hard -ef out.txt && rm hard",
    "chmod 755 out.txt && test -x out.txt && chmod u-x,g=r out.txt",
    "rm link moved.txt",
    "touch -d '2 days ago' old && find . -maxdepth 1 -name old -mtime +1 | grep old",
    "stat -c %s out.txt",
    "head -c 100000 /dev/urandom > random && split -b 40000 random part. && ls part.*",
    "cat part.* | cmp - random && rm part.* random",
    "truncate -s 1M sparse && du -k sparse && rm sparse",
    "dd if=/dev/zero of=zeros bs=1k count=10 2>/dev/null && rm zeros",
    "install -m 644 out.txt installed && rm installed",
    "tmp=$(mktemp) && echo x > $tmp && rm $tmp",
    "d=$(mktemp -d) && touch $d/f && rm -r $d",
    "tmp=$(mktemp -p .) && rm $tmp",
    "df . && df -h .",
    "basename $PWD && dirname $PWD && realpath .",
    "mkfifo pipe && (echo through > pipe & cat pipe) && rm pipe",
    "cat ../AGENTS.md | head -n 1",
    "ls ../skills ../memory",
)
TEXT: Final = (
    "printf 'b\\na\\nc\\n' > list && sort list | head -n 1 | grep a",
    "sed -i s/a/z/ list && grep z list",
    "sed -n 2p list",
    "awk '{ n += 1 } END { print n }' list | grep 3",
    "tr a-z A-Z < list | grep Z",
    "cut -c1 list | paste -sd, -",
    "sort list | uniq -c | sort -rn > counted && cat counted",
    "grep -rn hello . || true",
    "find . -name '*.sh' | xargs wc -l | tail -n 1",
    "find . -name 'case-*.sh' -exec head -n 1 {} + > /dev/null",
    "printf 'x\\ny\\n' | xargs -n 1 -P 2 echo",
    "diff list list && ! diff list counted > changes && test -s changes",
    "patch -R --dry-run < /dev/null || true",
    "tee copy.txt < list | cat -n",
    "comm -12 <(sort list) <(sort list)",
    "seq 1 1000 | shuf | sort -n | tail -n 1 | grep 1000",
    "base64 list | base64 -d | cmp - list",
    "md5sum list > sums && md5sum -c sums && sha256sum list",
    "fold -w 10 list && nl list && rev list && tac list",
    "date +%Y && cal 2>/dev/null || true",
    "iconv -f utf-8 -t utf-16 list | iconv -f utf-16 -t utf-8 | cmp - list",
    "od -c list | head -n 1 && strings list || true",
    "cat <<'END' > here.txt\n$HOME stays\nEND\ngrep '^.HOME stays' here.txt",
    "join list list || true; expr 1 + 1 | grep 2",
    "printf '%s\\n' {1..5} | wc -l | grep 5",
)
PACKED: Final = (
    "tar -cf all.tar cases && tar -tf all.tar | head -n 1 && rm all.tar",
    "tar -czf all.tgz cases && mkdir un && tar -xzf all.tgz -C un && diff -r cases un/cases",
    "rm -r un all.tgz",
    "gzip -k list && gzip -t list.gz && zcat list.gz && rm list.gz",
    "bzip2 -k list && bunzip2 -c list.bz2 && rm list.bz2 || true",
    "xz -k list && xz -dc list.xz && rm list.xz || true",
)
SHELL: Final = (
    "for i in 1 2 3; do echo $i; done | tail -n 1 | grep 3",
    "f() { echo in $1; }; f here",
    "(sleep 0.1; echo late) & wait && echo done",
    "sleep 0.1 & kill $! && ! wait $!",
    "set -o pipefail; ! (false | true)",
    "trap 'echo bye' EXIT; echo hi",
    "test -w . && test -r /etc/passwd && ! touch /usr/new /etc/new ../new",
    "env | grep ^PATH= && ! env | grep -i gatehouse_h",
    "timeout 5 echo fine && nice echo fine && nohup echo fine",
    "id && whoami || true; uname -s && nproc",
    "ps -o pid= -p $$ || true",
    "echo $((6 * 7)) | grep 42 && printf %05d 42",
    "cat /proc/self/status | head -n 1 && cat /dev/null",
    "ulimit -n && umask",
    "exec 3> third && echo x >&3 && exec 3>&- && cat third",
    "which sh && command -v ls && type cd",
    "sh -c 'exit 3' || test $? = 3",
    "yes | head -n 1000 | wc -l | grep 1000",
)
PYTHON: Final = (
    "python3 -c 'print(6 * 7)'",
    f"cat > test_sums.py <<'END'\n{TESTS}END\npython3 -m unittest -q test_sums",
    "python3 -m venv --without-pip env && env/bin/python -c 'import sys; print(sys.prefix)'",
    "echo 'print(\"module\")' > mod.py && python3 -m mod && ls __pycache__ || true",
    "python3 -m compileall -q . && python3 -m json.tool <<< '{}'",
    'python3 -c \'import sqlite3; d = sqlite3.connect("d.db"); d.execute("create table t (a)"); '
    'd.execute("insert into t values (1)"); d.commit()\' && test -s d.db',
    'python3 -c \'import sqlite3; d = sqlite3.connect("d.db"); '
    'd.execute("pragma journal_mode=wal"); d.execute("delete from t"); d.commit()\'',
    'python3 -c \'import mmap; f = open("m", "w+b"); f.write(bytes(4096)); f.flush(); '
    'm = mmap.mmap(f.fileno(), 0); m[0:1] = b"x"; m.flush()\' && head -c 1 m | grep x',
    'python3 -c \'import fcntl; f = open("l", "w"); fcntl.flock(f, fcntl.LOCK_EX); '
    "fcntl.lockf(f, fcntl.LOCK_UN)'",
    "python3 -c 'import tempfile; f = tempfile.NamedTemporaryFile(); f.write(b\"x\")'",
    "python3 -c 'import tempfile; d = tempfile.TemporaryDirectory(); d.cleanup()'",
    'python3 -c \'import shutil; shutil.copytree("cases", "again"); shutil.rmtree("again")\'',
    "python3 -c 'import subprocess; subprocess.run([\"ls\"], check=True)'",
    "python3 -c 'import threading; t = threading.Thread(target=print); t.start(); t.join()'",
    "python3 -c 'import os; p = os.fork(); os._exit(0) if p == 0 else os.waitpid(p, 0)'",
    "! python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 9), 2)' 2>/dev/null",
    'python3 -c \'import os; os.rename("m", "n"); os.replace("n", "m"); os.unlink("m")\'',
    'python3 -c \'import pathlib; assert any(pathlib.Path(".").rglob("*.py"))\'',
)
BUILDS: Final = (
    f"cat > hello.c <<'END'\n{HELLO}END\ncat > Makefile <<'END'{BUILD}END\nmake hello",
    "make check",
    "make clean && make -j2 hello && ./hello",
    "cc -c hello.c -o hello.o && ar rc libhello.a hello.o && ls -l libhello.a",
)
ALL: Final = (*FILES, *TEXT, *PACKED, *SHELL, *GIT, *PYTHON, *BUILDS)
"""In this order: some go on with what others made."""
EACH_KIND: Final = (*FILES, TEXT[0], *PACKED, *GIT[:8], *PYTHON[:6], *BUILDS)
"""Fewer of them, in the same order."""
DRIVER: Final = """for one in cases/case-$1*.sh; do
  if said=$(bash -e $one 2>&1 < /dev/null); then echo "ok $one"
  else echo "BAD $one: $(tail -n +1 $one) => $said"; fi
done
"""
