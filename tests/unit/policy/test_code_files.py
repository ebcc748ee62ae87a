"""Which files a command runs as code, and where that cannot be said (APR-9)."""

import pytest

from runtime.policy.code_files import code_files
from runtime.policy.code_programs import makefiles

pytestmark = pytest.mark.requirement("APR-9", "POL-9")
MAKEFILES = set(code_files("make").paths)
UV = {"pyproject.toml", "uv.toml", "uv.lock", ".python-version", "setup.py", "setup.cfg"}
SHOWN = {"x.sh", "echo/x.sh", "a/x.sh", "sh/x.sh", "x.sh/x.sh"}
ONCE = {
    *(". env.sh", "source ./env.sh && ls", "python -W error x.py"),
    *("make -C sub --file=o.mk", "env CI=1 make", "make | tee"),
    *("make -Cdocs html", "make -sCdocs", "make --dir=docs", "make -j2 -fbuild.mk"),
    *("make -kf build.mk", "make SHELL=./x.sh -f a.mk", "node build", "sh -ec 'sh x.sh' y"),
    *("python3 -Wd x.py", "bash --norc x.sh", "sh /tmp/run.sh"),
    *("cd a && cd ../b; ./r", "cd nope; ./r", "cd o | true; ./r", "cd a && false || ./r"),
    *("nice -n 5 make", "time -p sh run.sh", "env -i sh run.sh", "env -C a sh run.sh"),
    *("env --chdir=a sh run.sh", "sudo -u x make", "timeout -k 1 5 make", "sh < run.sh"),
    *("nice python3 -q < x.py", "mytool x.sh -y.py"),
    *("ant -j1 --fast -Dx=off -f y a/b z.xml w.mk --a=b/c -lq", "node", "ninja -Csub", "make -f"),
    *("bash -Cc make", "bash -Ceo pipefail run.sh", "bash -m run.sh", "uv sync"),
    *("uv run nice x.sh", "uv --directory a run sh x.sh", "cd $(echo a) && sh x.sh"),
    *(
        "time cd $(echo a) && sh x.sh",
        "git checkout a/b.sh",
        "xargs 'two words.sh' a.sh",
        "python -m my.tool.x a.py",
    ),
    *("cd a\n./r", "sh /proc/self/cwd/run.sh", "cd /proc/self/cwd && ./r"),
}
"""Commands whose files are named, and that may run more than these."""


def test_make_makes_its_makefile_from_other_files() -> None:
    assert {"GNUmakefile", "makefile", "Makefile"} <= MAKEFILES
    assert {"Makefile.sh", "makefile.sh", "GNUmakefile.sh", "Makefile,v"} <= MAKEFILES
    assert {"RCS/Makefile,v", "RCS/makefile", "SCCS/s.Makefile", "s.GNUmakefile"} <= MAKEFILES


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("sh run.sh", {"run.sh"}),
        ("bash -eu 'my run.sh' a b", {"my run.sh"}),
        ("./run.sh --fast", {"run.sh"}),
        ("tools/run", {"tools/run"}),
        (". env.sh", {"env.sh"}),
        ("source ./env.sh && ls", {"env.sh"}),
        ("python3 -u x.py", {"x.py"}),
        ("python -W error x.py", {"x.py"}),
        ("node a/b.js", {"a/b.js"}),
        ("make test", MAKEFILES),
        ("make -f other.mk", set(makefiles("other.mk"))),
        ("make -C sub --file=o.mk", {f"sub/{name}" for name in makefiles("o.mk")}),
        ("cd sub && make", {f"sub/{name}" for name in MAKEFILES}),
        ("cd a && cd b && ./r", {"a/b/r"}),
        ("cd a && cd ../b && ./r", {"b/r", "a/../b/r"}),
        ("cd a && cd ../b; ./r", {"b/r", "a/../b/r", "a/r", "r"}),
        ("cd nope; ./r", {"nope/r", "r"}),
        ("cd o | true; ./r", {"o/r", "r"}),
        ("cd a && false || ./r", {"a/r", "r"}),
        ("cd a\n./r", {"a/r", "r"}),
        ("sh link/../run.sh", {"link/../run.sh", "run.sh"}),
        ("cd d && sh ../run.sh", {"d/../run.sh", "run.sh"}),
        ("cd a && sh -c 'cd ../b && ./r'", {"a/../b/r", "b/r"}),
        ("sh /proc/self/cwd/run.sh", {"/proc/self/cwd/run.sh"}),
        ("cd /proc/self/cwd && ./r", {"/proc/self/cwd/r"}),
        ("sh /tmp/run.sh", {"/tmp/run.sh"}),
        ("sh ./a//run.sh", {"a/run.sh"}),
        ("sh -c 'make test'", MAKEFILES),
        ("timeout 60 make", MAKEFILES),
        ("env CI=1 make", MAKEFILES),
        ("/usr/bin/make", MAKEFILES),
        ("make | tee", MAKEFILES),
        ("go run x.go", {"go.mod", "go.work", "x.go"}),
        ("make -Cdocs html", {f"docs/{name}" for name in MAKEFILES}),
        ("make -sCdocs", {f"docs/{name}" for name in MAKEFILES}),
        ("make --dir=docs", {f"docs/{name}" for name in MAKEFILES}),
        ("make -j2 -fbuild.mk", set(makefiles("build.mk"))),
        ("make -kf build.mk", set(makefiles("build.mk"))),
        ("make SHELL=./x.sh -f a.mk", {"x.sh", *makefiles("a.mk")}),
        ("make -f sub/a.mk", set(makefiles("sub/a.mk"))),
        (
            "node build",
            {
                "build",
                "build.js",
                "build.json",
                "build.node",
                "build/package.json",
                "build/index.js",
                "build/index.json",
                "build/index.node",
            },
        ),
        ("sh -ec 'sh x.sh' y", {"x.sh", "y/x.sh"}),
        ("python3 -Wd x.py", {"x.py"}),
        ("bash --norc x.sh", {"x.sh"}),
        ("//usr/bin/make", MAKEFILES),
        ("/usr//bin/dash run.sh", {"run.sh"}),
        ("/usr/bin/../bin/dash a.sh", {"/usr/bin/../bin/dash", "/usr/bin/dash", "a.sh"}),
        (
            ".venv/bin/python x.py --fast",
            {".venv/bin/python", "x.py"}
            | {".venv/bin/pyvenv.cfg", ".venv/bin/../pyvenv.cfg", ".venv/pyvenv.cfg"},
        ),
        ("bin/make", {"bin/make"} | MAKEFILES),
        ("bin/time sh run.sh", {"bin/time", "run.sh"}),
        ("nice -n 5 make", MAKEFILES),
        ("time -p sh run.sh", {"run.sh"}),
        ("env -i sh run.sh", {"run.sh"}),
        ("env -C a sh run.sh", {"run.sh", "a/run.sh"}),
        ("env --chdir=a sh run.sh", {"run.sh", "a/run.sh"}),
        ("sudo -u x make", MAKEFILES),
        ("timeout -k 1 5 make", MAKEFILES),
        ("sh < run.sh", {"run.sh"}),
        ("nice python3 -q < x.py", {"x.py"}),
        ("mytool x.sh -y.py", {"x.sh"}),
        ("./tool x.sh", {"tool", "x.sh"}),
        ("sh run.sh real.sh one", {"run.sh", "real.sh"}),
        ("git add -A", set()),
        ("git checkout a/b.sh", set()),
        ("bash -Cc make", MAKEFILES),
        ("bash -Ceo pipefail run.sh", {"run.sh"}),
        ("bash -m run.sh", {"run.sh"}),
        ("python3 +x.py", {"+x.py"}),
        ("uv sync", UV),
        ("uv run nice x.sh", {"x.sh"} | UV),
        ("uv --directory a run sh x.sh", {"x.sh", "a/x.sh"} | UV | {f"a/{name}" for name in UV}),
        ("cd $(echo a) && sh x.sh", SHOWN),
        ("time cd $(echo a) && sh x.sh", SHOWN),
        ("node", set()),
        ("sh run.sh < x.sh", {"run.sh"}),
        ("make -f", MAKEFILES),
        ("make -C a -C b", {f"a/b/{name}" for name in MAKEFILES}),
        ("ninja -Csub", {"build.ninja", "sub"}),
        (
            "ant -j1 --fast -Dx=off -f y a/b z.xml w.mk --a=b/c -lq",
            {"y", "build.xml", "a/b", "w.mk", "b/c", "q", "a/b/build.xml"},
        ),
        ("node a.cjs", {"a.cjs"}),
        ("node a.mjs", {"a.mjs"}),
        ("python3 tool", {"tool", "tool/__main__.py"}),
        ("ruby a", {"a", "a.rb"}),
        ("ruby a.rb", {"a.rb"}),
        ("perl a", {"a", "a.pm"}),
        ("perl a.pl", {"a.pl"}),
        ("perl a.pm", {"a.pm"}),
        ("xargs 'two words.sh' a.sh", {"a.sh", "words.sh"}),
        (
            "python -m my.tool.x a.py",
            {"my/tool/x.py", "my/tool/x/__main__.py", "a.py"}
            | {"my/__init__.py", "my/tool/__init__.py", "my/tool/x/__init__.py"},
        ),
    ],
)
def test_the_files_are_named(command: str, files: set[str]) -> None:
    found = code_files(command)
    assert set(found.paths) == files
    assert found.known is (command not in ONCE)


@pytest.mark.parametrize(
    ("command", "among"),
    [
        ("npm test", {"package.json", ".npmrc", "node_modules/.bin/sh"}),
        ("pytest -q", {"__init__.py", "tests/__init__.py", "test/__init__.py"}),
        ("pytest t/test_a.py", {"t/__init__.py", "t/conftest.py"}),
        ("npx jest", {".npmrc", "package.json"}),
        ("corepack yarn x", {".yarnrc.yml"}),
        ("uvx tool", {"uv.toml"}),
        ("direnv exec . make", {".envrc", "Makefile"}),
        ("python -m build", {"setup.py", "pyproject.toml"}),
        ("make", {"Makefile.ym"}),
        ("pytest -q tests/unit/test_a.py::test_b", {"conftest.py", "pyproject.toml",
         "tests/conftest.py", "tests/unit/conftest.py", "tests/unit/test_a.py"}),
        ("python -m pytest", {"pytest.py", "pytest/__main__.py", "conftest.py"}),
        ("python -m my.tool", {"my/tool.py", "my/tool/__main__.py", "my/__init__.py"}),
        ("cargo build", {"Cargo.toml", "build.rs", ".cargo/config.toml"}),
        ("./gradlew build", {"gradlew", "build.gradle", "gradle/wrapper/gradle-wrapper.jar"}),
        ("uv run pytest", {"pyproject.toml", "conftest.py"}),
        ("pytest sub/test_a.py", {"sub/pytest.ini", "sub/conftest.py", "sub/pyproject.toml"}),
        ("pytest /w/sub/test_a.py", {"/w/sub/conftest.py", "/w/conftest.py", "/w/tox.ini"}),
        ("sub/gradlew test", {"sub/gradlew", "sub/gradle/wrapper/gradle-wrapper.jar"}),
        ("docker compose up", {"compose.yaml", "Dockerfile"}),
        ("npm start", {"server.js", "package.json", "package-lock.json", "binding.gyp"}),
        ("yarn test", {".pnp.cjs", ".env.yarn", ".yarnrc.yml"}),
        ("tox", {"toxfile.py", "tox.toml", "tox.ini"}),
        ("invoke build", {"tasks.py", "tasks/__init__.py", "invoke.py"}),
        ("gradle test", {"buildSrc/build.gradle", "buildSrc/build.gradle.kts"}),
        ("bundle exec rake", {"Gemfile", "gems.rb", ".bundle/config"}),
        ("Rscript a.R", {"a.R", ".Rprofile", ".Renviron"}),
        ("R -f a.R", {".Rprofile"}),
        ("scons", {"SConstruct", "site_scons/site_init.py"}),
    ],
)  # fmt: skip
def test_entry_files_of_programs_are_known(command: str, among: set[str]) -> None:
    found = code_files(command)
    assert among <= set(found.paths)
    unknown = ("python -m", "uv", "docker", "invoke", "bundle", "R", "scons", "npx")
    unknown += ("corepack", "direnv")
    assert found.known is not command.startswith(unknown)


def test_what_runs_for_one_word_alone_is_no_part_of_other_commands() -> None:
    assert "server.js" not in code_files("npm test").paths
    assert "server.js" in code_files("npm run start").paths


def test_a_program_in_a_folder_of_its_own_reads_what_its_name_says() -> None:
    assert {".venv/bin/pytest", "conftest.py", "tests/conftest.py"} <= set(
        code_files(".venv/bin/pytest tests").paths
    )
    assert code_files(".venv/bin/pytest tests").scripts == (".venv/bin/pytest",)
    assert code_files(".venv/bin/python x.py").scripts == (".venv/bin/python", "x.py")
    assert not code_files(".venv/bin/pytest -p plugin").known
    assert code_files("git bisect run sh run.sh").scripts == ()
    assert code_files("xargs sh run.sh").scripts == ()


def test_makefiles_are_made_from_files_beside_them() -> None:
    assert {"a.mk.sh", "a.mk,v", "RCS/a.mk,v"} <= set(code_files("make -f a.mk").paths)
    assert {"sub/a.mk.sh", "sub/RCS/a.mk,v"} <= set(code_files("make -f sub/a.mk").paths)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("npm test notes.js", "notes.js"),
        ("cargo run x.py", "x.py"),
        ("pytest -k @args.txt", "args.txt"),
        ("pytest sub/test_a.py -k @args.txt", "sub/test_a.py"),
        ("rake -fx", "x"),
        ("rake -rnotes/evil", "notes/evil"),
        ("just -fx", "x"),
        ("scons -C sub", "sub/SConstruct"),
        ("cmake -S sub", "sub/CMakeLists.txt"),
        ("npm run --script-shell=notes/evil", "notes/evil"),
        ("uv run pytest -pevil", "evil"),
        ("python -m pytest -pevil", "evil"),
        ("invoke -c evil", "evil"),
        ("pytest", "tests/conftest.py"),
        ("uv run app.py", "app.py"),
        ("pdm run app.py", "app.py"),
        ("hatch run test", "hatch.toml"),
        ("poetry run pytest", "poetry.toml"),
        ("uv run pytest", ".python-version"),
        ("uv --directory sub run pytest", "sub/conftest.py"),
        ("uv --directory sub run pytest", "sub/uv.toml"),
        ("cd build && cmake ..", "CMakeLists.txt"),
        ("cmake src", "src/CMakeLists.txt"),
        ("cmake --build build", "build/Makefile"),
        ("cmake --build build", "build/build.ninja"),
        ("cmake -P build.cmake", "build.cmake"),
        ("meson compile -C build", "build/build.ninja"),
        ("meson setup sub", "sub/meson.build"),
        ("node --run test", "package.json"),
        ("node --require=./setup.js app.js", "setup.js"),
        ("node -r ./setup app.js", "setup.js"),
        ("node --import=./setup.js", "setup.js"),
        ("ruby -r./setup app.rb", "setup.rb"),
        ("perl -MSome::Module x.pl", "Some/Module.pm"),
        ("python3 -m coverage run app.py", "app.py"),
        ("bundle exec rake test", "Rakefile"),
        ("bundle exec rake test", "Gemfile"),
        ("xargs make", "Makefile"),
        ("xargs -C a make", "a/Makefile"),
        ("sudo A=1 -n make", "Makefile"),
        ("env nice make", "Makefile"),
        ("timeout nice make", "Makefile"),
        ("setsid make", "Makefile"),
        ("xargs -n 1 sh run.sh", "run.sh"),
        ("eval 'sh run.sh'", "run.sh"),
        ("watch 'cd a && make'", "a/Makefile"),
        ("docker compose up", "docker-compose.override.yaml"),
        ("docker compose up", ".env"),
        ("docker build img", "img/Dockerfile"),
        ("docker build -t name img", "img/Dockerfile"),
        ("pip install ..", "../setup.py"),
        ("pip install a/b", "a/b/setup.py"),
        ("npm test --workspace=a=b", "a=b/package.json"),
        ("py.test sub/test_a.py", "sub/conftest.py"),
        ("nice time make", "Makefile"),
        ("nice A=1 nice make", "Makefile"),
        ("rake -C sub", "sub/Rakefile"),
        ("npm exec -c make", "Makefile"),
        ("sh +e run", "run"),
        ("bash -c 'time A=/x make -f notes.txt'", "notes.txt"),
        ("bash -euo pipefail -c 'make test'", "Makefile"),
        ("bash -ceu 'make test'", "Makefile"),
        ("bash -c -e make", "Makefile"),
        ("python3 -mfoo", "foo.py"),
        ("python3 -um foo", "foo.py"),
        ("python3 -mpytest", "conftest.py"),
        ("mvn -s settings.xml test", "pom.xml"),
        ("gradle -I init.gradle test", "build.gradle"),
        ("pytest -c pytest.ini", "conftest.py"),
        ("cargo build --manifest-path k/Cargo.toml", "k/build.rs"),
        ("cargo build --manifest-path k/Cargo.toml", ".cargo/config.toml"),
        ("git bisect run sh notes/x.txt", "notes/x.txt"),
        ("git bisect run ./t.sh", "t.sh"),
        ("git -c core.fsmonitor=make status", "Makefile"),
        ("git submodule foreach make", "Makefile"),
        ("git fetch --upload-pack=make .", "Makefile"),
        ("git rebase -x 'make test' main", "Makefile"),
        ("git difftool -y -x sh HEAD -- notes/x.txt", "notes/x.txt"),
        ("npm exec --call make", "Makefile"),
        ("pnpm exec make", "Makefile"),
        ("pnpm exec sh notes", "notes"),
        ("yarn node notes", "notes"),
        ("composer exec make", "Makefile"),
        ("meson devenv make", "Makefile"),
        ("mix run notes.txt", "notes.txt"),
        ("R -q -f notes.txt", "notes.txt"),
        ("R CMD BATCH notes.txt", "notes.txt"),
        ("mvn test", ".mvn/maven-system.properties"),
        ("composer -d sub test", "sub/composer.json"),
        ("npm test -w web", "web/package.json"),
        ("npm test --workspace=web", "web/package.json"),
        ("pip install -e pkg", "pkg/setup.py"),
        ("pip install ./pkg", "pkg/setup.py"),
        ("awk -f prog.awk x", "prog.awk"),
        ("sed -f x.sed a", "x.sed"),
        ("gawk --file=prog.awk x", "prog.awk"),
        ("java Main.java", "Main.java"),
        ("make PYTHONPATH=lib test", "lib"),
        ("make A=b=c", "b=c"),
        ("make A=x B=y", "x"),
        ("pytest -k one sub/a.py::b", "sub/a.py"),
        ("pnpm test", "package.yaml"),
        ("gradle test", "settings.gradle.dcl"),
        ('sh "ru"n.sh $X', "run.sh"),
        ("sh ru\\n.sh $X", "run.sh"),
        ("sh $PWD/run.sh", "run.sh"),
        ("sh ${PWD}/run.sh", "run.sh"),
    ],
)
def test_what_an_argument_may_name_is_named(command: str, path: str) -> None:
    assert path in code_files(command).paths


def test_where_the_shell_works_out_a_folder_each_word_may_be_it() -> None:
    assert {"run.sh", "a/run.sh"} <= set(code_files("cd $(echo a) && sh run.sh").paths)
    assert {"run.sh", "sub/run.sh"} <= set(code_files("sh -c 'cd \"$0\"; sh run.sh' sub").paths)


def test_folders_of_programs_are_named() -> None:
    assert code_files("npm test").folders == ("node_modules/.bin",)
    assert code_files("cd web && npm test").folders == ("web/node_modules/.bin",)
    assert code_files("uv run pytest").folders == (".venv/bin",)
    assert code_files("cd lib && rake test").folders == ("lib/rakelib",)
    assert "buildSrc" in code_files("gradle test").folders
    assert code_files("npm --prefix web test").folders == ("web/node_modules/.bin",)
    assert code_files("npx jest").folders == ("node_modules/.bin",)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("go test ./...", ("go.mod", "go.work")),
        ("python -m pytest", ("conftest.py", "tox.ini")),
        ("npx jest", ("package.json", "bunfig.toml")),
        ("uv sync", ("uv.toml", "setup.py", "setup.cfg")),
        ("uv run pytest", ("uv.toml", "conftest.py")),
    ],
)
def test_what_is_looked_for_in_folders_above_is_named(command: str, names: tuple[str, ...]) -> None:
    assert {(".", name) for name in names} <= set(code_files(command).upward)
    assert {folder for folder, _ in code_files(command).upward} == {"."}


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("make sub/x CC=", "sub/x/Makefile"),
        ("pytest -k one @b", "b"),
        ("npm sub exec make.x", "sub"),
        ("npm exec a=b", "a=b"),
        ("ruff check a/b", "a/b"),
    ],
)
def test_what_an_argument_cannot_name_is_not_named(command: str, path: str) -> None:
    assert path not in code_files(command).paths


def test_spellings_that_a_link_makes_different_files_are_marked() -> None:
    assert code_files("sh link/../run.sh").same == (("link/../run.sh", "run.sh"),)
    assert code_files("cd d && sh ../run.sh").same == (("d/../run.sh", "run.sh"),)
    assert (".", "a/..") in code_files("cd a && cd .. && make").same
    assert ("d/../Makefile", "Makefile") in code_files("make -C d/..").same
    assert code_files("cd sub && sh ./run.sh").same == ()


def test_a_text_that_is_not_read_is_guessed_in_every_folder_that_it_enters() -> None:
    guessed = code_files("sh run.sh $X")
    assert (guessed.paths, guessed.known, guessed.read) == (("run.sh",), False, False)
    assert {"a/b/r", "b/r", "a/r", "r"} <= set(code_files("(cd a && cd b && ./r)").paths)
    assert "a/b/Makefile" in code_files("if true; then cd a; cd b; make; fi").paths


@pytest.mark.parametrize(
    "command", ["ls -la", "git status", "cat *.md", "grep -r x . | head -3", "cd sub && git log"]
)
def test_harmless_programs_run_no_file(command: str) -> None:
    assert code_files(command).paths == ()
    assert code_files(command).known


@pytest.mark.parametrize(
    "command",
    ["make test", "make -j4 all", "pytest -q", "pytest tests/a.py -x", "npm test", "npm run build",
     "cargo test --release", "sh run.sh", "bash -eu run.sh one two", "python3 tools/x.py",
     "ruby a.rb", "node a/b.js", "perl a.pl", "timeout 60 make test", "go test ./...",
     "./run.sh fast", "./run.sh --fast", "python3 x.py --fast -n 3", "cd sub && make test",
     "make V=1 test", "make --directory sub x", "make --file a.mk x",
     "make -C sub -f a.mk", "pytest -q -k one --tb=short tests",
     "ruff check .", ".venv/bin/python x.py", ".venv/bin/pytest tests", "/usr//bin/dash run.sh",
     "nice make", "git add -A", "git commit -q -m 'two words'", "make && git tag v1",
     "git log && make", "cd git-x && make", "git commit -am 'two words'",
     "git commit -m",
     "git commit --message 'two words'", "go vet ./...", "go build ./...", "timeout 5s make",
     "timeout 5 nice make", "node a/b.cjs", "node a/b.mjs", "npm test web", "npm -s test",
     "npm run --silent build",
     "cd a && cd b && pytest -q", "cd sub &&\nmake",
     "cd sub && npm start", "ls; cd sub && make | cat"],
)  # fmt: skip
def test_ordinary_commands_are_known(command: str) -> None:
    assert code_files(command).known


@pytest.mark.parametrize(
    "command",
    [
        "mytool",
        ".",
        "go run",
        "npm run",
        "timeout make",
        "env A=1",
        "pytest -k",
        "make -C",
        "sh run.sh *",
        "./run.sh *",
        "cd `cd`",
        "sh -ec make",
        "bash --norc -c make",
        "sh -c make a",
        "xargs rm",
        "find . -exec sh {} +",
        "cat x | sh",
        "sh < run.sh",
        "python -c 'import x'",
        "node --require ./a.js b.js",
        "git st",
        "git submodule foreach ./x",
        "$RUN",
        "FOO=1 make",
        "make *",
        "./*",
        "cd $X && make",
        "cd - && make",
        "cp other.sh run.sh && sh run.sh",
        "git pull && make",
        "tar --use-compress-program=./x -xf a",
        "awk -f prog.awk x",
        'echo "$(./x)"',
        "timeout -k 1 5 make",
        "",
        "rm -rf build",
        "make -Cdocs html",
        "make --eval=x",
        "make SHELL=./x.sh test",
        "sh +e run",
        "bash +x run",
        "bash -c 'time A=/x make -f notes.txt'",
        "sh -c \"g'i't commit -am x\" && sh run.sh",
        "sh -c 'g\\it commit -am x' && sh run.sh",
        "sh run.sh | git commit --allow-empty -m x",
        "git commit --allow-empty -m x | sh run.sh",
        "git branch --format --list zz && sh run.sh",
        "/usr/lib/git-core/git-commit -m x && sh run.sh",
        "/lib64/ld-linux-x86-64.so.2 ./evil",
        "/nix/store/x-gawk/bin/gawk -f notes",
        "/gnu/store/x-gawk/bin/gawk -f notes",
        "/usr/lib/git-core/git-bisect run ./evil",
        "git tag v1 && make",
        "git commit -q -m x && sh run.sh",
        "git commit --amend --no-edit; make",
        "sh -c 'git commit -m x' && make",
        "nice git add . && make",
        "make PYTHONPATH=1 test",
        "make GIT_CONFIG_COUNT=0",
        "make BASH_ENV=1 test",
        "make PATH=1",
        "npm run build --userconfig x",
        "awk 'BEGIN{system(\"sh x.sh\")}'",
        "sed -n '1e sh x.sh' one",
        "sed -nf s.sed one",
        "env PATH=bin:/usr/bin ls",
        "env BASH_ENV=x.sh bash run.sh",
        "git ls-remote --upload-pack='sh x.sh' .",
        "git grep -Ox.sh needle",
        "node build",
        "node --import=./a.js b.js",
        "tar -cf /dev/null -I./x.sh one",
        "tar -cf a.tar --use-c=./x.sh one",
        "zip -q -T -TT 'sh x.sh' o.zip one",
        "gcc -B./tool/ -c c.c",
        "gcc -wrapper ./x.sh -c c.c",
        "sort --compress-prog=./x.sh -S1 one",
        "rg --pre=./x.sh needle",
        "python3 -m json.tool one",
        "pytest -p plugin",
        "pytest @arguments",
        "npm exec ./x",
        "npm --node-options=x test",
        "cargo --config=a test",
        "just sub/build",
        "go run ./cmd",
        ". ./env.sh && ls",
        "uv run pytest",
        "cd nope; make test",
        "cd o | true; make",
        "true | cd o; make",
        "cd a && false || make",
        "cd sub\nmake",
        "cd && make",
        "cd s* && make",
        "cd -P sub && make",
        "command cd sub && make",
        "pushd sub && make",
        "time cd sub && make",
        "export CDPATH=x; cd sub && make",
        "cd a && cd - && make",
        "sh /proc/self/cwd/run.sh",
        "cd /proc/self/cwd && make",
        "make -C /proc/self/cwd",
        "sh /dev/stdin",
        "python3 /dev/fd/3",
        "rake test",
        "just test",
        "nice -n 5 make",
        "time -p make",
        "env -C a make",
        "sh -c 'cd \"$0\" && make' sub",
        "cd $(echo a) && make",
        "make MAKEFILES=./x",
        "make notes CC=bash",
        "make sub/x CC=",
        "make CC=1",
        "make x=",
        "pytest -k @args.txt",
        "pytest -m -pevil",
        "go run ./cmd x.go",
        "go tool x.go",
        "make -f x\0y",
        "make -f - x",
        "make 'CC=sh x'",
        ".venv/bin/pytest -p plugin",
        ".venv/bin/python -c 'import x'",
        "mytool x.sh",
        "git checkout main",
        "git commit -m x -c core.editor=y",
        "git -c core.hooksPath=x add a",
        "git merge -s ours x",
        "git commit --gpg-sign=x",
        "make gen && sh gen.sh",
        "make && make test",
        "sh a.sh; sh a.sh",
        "sh gen.sh a.sh && sh a.sh",
        "./gen --out=a.sh; ./a.sh",
        "sh gen.sh | sh a.sh | sh gen.sh | sh a.sh",
        "make; sh Makefile.sh",
        "git checkout x; sh run.sh",
        "make gen\nsh gen.sh",
        "make; ./app",
        "make && ls && ./app",
        "sh a.sh || sh b.sh",
        "./a | ./b",
        "make && pytest -q",
        "cd a && make && cd ../b && make",
        "sh -c 'make && ./app'",
    ],
)
def test_what_may_run_more_is_said_to(command: str) -> None:
    assert code_files(command).known is False
