# Set-up and daily commands. Needs Python 3.11 or newer, git and make; all else is installed into .venv.
# Written for make 3.81, which macOS ships: no grouped targets, no .ONESHELL.

PYTHON ?= python3
UV ?= uv
ARGS ?=

BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --no-input --disable-pip-version-check
RUNTIME := .venv/.runtime
DEVELOPMENT := .venv/.development
EXAMPLES := .venv-examples/.installed
COMPILE := $(UV) pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-strip-extras --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)
# A file's tests stay in one process, which makes their shared fixtures once; files are handed out in their order, which has
# the engine's, the longest, near the beginning. tests/conftest.py says when there is only one process.
SIDE_BY_SIDE := -n auto --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help setup check test lint format schema inventories alerts documents reference site policy-pack bench holdout test-engine test-examples changelog lock clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

setup: $(DEVELOPMENT) ## Create or update .venv; targets that need it do so first.

check: $(RUNTIME) ## Plan and check every stack; ARGS="prod --format json" is passed on.
	@$(BIN)/training-platform check $(ARGS)

test: lint ## Lint, then run every test on all cores; ARGS="-k name" is passed on to pytest.
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(ARGS)

lint: $(DEVELOPMENT) ## Check style, format and types.
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --strict --num-workers auto

format: $(DEVELOPMENT) ## Format the code, and mend what ruff can mend.
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

schema: $(RUNTIME) ## Write the JSON Schemas of stacks and jobs from their models.
	@$(BIN)/training-platform schema

inventories: $(RUNTIME) ## Write the inventories of the tests' organisation from its plans.
	@$(BIN)/python -m tests.organisation.inventories.write

alerts: $(DEVELOPMENT) ## Play the scenarios of the alerts with promtool, and record its verdicts.
	@$(BIN)/python -m tests.alerts.promtool

reference: $(RUNTIME) ## Write docs/reference from rules, schemas and commands, and what the pack says of rule sets.
	@$(BIN)/python docs/reference/write.py
	@$(BIN)/python -m training_platform.policy.registered

site: $(DEVELOPMENT) ## Build docs/ as a site, build/site.
	@rm -rf build/site
	@$(BIN)/sphinx-build -q -W --keep-going -c docs/site -d build/doctrees docs build/site

documents: $(DEVELOPMENT) ## Write what whole objects are judged by; ARGS="--openapi FOLDER --crds FOLDER" for Kubernetes' too.
	@$(BIN)/python -m tools.documents $(ARGS)

policy-pack: $(RUNTIME) ## Build the folder to publish, build/policy-pack: docs/policies.md.
	@$(BIN)/python -m training_platform.policy.build build/policy-pack

bench: $(DEVELOPMENT) ## Measure what benchmarks/ measures.
	@$(BIN)/python -m benchmarks $(ARGS)

holdout: $(DEVELOPMENT) ## Measure the rules on others' objects, docs/fidelity.md; ARGS="--seed 7 --checkout FOLDER ...".
	@$(BIN)/python -m tests.violations.holdout $(ARGS)

test-engine: $(DEVELOPMENT) ## Run the tests under the real Pulumi engine; fail where a tool is missing.
	@TRAINING_PLATFORM_REQUIRE_ENGINE=1 $(BIN)/python -m pytest -m engine $(SIDE_BY_SIDE) $(ARGS)

test-examples: $(DEVELOPMENT) $(EXAMPLES) ## Run the programs of examples/jobs/ on CPUs; their libraries take gigabytes.
	@TRAINING_PLATFORM_EXAMPLES_PYTHON="$(CURDIR)/.venv-examples/bin/python" $(BIN)/python -m pytest -m examples $(ARGS)

changelog: $(DEVELOPMENT) ## Move the fragments of changelog.d/ into CHANGELOG.md, under the version of pyproject.toml.
	@$(BIN)/towncrier build --yes --version "$$($(BIN)/training-platform --version | cut -d ' ' -f 2)"

lock: ## Resolve pyproject.toml and requirements*.in into hashed locks, with uv; UPGRADE=1 takes newer versions.
	@$(COMPILE) pyproject.toml requirements.in --extra deploy --extra policy --output-file requirements.txt
	@$(COMPILE) pyproject.toml requirements-dev.in --extra adopt --extra documents --extra jobs --extra quota --extra sandbox --extra scheduler --output-file requirements-dev.txt
	@$(COMPILE) requirements-examples.in --output-file requirements-examples.txt

clean: ## Delete .venv, caches and build leftovers.
	@rm -rf .venv .venv-examples .hypothesis .mypy_cache .pytest_cache .ruff_cache build *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.created:
	@command -v "$(PYTHON)" > /dev/null || { echo "No $(PYTHON) on PATH: install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; v = sys.version_info; v[:2] >= (3, 11) or sys.exit("Python 3.11 or newer is needed, and $(PYTHON) is %d.%d: name another with make PYTHON=/path/to/python3 ..." % v[:2])'
	@echo "Setting up .venv, some minutes the first time" >&2
	@"$(PYTHON)" -m venv --clear .venv
	@touch $@

# Compiled in one go on all cores, where pip would use one: pulumi_gcp alone is 2,400 files. The providers' SDKs are compiled
# without evaluated annotations, which is most of the time that importing them takes; compileall passes over these. A file
# that does not compile is none that we import.
$(RUNTIME): .venv/.created requirements.txt pyproject.toml tools/byte_code.py
	@$(PIP) install --no-compile --require-hashes --requirement requirements.txt
	@$(BIN)/python -m tools.byte_code
	@$(BIN)/python -m compileall -qq -j 0 .venv/lib || true
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEVELOPMENT): $(RUNTIME) requirements-dev.txt
	@$(PIP) install --no-compile --require-hashes --requirement requirements-dev.txt
	@touch $@

# Beside .venv, since an image for training has nothing of this project's either.
$(EXAMPLES): requirements-examples.txt
	@"$(PYTHON)" -m venv --clear .venv-examples
	@.venv-examples/bin/python -m pip --quiet --no-input --disable-pip-version-check install --require-hashes --requirement requirements-examples.txt
	@touch $@
