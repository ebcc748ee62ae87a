# Gatehouse: what a person types in a checkout, and what CI runs. `make help` lists it.
# Needs make, a POSIX shell and Python 3.11 or newer; everything else goes into .venv.

VENV = .venv
BIN = $(VENV)/bin
NODE = .cache/node
# A foreign server that speaks the model providers' wire formats; pinned, as its answers are asserted.
AIMOCK = @copilotkit/aimock@1.43.0
# A foreign Slack; it needs Node 22.15.
EMULATE = emulate@0.12.2
EMULATE_AT = .cache/emulate
NODE_HAS_HOOKS = const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 15) ? 0 : 1)
# aimock needs Node 20.15; Debian 12 has 18, and there a newer one is put beside it.
NODE_PACKAGE = node@26.10.0
NODE_IS_NEW = const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 15) ? 0 : 1)
# Looks at the locks from an environment of its own, so that it changes nothing that is shipped.
AUDIT = .cache/audit
PIP_AUDIT = pip-audit>=2.9,<3
# Name another interpreter with: make run PYTHON=/path/to/python
PYTHON =
# Two workers more than there are processors: many tests wait, for a lease or for a process.
PROCESSORS = $(shell getconf _NPROCESSORS_ONLN)
JOBS = $(shell expr $(PROCESSORS) + 2)
PIP_STEP = $(BIN)/python -m pip install --no-input --disable-pip-version-check --no-compile
PIP_INSTALL = $(PIP_STEP) --quiet
LOCKS = requirements-pip.lock requirements.lock requirements-build.lock pyproject.toml
UV_COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate --no-header --upgrade

# Once, with all processors: a gateway whose modules are not compiled needs 4 to 6 s to start.
COMPILE = $(BIN)/python -m compileall -qq -j 0
# Some packages ship files that are no Python of this version: what cannot be compiled is left, and
# what no gateway and no test loads.
COMPILE_ALL = $(COMPILE) -x '/(graphql|libcst|mypy|mypyc|pip|pkg_resources|schemathesis|setuptools|werkzeug)/' \
	$(VENV)/lib gateway adapters runtime || true
# Tests find the checkout's own programs (gatehouse, aimock) first. They start hundreds of processes,
# so bytecode is kept, whatever the environment says of it elsewhere.
TOOL_PATH = PYTHONDONTWRITEBYTECODE= PATH="$$PWD/$(BIN):$$PWD/$(NODE)/node_modules/.bin:$$PATH"
# Files stay whole, because their tests share what is costly to make; the longest come first, in the
# order of tests/conftest.py.
PYTEST = $(TOOL_PATH) $(BIN)/python -m pytest -p no:benchmark
PARALLEL = --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder
# For the gate: what failed goes into a file, and the log says where the time went.
REPORTED = -p tests.gate.report --gate-report="$(REPORT)" --durations=40 --durations-min=1
# Of the scenarios one for each way in: every platform and the page, the command line, the API, and a
# kill.
QUICK = tests/unit tests/architecture tests/scenario/gateway/test_hello.py \
	tests/scenario/process/test_stop.py tests/scenario/http/test_conversation.py \
	tests/scenario/test_message_path.py tests/scenario/test_approvals.py \
	tests/scenario/subagents/test_spawns.py tests/crash/test_lost_lease.py
# What looks for more than the suite's examples show: see tests/support/profiles.py.
LONG = tests/unit tests/stateful

.PHONY: help run test one-test quick long compiled check lint fmt requirements image-check gallery models picture bench faults mutants replicas soak aimock emulate lock sbom audit build clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 24

run: $(VENV)/.ready-run ## start the gateway; the first time this installs it
	@PYTHONDONTWRITEBYTECODE= exec $(BIN)/gatehouse serve

test: $(VENV)/.ready-dev compiled ## run the tests, several files at a time; JOBS=4 for four
	@$(PYTEST) $(PARALLEL) $(if $(REPORT),$(REPORTED))

# For the gate: the test whose id is in the variable TEST of the environment, alone.
one-test: $(VENV)/.ready-dev
	@$(PYTEST) "$$TEST"

quick: $(VENV)/.ready-dev compiled ## under a minute: unit, architecture and one scenario for each way in
	@$(PYTEST) $(PARALLEL) --numprocesses $(PROCESSORS) $(QUICK)

long: $(VENV)/.ready-dev compiled ## the tests with examples, many times as many of them (hours)
	@$(PYTEST) $(PARALLEL) --hypothesis-profile=long $(LONG)

compiled:
	@$(COMPILE) gateway adapters runtime tests

check: lint test ## everything that CI holds: format, lint, types, imports, tests

lint: $(VENV)/.ready-dev ## format, lint, types and import contracts, without changing a file
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

fmt: $(VENV)/.ready-dev ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

requirements: $(VENV)/.ready-dev ## print each required behaviour, its state and how many tests prove it
	@$(BIN)/python -m tests.architecture.manifest

# Not part of `test` and CI: building takes a sixth of all their processor time, and what a change of
# the code can break in the image is read and run there without one. A release asks for it.
image-check: $(VENV)/.ready-dev ## build the Dockerfile's image and run it, without a container engine (root; minutes)
	@$(BIN)/python -m tests.image.build
	@$(TOOL_PATH) $(BIN)/python -m pytest -p no:benchmark tests/image

gallery: $(VENV)/.ready-dev ## write docs/rendering.md: each construct as each platform gets it
	@$(BIN)/python -m tests.rendering.gallery

models: $(VENV)/.ready-dev ## write the table of docs/models.md: what becomes of each oddity of model servers
	@$(BIN)/python -m tests.scenario.gateway.model_results

picture: $(VENV)/.ready-dev ## write docs/images/chat.png, the picture of the page in README.md (Chromium)
	@$(BIN)/python -m tests.browser.picture

bench: $(VENV)/.ready-dev ## run the benchmarks; they measure and assert nothing
	@$(TOOL_PATH) $(BIN)/python -m pytest tests/benchmarks

faults: $(VENV)/.ready-dev ## kill a gateway at every commit point and write docs/fault-matrix.md; RATE=20 is quick, N=1000 kills at random
	@$(TOOL_PATH) $(BIN)/python -m tests.faults $(if $(RATE),--rate $(RATE)) $(if $(N),--kills $(N))

mutants: $(VENV)/.ready-dev ## which small defects in policy and tools no test finds (hours); PACKAGES="features/subagents sessions" for others, SAMPLE=400 for as many drawn from all, SEED=2 for other ones
	@$(TOOL_PATH) nice $(BIN)/python -m tests.mutants $(PACKAGES) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

replicas: $(VENV)/.ready-dev ## of the tests those with several gateways on one PostgreSQL, killed, frozen and cut off
	@$(TOOL_PATH) $(BIN)/python -m pytest tests/replicas

soak: $(VENV)/.ready-dev ## people and faults for ten minutes, then the books; SECONDS=7200, or MESSAGES=10000 RESTART_EVERY=500, SEED=2, POSTGRES=url for two replicas
	@$(TOOL_PATH) $(BIN)/python -m tests.soak $(if $(SECONDS),--seconds $(SECONDS)) $(if $(SEED),--seed $(SEED)) \
		$(if $(MESSAGES),--messages $(MESSAGES)) $(if $(RESTART_EVERY),--restart-every $(RESTART_EVERY)) \
		$(if $(POSTGRES),--postgres $(POSTGRES) --replicas 2)

aimock: ## install the model server that some scenarios need (npm)
	@grep -qs '"version": "$(lastword $(subst @, ,$(AIMOCK)))"' $(NODE)/node_modules/@copilotkit/aimock/package.json \
		|| { mkdir -p $(NODE) \
			&& node=; node -e '$(NODE_IS_NEW)' >/dev/null 2>&1 || node=$(NODE_PACKAGE); \
			npm install --prefix $(NODE) --no-save --no-audit --no-fund --loglevel=error $(AIMOCK) $$node; }

emulate: ## install the Slack of somebody else that some tests need (npm)
	@grep -qs '"version": "$(lastword $(subst @, ,$(EMULATE)))"' $(EMULATE_AT)/node_modules/emulate/package.json \
		|| { mkdir -p $(EMULATE_AT) \
			&& node=; node -e '$(NODE_HAS_HOOKS)' >/dev/null 2>&1 || node=$(NODE_PACKAGE); \
			npm install --prefix $(EMULATE_AT) --no-save --no-audit --no-fund --loglevel=error $(EMULATE) $$node; }

lock: $(VENV)/.ready-dev ## resolve the dependencies anew and write the locks with hashes
	$(PIP_INSTALL) uv
	$(UV_COMPILE) pyproject.toml --extra postgres --extra nats --extra speed \
		--output-file requirements.lock
	$(UV_COMPILE) pyproject.toml --all-extras --constraints requirements.lock \
		--output-file requirements-dev.lock
	$(UV_COMPILE) --group build --constraints requirements-dev.lock \
		--output-file requirements-build.lock
	$(UV_COMPILE) --group installer --output-file requirements-pip.lock

sbom: $(VENV)/.ready-run ## write the bill of materials (CycloneDX 1.6) of what is shipped into dist/
	@mkdir -p dist
	@$(BIN)/python -B .ci/sbom.py > dist/gatehouse.cdx.json
	@echo "dist/gatehouse.cdx.json"

audit: $(VENV)/.python ## ask the advisory databases about every locked package (needs the network)
	@[ -x $(AUDIT)/bin/pip-audit ] || { $(BIN)/python -m venv $(AUDIT) \
		&& $(AUDIT)/bin/python -m pip install --quiet --no-input --disable-pip-version-check "$(PIP_AUDIT)"; }
	@for lock in requirements-pip.lock requirements.lock requirements-dev.lock requirements-build.lock; do \
		$(AUDIT)/bin/pip-audit --strict --disable-pip --require-hashes --requirement $$lock || exit 1; \
	done

build: $(VENV)/.ready-dev ## build the wheel into dist/
	$(BIN)/python -m pip wheel --quiet --no-input --disable-pip-version-check \
		--no-deps --no-build-isolation --wheel-dir dist .

clean: ## remove what the other targets made
	rm -rf $(VENV) .cache dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps depend on the locks, so a second run starts without calling pip.
$(VENV)/.ready-run: $(LOCKS) | $(VENV)/.python
	@echo "Installing Gatehouse into $(VENV), once. It takes a minute, or two on a slow machine:"
	@sh .ci/install "1 of 4: the installer" 1 $(PIP_STEP) --require-hashes -r requirements-pip.lock
	@sh .ci/install "2 of 4: the packages, most of the time" $$(cat requirements.lock \
		requirements-build.lock | grep -c '^[a-z].*==') $(PIP_STEP) --require-hashes \
		-r requirements.lock -r requirements-build.lock
	@sh .ci/install "3 of 4: Gatehouse itself" 1 $(PIP_STEP) --no-deps --no-build-isolation --editable .
	@echo "  4 of 4: compiling, so that every start is quick (about ten seconds) ..."
	@$(COMPILE_ALL)
	@touch $@

$(VENV)/.ready-dev: $(LOCKS) requirements-dev.lock | $(VENV)/.python
	@echo "Installing Gatehouse with its test tools into $(VENV) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements-pip.lock
	@$(PIP_INSTALL) --require-hashes -r requirements-dev.lock -r requirements-build.lock
	@$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@$(COMPILE_ALL)
	@touch $(VENV)/.ready-run $@

# A candidate must be new enough and able to make an environment with pip in it (Debian packs that apart).
$(VENV)/.python:
	@found=; old=; bare=; \
	for candidate in $(PYTHON) $(if $(PYTHON),,python3 python3.13 python3.12 python3.11 python3.14 python); do \
		command -v "$$candidate" >/dev/null 2>&1 || continue; \
		"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
			|| { old="$$old $$candidate"; continue; }; \
		"$$candidate" -c 'import ensurepip, venv' >/dev/null 2>&1 \
			|| { bare="$$bare $$candidate"; continue; }; \
		found=$$candidate; break; \
	done; \
	if [ -z "$$found" ]; then \
		echo "Gatehouse needs Python 3.11 or newer with venv and pip." >&2; \
		[ -z "$$old" ] || echo "Too old or not working:$$old" >&2; \
		[ -z "$$bare" ] || echo "Without venv (Debian: apt-get install python3-venv):$$bare" >&2; \
		echo "Install one, or name it: make PYTHON=/path/to/python3.11" >&2; \
		exit 1; \
	fi; \
	"$$found" -m venv --clear $(VENV) && touch $@
