# Everything is set up in .venv and target/; nothing outside this folder is changed.
# Needed: Rust, Python 3.11 or newer, make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REQUIREMENTS := $(VENV)/.requirements
INSTALLED := $(VENV)/.installed
PLUGIN := python/graven/_capture.so
MATURIN := PIP_QUIET=1 VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --quiet --locked

# Whatever the native module is built from. Folders too, so that a removed file is noticed.
SOURCES := Cargo.toml Cargo.lock python/Cargo.toml pyproject.toml $(wildcard crates/*/build.rs) \
	$(wildcard crates/*/Cargo.toml) \
	$(shell find $(wildcard crates/*/src) python/src papers machines -type d -o -name '*.rs' -o -name '*.toml')

.DEFAULT_GOAL := help
EXAMPLES := $(wildcard examples/*/Cargo.toml)
OUT_OF_TREE := --target-dir target/out-of-tree --locked --release
.PHONY: help install dev optimised demo demo-real captures prepare test test-all examples recorded counts browser clusters site release containers lint format bench campaigns soak clean

# Without benchmarks, so that what tests and the native module share is compiled once.
TESTED := --locked --workspace --exclude graven-benches
# Each test is a process: tests of all crates share the processors, and it is known what each takes.
NEXTEST := $(BIN)/cargo-nextest nextest run $(TESTED) --no-fail-fast --show-progress none --status-level fail \
	--final-status-level fail --config "target.'cfg(all())'.runner = ['$(CURDIR)/tests/budget/measured']"
# CPU seconds of tests: a log for each tier of the table in tests/budget.
BUDGET := target/budget
logged = GRAVEN_CPU_LOG=$(CURDIR)/$(BUDGET)/$(1).log
# Crates whose documentation is in the site: `graven`, and `graven-…`.
DOCUMENTED := graven $(addprefix graven-,base persistency machine designs workloads trace powerfail lab python)
# Tests of a Slurm that is killed and restarted; nothing else may take the processors from it.
SLURM := python/tests/test_clusters.py
# Packages that commands import: compiled once, since an environment may keep Python from doing so by itself. Nobody imports
# their tests.
IMPORTED := PIL click contourpy cycler dateutil fontTools jinja2 kiwisolver markupsafe matplotlib mpl_toolkits numpy packaging \
	pyarrow pyparsing rich werkzeug
PYTEST := $(BIN)/python -m pytest -p tests.budget.plugin --numprocesses auto --dist worksteal

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## Build Graven (release) into .venv; then .venv/bin/graven is the program

dev: $(REQUIREMENTS) ## Build it for development: seconds from an edit to a run, and slower runs
	$(MATURIN) --profile development
	@rm -f $(INSTALLED)

optimised: install ## Build it once more, by a profile of its own runs: simulations take less time; needs llvm-profdata
	$(BIN)/python -m release.optimised target/optimised
	CARGO_TARGET_DIR=target/optimised RUSTFLAGS=-Cprofile-use=$(CURDIR)/target/optimised/counts.profdata $(MATURIN) --release

demo: install ## Compare six designs on Silo's machine: a table, and report.html
	$(BIN)/graven compare --report report.html

demo-real: install ## Capture a real program, LMDB, and compare all designs on it, on Silo's machine
	@mkdir -p captures
	$(BIN)/graven capture --recipe lmdb-insert --to captures/lmdb-insert.gvt
	$(BIN)/graven compare --workloads captures/lmdb-insert.gvt --designs all --set 'base.log_bytes_per_thread=4 MB'

captures: install ## Build, run, capture and verify all real programs: captures/*.gvt
	@mkdir -p captures
	set -e; for name in $$($(BIN)/python -c 'from graven.capture.recipes import recipes; print(*recipes())'); do \
		$(BIN)/graven capture --recipe $$name --to captures/$$name.gvt; \
	done

prepare: ## Compile the tests of `make test-all`, and run nothing
	cargo test $(TESTED) --profile checked --no-run --quiet

test: install $(VENV)/.rust ## What every edit runs: all designs, workloads and commands; 6 minutes on two cores, more on busy ones
	$(NEXTEST) --cargo-profile release
	cargo test $(TESTED) --release --doc --quiet
	$(PYTEST) -m "not long" python/tests

test-all: install $(VENV)/.rust ## The same and the longer tests, those of Rust with checks of overflow; an hour on two cores
	@mkdir -p $(BUDGET) && rm -f $(BUDGET)/*.log
	$(call logged,rust-edit) $(NEXTEST) --cargo-profile checked
	cargo test $(TESTED) --profile checked --doc --quiet
	$(call logged,python-edit) $(PYTEST) -m "not long" python/tests
	$(call logged,rust-long) $(NEXTEST) --cargo-profile checked --run-ignored only
	$(call logged,python-long) $(PYTEST) --numprocesses 0 -m long $(SLURM)
	$(call logged,python-long) $(PYTEST) --dist loadgroup -m long --ignore $(SLURM) python/tests
	$(BIN)/python -m tests.budget check $(BUDGET)/*.log
	$(PYTEST) tests/recorded tests/counts tests/budget tests/prose release
	$(BIN)/python -m tests.counts check --short --jobs 2
	$(MAKE) examples
	$(BIN)/python -m tests.recorded check --quick --jobs 2

# Tests of a crate run one after the other, most of them on one processor: two crates are tested at a time.
examples: ## Test and check the crates in examples/, which are outside the workspace
	set -e; for manifest in $(EXAMPLES); do \
		cargo fmt --check --manifest-path $$manifest; \
		cargo clippy $(OUT_OF_TREE) --manifest-path $$manifest --all-targets -- -D warnings; \
	done
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target $(EXAMPLES:=.tested)

.PHONY: $(EXAMPLES:=.tested)
$(EXAMPLES:=.tested): %.tested:
	MAKEFLAGS= cargo test $(OUT_OF_TREE) --manifest-path $*

recorded: install ## Compare the results of all recorded runs with what this build gives; 13 minutes on two cores
	$(BIN)/python -m tests.recorded check --jobs 2

counts: install ## Count host instructions of benchmarks (valgrind), and compare with the table
	$(BIN)/python -m tests.counts check --jobs 2

browser: $(VENV)/.browser ## Install what tests of reports in a real browser need beside Chromium

clusters: $(VENV)/.clusters ## Install what tests on a Dask cluster need; those on Slurm need the distribution's

jupyter: $(VENV)/.jupyter ## Install what the notebooks in examples/ need, and their tests

notebooks: install jupyter clusters ## Run the notebooks in examples/, and keep what comes out in them
	$(BIN)/python -m campaigns notebooks

site: install $(VENV)/.site ## Build the documentation as a site: target/site/index.html
	@RUSTDOCFLAGS='-D warnings' cargo doc --quiet --locked --no-deps --lib $(addprefix --package ,$(DOCUMENTED))
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

release: $(VENV)/.release ## Make a release and check it: target/release-VERSION; OPTIONS=--rehearsal before its changes are final
	$(BIN)/python -m release $(OPTIONS)

containers: $(VENV)/.release ## Check the file that containers are built from
	$(BIN)/hadolint Containerfile

lint: install ## Check format, lints, types and prose, Rust and Python
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tests.prose

format: install ## Format all sources
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: counts ## Measure the simulator's speed: host instructions, then times
	cargo bench --locked --package graven-benches

campaigns: install clusters ## Hours: mutants, full sizes of all papers, the adversary; each continues after an interrupt
	$(BIN)/python -m campaigns all
	$(MAKE) soak

soak: install ## Hours of the adversary on all sound designs; after an interrupt it goes on where it was
	$(BIN)/graven adversary --schedules 1000000 --state graven-results/soak.json

clean: ## Remove everything that was built
	rm -rf $(VENV) target python/graven/_engine*.so $(PLUGIN)
	find campaigns python tests -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -rf .mypy_cache .ruff_cache .pytest_cache tests/recorded/.ruff_cache

# The environment of a copied or moved checkout leads to the original: it is made anew.
ifneq ($(wildcard $(VENV)/pyvenv.cfg),)
ifeq ($(shell grep -F -- ' $(CURDIR)/$(VENV)' $(VENV)/pyvenv.cfg),)
.PHONY: $(VENV)/.python
endif
endif

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Graven needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(REQUIREMENTS): $(VENV)/.python python/requirements.lock
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --requirement python/requirements.lock
	@$(BIN)/python -m compileall -q -j 2 -x '/tests?/' $(addprefix $(VENV)/lib/python3*/site-packages/,$(IMPORTED))
	@touch $@

$(VENV)/.rust: $(REQUIREMENTS) python/requirements-rust.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-rust.lock
	@touch $@

$(VENV)/.browser: $(REQUIREMENTS) python/requirements-browser.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-browser.lock
	@touch $@

$(VENV)/.clusters: $(REQUIREMENTS) python/requirements-clusters.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-clusters.lock
	@touch $@

$(VENV)/.jupyter: $(REQUIREMENTS) python/requirements-notebooks.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-notebooks.lock
	@touch $@

$(VENV)/.site: $(REQUIREMENTS) python/requirements-site.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-site.lock
	@touch $@

$(VENV)/.release: $(REQUIREMENTS) python/requirements-release.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement python/requirements-release.lock
	@touch $@

# The crates are compiled while packages are fetched. What each start of the command imports is compiled, too, since an
# environment may keep Python from doing so by itself.
$(INSTALLED): $(VENV)/.python python/requirements.lock $(SOURCES)
	@cargo build --quiet --locked --release --package graven-python & crates=$$!; \
		$(MAKE) --no-print-directory $(REQUIREMENTS) && wait $$crates
	$(MATURIN) --release
	@$(BIN)/python -m compileall -q python/graven
	@cargo build --quiet --locked --release --package graven-qemu-plugin
	@cp target/release/libgraven_qemu_plugin.so python/graven/.capture.so
	@mv python/graven/.capture.so $(PLUGIN)
	@touch $@
