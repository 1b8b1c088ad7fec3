# Every target sets up what it needs: a .venv of its own, with the package and its tools.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test check slow bench figures format clean help

help:           ## what can be made
	@grep -E '^[a-z]+: .*##|^[a-z]+:  *##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "shortlist needs Python 3.11 or newer; try: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

demo: $(READY)  ## find the best 3 of 12 with simulated judges, and write report.html
	$(BIN)/shortlist demo

test: $(READY)  ## what CI runs: checks, tests, statistical guarantees
	tests/web/chromium.sh
	$(MAKE) --no-print-directory lint
	$(BIN)/pytest -n auto -q -m "not sweep" --durations=15

check: $(READY) lint  ## format, lint, types, fast tests
	tests/web/chromium.sh
	$(BIN)/pytest -n auto -q -m "not slow and not sweep"

.PHONY: lint
lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

slow: $(READY)  ## the long statistical sweeps
	$(BIN)/pytest -q -m sweep  # each test uses both cores itself
	RUNS=1000 $(BIN)/pytest -n auto -q tests/guarantee/test_edges.py

bench: $(READY)  ## the benchmark table
	$(BIN)/python benchmarks/run.py

FIGURES := headline against-n against-k against-delta alpha-against-k alpha-against-n-and-gap allocation decision-time
figures: $(READY)  ## play all experiments, more than an hour, and draw them; can be stopped and gone on with
	for name in $(FIGURES); do $(BIN)/shortlist experiment run $$name || exit; done
	for name in $(FIGURES) times-the-bound; do $(BIN)/shortlist experiment plot $$name || exit; done

format: $(READY)  ## let ruff lay out the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:          ## forget the environment
	rm -rf .venv build dist
