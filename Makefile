# Every target sets up .venv on first use, and again when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := $(if $(shell command -v nvidia-smi 2>/dev/null),,-c constraints-cpu.txt)
STAMP := $(VENV)/.installed

.PHONY: demo lab test lint conformance bench notebooks
.DEFAULT_GOAL := demo

demo: $(STAMP)  ## the first notebook, run on this machine; no GPU needed
	$(BIN)/python -m cute_lab demo

lab: $(STAMP)  ## JupyterLab on the notebooks
	$(BIN)/jupyter lab notebooks

test: $(STAMP)  ## the whole suite
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

conformance: $(STAMP)  ## the conformance table in docs/
	$(BIN)/python tools/conformance.py

bench: $(STAMP)  ## how long each step of a cell takes
	$(BIN)/python benchmarks/speed.py

notebooks: $(STAMP)  ## notebooks/*.ipynb from their texts
	$(BIN)/python tools/build_notebooks.py

$(STAMP): pyproject.toml constraints-cpu.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]" $(CONSTRAINTS)
	touch $@
