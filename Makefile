# `make demo` goes from a fresh checkout to a report. Needs: rustup (or cargo), Python 3.11 or newer with venv.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export PATH := $(HOME)/.cargo/bin:$(PATH)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TARGET := $(or $(CARGO_TARGET_DIR),target)
# Modules are compiled when they are imported: most never are.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check

RUST_SOURCES := $(shell find crates -name '*.rs' -o -name 'Cargo.toml') Cargo.toml Cargo.lock rust-toolchain.toml
RUST_DATA := $(shell find data -type f 2>/dev/null)

.PHONY: help demo dev build wheel check-wheel check test test-all test-rust test-python lint format fuzz fidelity \
  docs playground linux-hosts lock clean compiled

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

demo: $(VENV)/.extension ## six schemes on a 128-host fabric: table, figures, report in out/demo
	$(BIN)/weft compare --schemes ecmp,rps,drb,presto,letflow,drill --fabric leaf-spine --workload web-search \
	  --load 0.6 --flows 2000 --transport dctcp --out out/demo --force

dev: $(VENV)/.extension ## the weft command in .venv, with checks, in seconds after a change: for authors of schemes

build: $(VENV)/.release ## the weft command in .venv, as fast as it gets

URL ?=
GUIDE ?=
wheel: $(VENV)/.packaging-requirements ## source distribution and wheel in dist/, for Linux since 2018; URL=https://... for links
	$(BIN)/python packaging/build.py $(if $(URL),--url $(URL)) $(if $(GUIDE),--guide $(GUIDE))

check-wheel: $(BIN)/python ## that the wheel in dist/ installs without Rust, and runs the README's first example
	$(BIN)/python packaging/check.py

playground: ## the engine for the guide's playground, as fast as it gets
	@crates/playground/build --release

linux-hosts: ## the kernel of the Linux hosts, once, in ~/.cache/weft
	@linux-hosts/build

FUZZ_SPECS ?=
FUZZ_STORES ?= 0
FUZZ_SECONDS ?= 10
fuzz: $(VENV)/.extension $(VENV)/.dev-requirements ## random specs until stopped; FUZZ_SPECS=N, FUZZ_STORES=N, FUZZ_SECONDS=N a run, FUZZ_GRAPHS=1 arbitrary graphs alone
	@if (( $(FUZZ_STORES) )); then $(BIN)/python tests/fuzz --stores $(FUZZ_STORES); fi
	$(BIN)/python tests/fuzz --seconds $(FUZZ_SECONDS) $(if $(FUZZ_GRAPHS),--graphs )$(if $(FUZZ_SPECS),--specs $(FUZZ_SPECS))

check: lint ## before each commit: lints, the unit tests of the crates that differ from main, the fast Python tests
	tests/changed-crates
	@$(MAKE) --no-print-directory test-python PYTEST='-m "not nightly and not slow" --ignore-glob="*_browser.py"'

test: test-rust test-python ## all everyday tests

test-rust:
	cargo test --workspace --locked --quiet

# Figures of papers, kernels, P4 and rare combinations are tested by `make test-all`.
PYTEST ?= -m "not nightly" --durations 10
# One more than there are cores: some tests wait for processes that they stop.
WORKERS = $(shell expr $$(nproc 2> /dev/null || sysctl -n hw.ncpu) + 1)
test-python: $(VENV)/.extension $(VENV)/.dev-requirements
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(PYTEST)

test-all: ## all tests, with those that take long
	cargo test --workspace --locked --quiet
	cargo test --workspace --locked --quiet -- --ignored nightly
	@$(MAKE) --no-print-directory test-python PYTEST='--durations 20'

fidelity: $(VENV)/.extension ## the flows of reference runs in ns-3, uet-htsim and conweave-ns3, compared
	$(BIN)/python tests/fidelity/reference.py
	$(BIN)/python tests/fidelity/uec.py
	$(BIN)/python tests/fidelity/rdma.py

lint: $(VENV)/.dev-requirements ## formatting, clippy, ruff, mypy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --strict

format: $(VENV)/.dev-requirements ## format Rust and Python
	cargo fmt --all
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(VENV)/.extension $(VENV)/.dev-requirements ## the user guide, in site/
	crates/playground/build
	$(BIN)/python docs/generate_spec.py --check
	$(BIN)/python docs/generate_tables.py --check
	$(BIN)/python docs/print_examples.py --check
	$(BIN)/python crates/python/generate_stub.py --check
	$(BIN)/mkdocs build --strict
	$(BIN)/python docs/check_widths.py site

lock: $(VENV)/.dev-requirements ## pin the newest requirements that pyproject.toml allows
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 --no-header pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --upgrade --python-version 3.11 --no-header --extra dev --extra docs --extra cluster \
	  -c requirements.lock pyproject.toml -o requirements-dev.lock

clean: ## remove everything that was made
	rm -rf $(VENV) $(TARGET) out site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find python tests examples \( -name __pycache__ -o -name '_core*.so' \) -prune -exec rm -rf {} +

# Stamps: a step is done again only when what it depends on has changed.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; choose one with make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "venv is missing; on Debian: apt install python3-venv" >&2; exit 1; }

$(VENV)/.requirements: requirements.lock requirements-dev.lock | $(BIN)/python
	$(PIP) -r requirements.lock "$$(grep -o '^maturin==[^ ]*' requirements-dev.lock)"
	@touch $@

$(VENV)/.dev-requirements: requirements-dev.lock | $(BIN)/python
	$(PIP) -r requirements-dev.lock
	@touch $@

$(VENV)/.packaging-requirements: packaging/requirements.txt | $(BIN)/python
	$(PIP) -r packaging/requirements.txt
	@touch $@

# The extension, by the newest of two builds: that of cargo's profile `dev`, which all tests share, or a release.
SOURCES := pyproject.toml $(RUST_SOURCES) $(RUST_DATA)
DEVELOP = VIRTUAL_ENV=$(abspath $(VENV)) PIP_QUIET=1 $(BIN)/maturin develop --locked --quiet

$(VENV)/.extension: $(SOURCES) requirements.lock requirements-dev.lock | $(BIN)/python
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.requirements compiled
	$(DEVELOP)
	@rm -f $(VENV)/.release
	@touch $@

$(VENV)/.release: $(VENV)/.requirements $(SOURCES)
	@command -v cargo > /dev/null || { echo "cargo is missing; install Rust from https://rustup.rs" >&2; exit 1; }
	$(DEVELOP) --release
	@touch $(VENV)/.extension $@

# The crates are compiled while Python's packages are fetched.
compiled:
	@command -v cargo > /dev/null || { echo "cargo is missing; install Rust from https://rustup.rs" >&2; exit 1; }
	@echo "cargo build: 2 to 3 minutes on two cores the first time, seconds later"
	cargo build --package weft-python --locked --quiet
