# Nothing but Python 3.11 or later and make is needed: every target sets up .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install demo test test-all test-lowest check bench docs clean

help:
	@echo "make install   create $(VENV) and install foveate in it"
	@echo "make demo      run the main job on the built-in example data"
	@echo "make test      lint, types and tests (a quarter of an hour on two cores)"
	@echo "make test-all  the same with the slow statistical checks and the documentation's site"
	@echo "make test-pysaliency   the tests beside pysaliency, in an environment of their own"
	@echo "make docs      the documentation as a site, in build/docs"
	@echo "make bench     benchmarks, in a quarter of an hour, into benchmarks/results (real data: FOVEATE_POTSDAM35=folder)"

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

test-all: check $(VENV)/.installed-docs
	$(BIN)/python -m pytest

# The lower bounds in pyproject.toml, really tried: an environment of its own that holds exactly those versions.
test-lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(PYTHON) -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print(*(d.replace(">=", "==") for d in p["dependencies"] + p["optional-dependencies"]["dev"]), sep="\n")' \
	  > $(VENV)-lowest/constraints.txt
	$(VENV)-lowest/bin/python -m pip install --quiet --constraint $(VENV)-lowest/constraints.txt --editable '.[dev]'
	$(VENV)-lowest/bin/python -m pytest -m "not slow"

# In an environment of its own, since pysaliency brings torch along: tests/with_pysaliency/requirements.txt says why.
.PHONY: test-pysaliency
test-pysaliency:
	$(PYTHON) -m venv $(VENV)-pysaliency
	$(VENV)-pysaliency/bin/python -m pip install --quiet --disable-pip-version-check \
	  --requirement tests/with_pysaliency/requirements.txt --editable .
	$(VENV)-pysaliency/bin/python -m pytest -q -o addopts= tests/with_pysaliency

bench: install
	$(BIN)/python benchmarks/run_all.py

# A warning is an error: a link that leads nowhere, a page that no menu lists, a docstring that cannot be read.
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs
	@echo "The site is in build/docs: open build/docs/index.html."

$(VENV)/.installed-docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

clean:
	rm -rf $(VENV) demo build
