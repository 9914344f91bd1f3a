# Set-up and daily commands. Needs Python 3.11 or newer, git and make. `make check` installs a few small packages into .venv,
# `make setup` all others, and the policy pack's into .venv-policies.
# Written for make 3.81, which macOS ships: no grouped targets, no .ONESHELL.

PYTHON ?= python3
UV ?= uv
ARGS ?=

BIN := .venv/bin
PIP := -m pip --quiet --no-input --disable-pip-version-check
BASE := .venv/.base
COMPLETE := .venv/.complete
POLICIES := .venv-policies/.installed
EXAMPLES := .venv-examples/.installed
PACK_CODE := policies training_platform/policy tests/training_platform/policy
EXTRAS := deploy adopt documents jobs quota sandbox verify
COMPILE := $(UV) pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-strip-extras --custom-compile-command "make lock" $(if $(UPGRADE),--upgrade)
# A file's tests stay in one process, which makes their shared fixtures once; files are handed out in their order, which has
# the engine's, the longest, near the beginning. tests/conftest.py says when there is only one process.
SIDE_BY_SIDE := -n auto --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: help check setup test lint format test-core schema inventories alerts documents reference picture site policy-pack bench holdout test-policies test-engine test-examples release lock clean

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

check: $(BASE) ## Check every stack; ARGS="prod --format json" is passed on.
	@$(BIN)/training-platform check $(ARGS)

setup: $(COMPLETE) $(POLICIES) ## Install all that deploys and tests; targets that need it do so first.

test: lint $(if $(ARGS),,test-policies) ## Lint, then run every test on all cores; ARGS="-k name" runs some, but for the pack's.
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) $(ARGS)

test-core: $(COMPLETE) ## Run the tests of the core; ARGS is passed on to pytest.
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/training_platform tests/stacks $(ARGS)

test-policies: $(POLICIES) ## Run the policy pack's tests in its own virtualenv; ARGS is passed on to pytest.
	@.venv-policies/bin/python -m pytest tests/training_platform/policy $(ARGS)

lint: $(COMPLETE) $(POLICIES) ## Check style, format and types.
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/python -m tools.readability
	@$(BIN)/mypy --strict --num-workers auto --exclude '^(build|policies|training_platform/policy|tests/training_platform/policy)/'
	@$(BIN)/mypy --strict --python-executable .venv-policies/bin/python --cache-dir .mypy_cache/policies $(PACK_CODE)

format: $(COMPLETE) ## Format the code, and mend what ruff can mend.
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

schema: $(BASE) ## Write the JSON Schemas of stacks and jobs, and the arguments of components, from their models.
	@$(BIN)/training-platform schema
	@$(BIN)/python -m tools.component_args

inventories: $(BASE) ## Write the inventories of the tests' organisation from its plans.
	@$(BIN)/python -m tests.organisation.inventories.write

alerts: $(COMPLETE) ## Play the scenarios of the alerts with promtool, and record its verdicts.
	@$(BIN)/python -m tests.alerts.promtool

reference: $(POLICIES) $(BASE) ## Write docs/reference from rules, schemas and commands, and what the pack says of rule sets.
	@$(BIN)/python docs/reference/write.py
	@.venv-policies/bin/python -m training_platform.policy.registered

picture: $(COMPLETE) ## Draw the README's picture of a report, docs/picture.png; needs the font DejaVu Sans Mono.
	@$(BIN)/python -m docs.picture

site: $(COMPLETE) ## Build docs/ as a site, build/site.
	@rm -rf build/site
	@$(BIN)/sphinx-build -q -W --keep-going -c docs/site -d build/doctrees docs build/site

documents: $(COMPLETE) ## Write what whole objects are judged by; ARGS="--openapi FOLDER --crds FOLDER" for Kubernetes' too.
	@$(BIN)/python -m tools.documents $(ARGS)

policy-pack: $(BASE) ## Build the folder to publish, build/policy-pack: docs/policies.md.
	@$(BIN)/python -m training_platform.policy.build build/policy-pack

bench: $(COMPLETE) ## Measure what benchmarks/ measures.
	@$(BIN)/python -m benchmarks $(ARGS)

holdout: $(COMPLETE) ## Measure the rules on others' objects, docs/development/fidelity.md; ARGS="--seed 7 --checkout FOLDER ...".
	@$(BIN)/python -m tests.violations.holdout $(ARGS)

test-engine: $(COMPLETE) ## Run the tests under the real Pulumi engine; fail where a tool is missing.
	@TRAINING_PLATFORM_REQUIRE_ENGINE=1 $(BIN)/python -m pytest -m engine $(SIDE_BY_SIDE) $(ARGS)

test-examples: $(COMPLETE) $(EXAMPLES) ## Run the programs of examples/jobs/ on CPUs; their libraries take gigabytes.
	@TRAINING_PLATFORM_EXAMPLES_PYTHON="$(CURDIR)/.venv-examples/bin/python" $(BIN)/python -m pytest -m examples $(ARGS)

release: $(COMPLETE) ## Cut a release, VERSION=0.3.0: versions, changelog and upgrade page; docs/development/release.md.
	@$(BIN)/python -m tools.release "$(VERSION)"

lock: ## Resolve pyproject.toml and requirements*.in into hashed locks, with uv; UPGRADE=1 takes newer versions.
	@$(COMPILE) pyproject.toml requirements-base.in --output-file requirements-base.txt
	@$(COMPILE) pyproject.toml requirements.in $(EXTRAS:%=--extra %) --output-file requirements.txt
	@$(COMPILE) pyproject.toml modules/requirements.in --extra deploy --output-file modules/requirements.txt
	@$(COMPILE) pyproject.toml policies/requirements.in --extra policy --output-file policies/requirements.txt
	@$(COMPILE) requirements-examples.in --output-file requirements-examples.txt

clean: ## Delete virtualenvs, caches and build leftovers.
	@rm -rf .venv .venv-policies .venv-examples .hypothesis .mypy_cache .pytest_cache .ruff_cache build *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# $(call install,FOLDER,LOCK) makes a virtualenv where there is none, and installs a lock and this package into it.
define install
	@command -v "$(PYTHON)" > /dev/null || { echo "No $(PYTHON) on PATH: install Python 3.11 or newer, or name it: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; v = sys.version_info; v[:2] >= (3, 11) or sys.exit("Python 3.11 or newer is needed, and $(PYTHON) is %d.%d: name another with make PYTHON=/path/to/python3 ..." % v[:2])'
	@test -x $(1)/bin/pip || "$(PYTHON)" -m venv --clear $(1)
	@$(1)/bin/python $(PIP) install --require-hashes --requirement $(2)
	@$(1)/bin/python $(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@
endef

$(BASE): requirements-base.txt pyproject.toml
	$(call install,.venv,requirements-base.txt)

# Compiled in one go on all cores, where pip would use one: pulumi_gcp alone is 2,400 files. A file that does not compile is
# none that we import.
$(COMPLETE): $(BASE) requirements.txt
	@echo "Completing .venv, some minutes the first time" >&2
	@$(BIN)/python $(PIP) install --no-compile --require-hashes --requirement requirements.txt
	@$(BIN)/python -m compileall -qq -j 0 .venv/lib || true
	@touch $@

# Apart from .venv, since pulumi-policy holds protobuf, and with it every client of Google, to old versions.
$(POLICIES): policies/requirements.txt pyproject.toml
	$(call install,.venv-policies,policies/requirements.txt)

# Apart from .venv, since an image for training has nothing of this project's either. An older pip takes the hashes of
# google-auth[pyopenssl, requests] for none of google-auth.
$(EXAMPLES): requirements-examples.txt
	@"$(PYTHON)" -m venv --clear .venv-examples
	@.venv-examples/bin/python $(PIP) install "pip>=23.3"
	@.venv-examples/bin/python $(PIP) install --require-hashes --requirement requirements-examples.txt
	@touch $@
