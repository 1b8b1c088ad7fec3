# Every target installs what it needs into .venv: the package for the demo, development tools for the others.
PYTHON ?= python3
BIN := .venv/bin
MADE := .venv/pyvenv.cfg
DEMO_READY := .venv/.demo-ready
DOCS_READY := .venv/.docs-ready
READY := .venv/.ready
# Python compiles what it imports: to compile all that is installed takes longer than the demo.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Tests that one process has not begun when another has none left are given to that one.
PYTEST := $(BIN)/pytest -n auto --dist worksteal -q
# Hundreds of processes are started: where the environment says not to keep bytecode, each would compile the package again.
export PYTHONDONTWRITEBYTECODE :=
FAST := not slow and not sweep and not browser and not postgres

.PHONY: demo test check lint slow faults docs bench figures format clean help

help:           ## list the targets
	@grep -E '^[a-z]+: .*##|^[a-z]+:  *##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "shortlist needs Python 3.11 or newer; try: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv

$(DEMO_READY): pyproject.toml | $(MADE)
	$(PIP) -e .
	@touch $@

$(DOCS_READY): pyproject.toml | $(MADE)
	$(PIP) -e '.[docs]'
	@touch $@

# Tests turn warnings into errors, so other packages' modules are compiled, with their warnings, before.
$(READY): pyproject.toml | $(MADE)
	$(PIP) -e '.[dev]'
	-@$(BIN)/python -W ignore -m compileall -q -j 0 .venv/lib >/dev/null 2>&1
	@touch $(DEMO_READY) $(DOCS_READY) $@

demo: $(DEMO_READY)  ## find the best 3 of 12 items with simulated judges, and write report.html
	$(BIN)/shortlist demo

test: $(READY) lint  ## run what CI runs: format, lint, types and all tests except the long sweeps
	tests/web/chromium.sh
	$(PYTEST) -m "not sweep" --durations=15

check: $(READY) lint  ## run format, lint, types and fast tests, without a browser or a database
	$(PYTEST) -m "$(FAST)"

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

slow: $(READY)  ## run the long statistical sweeps, and the fuzzing and kill tests at full size
	$(BIN)/pytest -q -m sweep  # each test uses all cores itself
	RUNS=1000 $(PYTEST) tests/guarantee/test_edges.py

faults: $(READY)  ## play faults of storages, processes and clocks with real processes, and print what became of the votes
	$(BIN)/python -W ignore -m tests.faults

bench: $(READY)  ## print the benchmark table
	$(BIN)/python benchmarks/run.py

FIGURES := headline peers-at-a-budget peers-to-a-proof against-n against-k against-delta alpha-against-k alpha-against-n-and-gap allocation decision-time
figures: $(READY)  ## run all experiments (more than an hour; can be interrupted and resumed) and draw them
	for name in $(FIGURES); do $(BIN)/python -m experiments run $$name || exit; done
	for name in $(FIGURES) times-the-bound; do $(BIN)/python -m experiments plot $$name || exit; done
	cp experiments/results/peers-*.png docs/images/

docs: $(DOCS_READY)  ## build the documentation: site/index.html
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

format: $(READY)  ## format the code with ruff
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:          ## remove the environment and build files
	rm -rf .venv build dist site
