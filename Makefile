# Two commands on a fresh machine: `make demo` and `make test`. `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Stamps inside the environment record what was installed, so that a second run installs nothing.
CORE := $(VENV)/.epochcast-core
DEV := $(VENV)/.epochcast-dev
SOURCES := $(shell find src -type f -not -path '*/__pycache__/*')

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore
export PIP_NO_WARN_SCRIPT_LOCATION := 1
# Tests start epochcast hundreds of times; it is compiled once.
unexport PYTHONDONTWRITEBYTECODE
# A banner about another product, on every build.
export NO_MKDOCS_2_WARNING := 1
# Twice quiet: errors are shown, warnings are not.
PIP_INSTALL := $(BIN)/python -m pip install -qq

# The measurements, where they lie beside the repository and nobody named another place.
ifeq ($(origin EPOCHCAST_DATA),undefined)
ifneq ($(wildcard ../shared/data),)
export EPOCHCAST_DATA := $(abspath ../shared/data)
endif
endif

# What is checked besides src and tests, as far as it exists.
CHECKED := src training tests $(wildcard examples studies benchmarks fuzz)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-quick lint format docs bench bench-demo bench-serve soak fuzz studies study-local model prices slurm chromium pictures nginx clean

help: ## This list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "make %-11s %s\n", $$1, $$2}'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "epochcast needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

$(CORE): pyproject.toml $(SOURCES) | $(BIN)/python
	$(PIP_INSTALL) .
	@touch $@

# torch goes first, by its exact version, and the constraints keep the rest from replacing it.
$(DEV): pyproject.toml constraints.txt | $(BIN)/python
	@echo 'installing what the tests need; the first time this takes some minutes'
	$(PIP_INSTALL) --constraint constraints.txt torch==2.13.0
	$(PIP_INSTALL) --constraint constraints.txt --editable '.[dev,test-models]'
	@touch $@

demo: $(if $(wildcard $(DEV)),,$(CORE)) ## The tour: installs the core, forecasts for real, offline
	@$(BIN)/epochcast demo

# Tests that share a server or a cluster are in one file, and stay together. The order is that of tests/conftest.py, long
# files first. Three processes for two cores: some wait for servers and engines while others compute.
PYTEST_FLAGS ?= --numprocesses 3 --dist loadfile --no-loadscope-reorder
test: lint slurm chromium nginx ## Everything CI checks: format, lint, types, layers, tests, docs, examples
	$(BIN)/pytest $(PYTEST_FLAGS)
	$(BIN)/mkdocs build --strict --quiet

# No pages, doctests or lint either: those are `make test`.
test-quick: $(DEV) ## The tests without servers, engines, browsers and slow captures: at most two minutes on two cores
	$(BIN)/pytest $(PYTEST_FLAGS) -m 'not slow and not server and not engine and not browser' tests

lint: $(DEV) ## Format, lint, types, layers and dead code only
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/mypy --strict
	$(BIN)/lint-imports
	$(BIN)/python tests/dead_code.py # by its path: a package may install a folder called `tests`, as gpuhunt does

format: $(DEV) ## Rewrite the code in the house format
	$(BIN)/ruff check --fix-only --quiet $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

docs: $(DEV) ## Build the documentation into site/
	$(BIN)/mkdocs build --strict

bench-serve: $(DEV) ## The server under load, beside a bare endpoint
	$(BIN)/python -m benchmarks.serving

# An hour: make soak SECONDS=3600
soak: $(DEV) ## A thousand live runs on one server for some minutes: times, memory, and whether a report is lost
	$(BIN)/python -m benchmarks.live_runs --rows 1 --seconds $(SECONDS)

bench-demo: $(DEV) ## Time `make demo` in a new clone, and run the commands that it ends with
	$(BIN)/python -m benchmarks.first_minutes

bench: $(DEV) ## Time epochcast itself
	$(BIN)/python -m benchmarks

# Another time budget and other inputs: make fuzz SECONDS=3600 SEED=7
SECONDS ?= 600
SEED ?= 0
fuzz: $(DEV) ## Damaged input of every kind for some minutes: nothing but a user's error may come out
	$(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED)

studies: $(DEV) ## Score the forecasts on measured data
	$(BIN)/python -m studies

study-local: $(DEV) ## Measure this machine, fit it, forecast, train for real, compare: about ten minutes
	$(BIN)/python -m studies this_machine

# Programs for the tests, where they can be installed; without them what needs them is skipped.
SLURM := slurmctld slurmd slurm-client munge slurm-wlm-basic-plugins
slurm: ## Slurm for the tests
	@sh tests/install.sh slurmctld $(SLURM) || echo 'Slurm cannot be installed here: its tests are skipped'

chromium: ## A browser for the tests
	@sh tests/install.sh chromium chromium || echo 'Chromium cannot be installed here: its tests are skipped'

pictures: $(DEV) chromium ## Make the pictures of the dashboard, the terminal and the explanation pages anew
	$(BIN)/pytest --quiet --renew tests/surfaces/web/test_browser.py -k pictures
	$(BIN)/python -m training.recording
	EPOCHCAST_NOW=2026-11-17T09:00 $(BIN)/python -m training.pictures

nginx: ## A web server in front, for the tests
	@sh tests/install.sh nginx nginx || echo 'nginx cannot be installed here: its tests are skipped'

prices: $(DEV) ## Write the shipped price list from the table of offers
	$(BIN)/python -m training.prices

model: $(DEV) ## Train the shipped cost model from the measurements
	$(BIN)/python -m training.published_rates
	$(BIN)/python -m training.power_law
	$(BIN)/python -m training.train
	$(BIN)/python -m training.train_layers
	$(BIN)/python -m studies.accuracy.run --margins --accept
	$(BIN)/python -m training.memory_spreads
	$(BIN)/python -m training.decode_rates
	$(BIN)/python -m training.rl_constants

clean: ## Remove what was built, keep the environment
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src training tests $(wildcard examples studies benchmarks fuzz) -name __pycache__ -type d -prune -exec rm -rf {} +
