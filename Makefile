# `make demo` and `make test` work on a fresh clone with nothing but Python (3.11 or later) and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check bench forgetting torture clean

demo: $(VENV)/.installed
	$(BIN)/memsift demo

test: check
	$(BIN)/python -m pytest -n auto --dist worksteal

check: $(VENV)/.installed
	$(BIN)/ruff check src tests tools
	$(BIN)/ruff format --check src tests tools
	$(BIN)/mypy

# Peers take part if they are installed: .venv/bin/pip install '.[bench]' hnswlib. docs/performance.md is made from it.
bench: $(VENV)/.installed
	$(BIN)/memsift bench reference
	$(BIN)/memsift bench speed --out docs/speed.json
	$(BIN)/python tools/performance.py
	$(BIN)/python tools/figures.py

# The full evaluation and its page; WORKLOADS is the folder of the .npz files.
WORKLOADS ?= ../shared/workloads
forgetting: $(VENV)/.installed
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/forgetting.py $(WORKLOADS)

# Kills, crowds, bad bytes, power loss, I/O errors: about an hour; the figures go to docs/torture.json.
torture: $(VENV)/.installed
	$(BIN)/python tests/durable/torture.py all
	$(BIN)/python tests/server/torture.py all

# Editable, so that an edit needs no second install; a change of pyproject.toml does.
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
