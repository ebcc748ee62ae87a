"""What programs read first that runs code, and the spellings for which that is all. Tables alone.

`code_files` applies them. A program that is missing here is one of which nothing is known, so a
line left out costs a question, and no safety.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from posixpath import join, split


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


SYSTEM = _names("/bin /usr/bin /usr/local/bin /sbin /usr/sbin")
SHELLS = _names("sh bash dash zsh ksh ash")
_PYTHONS = ("python", "python3", *(f"python3.{minor}" for minor in range(8, 20)))
_SCRIPT_ENDS = (
    "sh bash zsh ksh fish csh py pyw pyz js cjs mjs jsx ts cts mts tsx rb pl pm php lua tcl R r mk "
    "awk gawk sed cmake java jar groovy gradle kts jl ex exs erl hs scala clj lisp scm el vim gdb "
    "sql nix m4 ps1 bat cmd raku swift dart nim zig tf hcl"
)
SCRIPT = re.compile(rf"[^-].*\.({'|'.join(_SCRIPT_ENDS.split())})", re.DOTALL)
"""An argument that is named like a script."""
SWITCH = re.compile(r"\d+|yes|no|on|off|true|false")
"""A value that names no file."""
PLAIN = re.compile(r"[A-Za-z0-9_./:][A-Za-z0-9_./:,+@%-]*")
"""An argument that is neither a flag, nor a variable, nor a file of more arguments."""
FOLDER = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./@+-]*")
"""An argument that may be a folder."""
OF_EACH_PROCESS = ("/proc/", "/dev/", "/tmp/", "/var/tmp/")
"""Below these a path is another file for each process, or may be in a sandbox."""
TARGET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*")
INTERPRETERS = frozenset({*SHELLS, *_PYTHONS, *_names("node ruby perl php lua Rscript tclsh")})
SCRIPTS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("sh", "bash", "dash"), _names("-e -u -x -eu -ex -ux -eux")),
    **dict.fromkeys(_PYTHONS, _names("-u -B -q -O")),
    **dict.fromkeys(("node", "ruby", "perl"), frozenset()),
}
"""Interpreters of which it is known what they run, with the flags that change nothing about it."""
VALUED: dict[str, frozenset[str]] = {
    **dict.fromkeys(SHELLS, _names("-o +o")),
    **dict.fromkeys(_PYTHONS, _names("-X -W")),
}
STARTUP: dict[str, tuple[str, ...]] = {
    "Rscript": (".Rprofile", ".Renviron"),
    "node": ("package.json", "node.config.json"),
}
"""What an interpreter may read besides the script."""
MODULES = _names("pytest tox nox mypy pip invoke build")
_MAKE_ENDS = "sh c cc C cpp o s S f F r p m ym mod y l w web"


def makefiles(*paths: str) -> Iterator[str]:
    """Makefiles, and what make's own rules make a makefile from, unasked."""
    for path in paths:
        yield path
        yield from (f"{path}.{end}" for end in _MAKE_ENDS.split())
        folder, name = split(path)
        kept = (f"{name},v", f"RCS/{name},v", f"RCS/{name}", f"s.{name}", f"SCCS/s.{name}")
        yield from (join(folder, one) for one in kept)


_PROJECT = "pyproject.toml setup.cfg tox.ini"
_PYTEST = f"conftest.py pytest.ini .pytest.ini pytest.toml .pytest.toml {_PROJECT}"
_COMPOSE = "compose.yaml compose.yml docker-compose.yaml docker-compose.yml"
_OVERRIDES = (
    "compose.override.yaml compose.override.yml "
    "docker-compose.override.yaml docker-compose.override.yml .env"
)
_NPM = (
    "package.json package.yaml package.json5 package-lock.json npm-shrinkwrap.json binding.gyp "
    ".npmrc .yarnrc .yarnrc.yml .env.yarn .pnp.cjs .pnp.js .pnp.loader.mjs yarn.config.cjs "
    "yarn.lock .pnpmfile.cjs .pnpmfile.mjs pnpm-workspace.yaml pnpm-lock.yaml bunfig.toml "
    # They look for their shell there first, also in the folders above.
    "node_modules/.bin/sh"
)
_GRADLE = (
    "build.gradle build.gradle.kts build.gradle.dcl settings.gradle settings.gradle.kts "
    "settings.gradle.dcl gradle.properties "
    "buildSrc/build.gradle buildSrc/build.gradle.kts buildSrc/settings.gradle "
    "buildSrc/settings.gradle.kts buildSrc/gradle.properties gradle/libs.versions.toml "
    "gradle/gradle-daemon-jvm.properties gradle/wrapper/gradle-wrapper.properties "
    "gradle/wrapper/gradle-wrapper.jar"
)
ENTRY_FILES: dict[str, tuple[str, ...]] = {
    name: tuple(files.split())
    for names, files in {
        "make gmake": " ".join(makefiles("GNUmakefile", "makefile", "Makefile")),
        "npm yarn pnpm bun npx pnpx bunx corepack": _NPM,
        "uvx": "uv.toml pyproject.toml .python-version",
        "direnv": ".envrc .env",
        "mise": "mise.toml .mise.toml .tool-versions",
        "foreman honcho": "Procfile .env .foreman",
        "build": "setup.py setup.cfg pyproject.toml",
        "pytest py.test": f"__init__.py {_PYTEST}",
        "tox": f"{_PROJECT} setup.py tox.toml toxfile.py",
        "nox": "noxfile.py pyproject.toml",
        "mypy": "mypy.ini .mypy.ini pyproject.toml setup.cfg",
        "ruff": "ruff.toml .ruff.toml pyproject.toml",
        "pip pip3": "setup.py setup.cfg pyproject.toml",
        "cargo": "Cargo.toml build.rs .cargo/config.toml .cargo/config rust-toolchain.toml "
        "rust-toolchain",
        "just": "justfile Justfile .justfile",
        "rake": "Rakefile rakefile Rakefile.rb rakefile.rb",
        "gradle gradlew": _GRADLE,
        "mvn mvnw": "pom.xml .mvn/extensions.xml .mvn/jvm.config .mvn/maven.config "
        ".mvn/wrapper/maven-wrapper.properties .mvn/wrapper/maven-wrapper.jar "
        ".mvn/wrapper/MavenWrapperDownloader.java .mvn/maven-system.properties "
        ".mvn/maven-user.properties .mvn/settings.xml",
        "ant": "build.xml",
        "docker podman docker-compose": f"{_COMPOSE} {_OVERRIDES} Dockerfile",
        "ansible-playbook": "ansible.cfg",
        "cmake": "CMakeLists.txt CMakePresets.json CMakeUserPresets.json CMakeCache.txt Makefile "
        "build.ninja cmake_install.cmake",
        "meson": "meson.build meson.options meson_options.txt build.ninja",
        "ninja": "build.ninja",
        "scons": "SConstruct Sconstruct sconstruct SConstruct.py Sconstruct.py sconstruct.py "
        "site_scons/site_init.py site_scons/__init__.py",
        "invoke inv": "tasks.py tasks/__init__.py invoke.py invoke.yaml invoke.yml invoke.json "
        "pyproject.toml",
        "fab": "fabfile.py fabfile/__init__.py fabric.py fabric.yaml fabric.yml fabric.json",
        "pre-commit": ".pre-commit-config.yaml",
        "R": ".Rprofile .Renviron",
        "bundle": "Gemfile Gemfile.lock gems.rb gems.locked .bundle/config",
        "mix": "mix.exs mix.lock .formatter.exs config/config.exs config/runtime.exs",
        "composer": "composer.json composer.lock",
    }.items()
    for name in names.split()
}
RUNNERS: dict[str, tuple[str, ...]] = {
    "uv": ("pyproject.toml", "uv.toml", "uv.lock", ".python-version"),
    "poetry": ("pyproject.toml", "poetry.toml", "poetry.lock"),
    "pdm": ("pyproject.toml", "pdm.toml", ".pdm.toml", "pdm.lock", ".pdm-python"),
    "hatch": ("pyproject.toml", "hatch.toml"),
}
"""Programs that start what stands behind `run`, and what they read of a project first; `setup.py`
and `setup.cfg` besides."""
LAUNCHERS = _names(
    "xargs setsid ionice chrt taskset unbuffer script watch parallel entr strace ltrace gdb "
    "valgrind perf coverage doas su chroot unshare nsenter flock busybox npx pnpx bunx corepack "
    "pipx uvx direnv mise dotenv foreman honcho concurrently nodemon watchexec rlwrap fakeroot "
    "hyperfine systemd-run screen tmux setarch prlimit numactl runuser bundle eval trap find"
)
"""Programs that start another, which may stand anywhere behind them."""
STARTING: dict[str, frozenset[str]] = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), _names("exec x dlx node run -c --call")),
    "composer": _names("exec"),
    "meson": _names("devenv"),
    "mix": _names("run cmd"),
}
"""Words of programs with entry files behind which they start another program, or a script."""
STARTS_ANY = _names("R")
"""Programs to which any word may be a script."""
FOR_WORDS: dict[str, dict[str, tuple[str, ...]]] = dict.fromkeys(
    ("npm", "yarn", "pnpm", "bun"), dict.fromkeys(("start", "restart"), ("server.js",))
)
"""What is run for a word of the arguments where no other file says what to run."""
BELOW: dict[str, tuple[str, ...]] = dict.fromkeys(
    ("pytest", "py.test"),
    ("tests/__init__.py", "tests/conftest.py", "test/__init__.py", "test/conftest.py"),
)
"""Entry files in the usual folders below."""
HERE_ALONE = _names("make gmake cmake meson ninja scons ant ansible-playbook nox pip pip3 mix R")
"""Programs with entry files that they look for in one folder; the others look above it as well."""
FILE_FLAGS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("make", "gmake"), _names("-f --file --makefile")),
    **dict.fromkeys(("docker", "podman", "docker-compose"), _names("-f --file")),
    "just": _names("-f --justfile"),
    "rake": _names("-f --rakefile"),
    "pytest": _names("-c --config-file"),
    "tox": _names("-c --conf"),
    "nox": _names("-f --noxfile"),
    **dict.fromkeys(("pip", "pip3"), _names("-r --requirement -c --constraint")),
    "mypy": _names("--config-file"),
    "ruff": _names("--config"),
    "cargo": _names("--manifest-path --config"),
    "gradle": _names("-b --build-file -I --init-script -c --settings-file"),
    "gradlew": _names("-b --build-file -I --init-script -c --settings-file"),
    "mvn": _names("-f --file -s --settings"),
    "mvnw": _names("-f --file -s --settings"),
    "ant": _names("-f -file -buildfile"),
    "ninja": _names("-f"),
    "scons": _names("-f --file --sconstruct"),
    **dict.fromkeys(("invoke", "inv", "fab"), _names("-c --collection -f --config")),
    "pre-commit": _names("-c --config"),
}
FOLDER_FLAGS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("make", "gmake"), _names("-C --directory")),
    **dict.fromkeys(("npm", "yarn", "pnpm", "bun"), _names("--prefix --cwd -C --dir")),
    "just": _names("-d --working-directory"),
    "cargo": _names("-C"),
    **dict.fromkeys(("gradle", "gradlew"), _names("-p --project-dir")),
    "ninja": _names("-C"),
    "pytest": _names("--rootdir --confcutdir"),
    "scons": _names("-C --directory"),
    "cmake": _names("-S"),
}
FOLDER_VALUES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("npm", "yarn", "pnpm", "bun"), _names("-w --workspace --filter -F")),
    **dict.fromkeys(("pip", "pip3"), _names("-e --editable")),
    "composer": _names("-d --working-dir"),
    "rake": _names("-C --directory"),
    "meson": _names("-C"),
    **dict.fromkeys(("docker", "podman", "docker-compose"), _names("--project-directory")),
}
"""Flags with a value that may be the folder of another project, beside the one around it."""
FOLDER_WORDS: dict[str, frozenset[str]] = {
    "cmake": frozenset(),
    "meson": _names("setup"),
    **dict.fromkeys(("docker", "podman"), _names("build")),
}
"""Programs to which any word may be such a folder, where all of these are among the words."""
CHOOSING_FLAGS: dict[str, frozenset[str]] = {
    **dict.fromkeys(("pytest", "py.test"), _names("-k -m")),
    **dict.fromkeys(("docker", "podman"), _names("-t --tag")),
}
"""Flags with a value that names no file."""
FILE_ARGUMENTS = _names("pytest py.test ansible-playbook")
MAKES = _names("make gmake")
MAKE_VALUED = "jlOoWIE"
"""Letters behind which the rest of a word is a value."""
PROGRAM_FOLDERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("npm", "yarn", "pnpm", "bun", "npx", "pnpx", "bunx", "corepack"), ("node_modules/.bin",)
    ),
    "rake": ("rakelib",),
    **dict.fromkeys(("gradle", "gradlew"), ("buildSrc", "gradle")),
    **dict.fromkeys(("mvn", "mvnw"), (".mvn",)),
}
WRAPPERS = _names("gradlew mvnw")
"""Scripts of a project that start what their name says."""
BESIDE: dict[str, tuple[str, ...]] = dict.fromkeys(_PYTHONS, ("pyvenv.cfg", "../pyvenv.cfg"))
"""What a program that is not the system's reads beside itself."""


def _words_of(pattern: re.Pattern[str], *flags: str) -> Callable[[Sequence[str]], bool]:
    """Whether arguments are words of this form, or one of these flags."""
    return lambda arguments: all(word in flags or pattern.fullmatch(word) for word in arguments)


def _package_words(arguments: Sequence[str]) -> bool:
    """Package managers run what `package.json` says, and with other words anything else."""
    words = [word for word in arguments if word not in ("-s", "--silent")]
    alone = words[:1] in (["test"], ["start"]) or (words[:1] == ["run"] and len(words) > 1)
    return alone and all(map(TARGET.fullmatch, words))


def _pytest_words(arguments: Sequence[str]) -> bool:
    """Words that choose tests or change what is shown; not those that load a plugin."""
    words = iter(arguments)
    for word in words:
        if word in CHOOSING_FLAGS["pytest"]:
            # `@file` stands for the lines of a file, also where a value is expected.
            if next(words, "@").startswith(("@", "-")):
                return False
        elif word not in _PYTEST_FLAGS and not (PLAIN.fullmatch(word) or _SHOWN.fullmatch(word)):
            return False
    return True


def _make_words(arguments: Sequence[str]) -> bool:
    """Targets, the folder or the makefile, and variables that are only switches."""
    words = iter(arguments)
    for word in words:
        name, equals, value = word.partition("=")
        if word in ("-C", "-f", "--directory", "--file"):
            known = PLAIN.fullmatch(next(words, "")) is not None
        elif equals:
            known = name in _SWITCHES and SWITCH.fullmatch(value) is not None
        else:
            known = word in _MAKE_FLAGS or PLAIN.fullmatch(word) is not None
        if not known:
            return False
    return True


_PYTEST_FLAGS = _names("-q -v -vv -x -s -l --lf --ff -qq -rA --no-header --exitfirst")
_SHOWN = re.compile(r"--(tb=[a-z]+|(maxfail|durations)=\d+)")
_MAKE_FLAGS = _names("-s -k -n -B -i -w -j -j2 -j4 -j8 --silent --keep-going")
_SWITCHES = _names("V VERBOSE DEBUG Q QUIET COLOR COVERAGE COV CI RELEASE NDEBUG WERROR")
"""Variables by which makefiles are used to be switched. Any other may be one that a program obeys
which a recipe starts (``PYTHONPATH``), because make hands each on."""
GIT_ADDS = _names("add commit tag branch init")
"""Subcommands of git that only write what it keeps itself."""
GIT_FLAGS = _names(
    "-a -A -u -b -q -v -s -d -D -l -r -f -- --all --amend --no-edit --allow-empty --bare"
)
"""Flags of git's subcommands that name no program."""
SPELLINGS: dict[str, Callable[[Sequence[str]], bool]] = {
    **dict.fromkeys(MAKES, _make_words),
    **dict.fromkeys(("npm", "yarn", "pnpm"), _package_words),
    **dict.fromkeys(("pytest", "py.test"), _pytest_words),
    "ruff": _words_of(PLAIN, *_names("-q --fix --check --diff --quiet --statistics")),
    "mypy": _words_of(PLAIN, "--strict"),
    "cargo": _words_of(TARGET, "--release", "--all", "--workspace", "-q", "-v"),
    **dict.fromkeys(
        # Not rake, which runs every file in `rakelib`, nor just, which takes names in any case.
        _names("tox nox gradle gradlew mvn mvnw ant ninja"),
        _words_of(TARGET),
    ),
}
"""Programs of which it is known what they run, with the arguments for which that holds."""
