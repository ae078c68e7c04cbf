# The commands of this repository. Nothing is assumed but Linux, Python 3.11 to 3.14, git and make.
STACK ?= local
PYTHON ?= python3
PYTEST ?= --timeout 900

venv_python := .venv/bin/python

# Commands that may have to build the toolchain check first that this machine can, before anything is installed.
toolchain up test region-test: checks = --with-toolchain

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup toolchain up down verify test lint unit-test region-test env clean-cache

help: ## this list
	@echo 'make TARGET [STACK=local]'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1@\2/p' Makefile | awk -F@ '{ printf "%-14s %s\n", $$1, $$2 }'

setup: ## the virtual environment alone (.venv)
	@$(PYTHON) -m simulator.bootstrap $(checks)

toolchain: setup ## the engine and the control plane, built into the cache outside the checkout
	@$(venv_python) -m simulator.toolchain

up: setup ## everything a fresh machine needs, the simulated region, then `pulumi up` of STACK on it
	@$(venv_python) -m simulator up $(STACK)

down: setup ## `pulumi destroy`, then stops the region; nothing is left running
	@$(venv_python) -m simulator down

verify: setup ## the seeds' checks against the running STACK
	@exports="$$($(venv_python) -m simulator env)" && eval "$$exports" && $(venv_python) -m ops verify $(STACK)

env: setup ## the exports for your shell: eval "$(make -s env)"
	@$(venv_python) -m simulator env

test: setup lint unit-test region-test ## format, lint, types, unit tests, then tests on a simulated region

lint: setup
	@$(venv_python) -m ruff format --check .
	@$(venv_python) -m ruff check .
	@$(venv_python) -m mypy

unit-test: setup
	@$(venv_python) -m pytest $(PYTEST) -n 2 tests/unit

region-test: setup toolchain
	@$(venv_python) -m pytest $(PYTEST) tests/region

clean-cache: ## removes everything that was built or downloaded outside the checkout
	@$(PYTHON) -m simulator.bootstrap --clean-cache
