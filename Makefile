# Everything is set up in .venv and target/; nothing outside this folder is changed.
# Needed: Rust, Python 3.11 or newer, make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REQUIREMENTS := $(VENV)/.requirements
INSTALLED := $(VENV)/.installed

# Whatever the native module is built from. Folders too, so that a removed file is noticed.
SOURCES := Cargo.toml Cargo.lock python/Cargo.toml python/pyproject.toml python/build.rs \
	$(wildcard crates/*/Cargo.toml) \
	$(shell find $(wildcard crates/*/src) python/src papers machines -type d -o -name '*.rs' -o -name '*.toml')

.DEFAULT_GOAL := help
.PHONY: help install demo test browser lint format bench soak clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Build Graven (release) into .venv; then .venv/bin/graven is the program

demo: install ## Compare six designs on Silo's machine: a table, and report.html
	$(BIN)/graven compare --report report.html

test: install ## Run all tests, Rust and Python
	cargo test --locked --workspace
	$(BIN)/python -m pytest -c python/pyproject.toml python/tests

browser: $(VENV)/.browser ## Install what tests of reports in a real browser need beside Chromium

lint: install ## Check format, lints and types, Rust and Python
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cd python && ../$(BIN)/ruff format --check .
	cd python && ../$(BIN)/ruff check .
	cd python && ../$(BIN)/mypy

format: install ## Format all sources
	cargo fmt --all
	cd python && ../$(BIN)/ruff format .
	cd python && ../$(BIN)/ruff check --fix .

bench: ## Measure the simulator's speed
	cargo bench --locked --workspace

soak: install ## Hours of the adversary on all sound designs; after an interrupt it goes on where it was
	$(BIN)/graven crash --adversary --seeds 1000000 --state graven-results/soak.json

clean: ## Remove everything that was built
	rm -rf $(VENV) target python/graven/_engine*.so
	find python -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf python/.mypy_cache python/.ruff_cache python/.pytest_cache .ruff_cache .pytest_cache

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Graven needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(REQUIREMENTS): $(VENV)/.python python/requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements.lock
	@touch $@

$(VENV)/.browser: $(REQUIREMENTS) python/requirements-browser.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-browser.lock
	@touch $@

$(INSTALLED): $(REQUIREMENTS) $(SOURCES)
	PIP_QUIET=1 VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --quiet --release --locked \
		--manifest-path python/Cargo.toml
	@touch $@
