# Nothing but Python 3.11 or later and make is needed: every target sets up .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install demo test test-all test-lowest check bench clean

help:
	@echo "make install   create $(VENV) and install foveate in it"
	@echo "make demo      run the main job on the built-in example data"
	@echo "make test      lint, types and tests (under ten minutes on two cores)"
	@echo "make test-all  the same with the slow statistical checks"
	@echo "make bench     benchmarks (real data: FOVEATE_POTSDAM35=folder)"

install: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "foveate needs Python 3.11 or later; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: install
	@$(BIN)/foveate demo --out demo

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

test: check
	$(BIN)/python -m pytest -m "not slow"

test-all: check
	$(BIN)/python -m pytest

bench: install
	$(BIN)/python benchmarks/likelihood.py

clean:
	rm -rf $(VENV) demo build
