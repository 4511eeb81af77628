# Every target makes its own environment in .venv; nothing but Python >= 3.11 and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo test test-system lint bench reference clean

setup: $(READY)

# torch comes first and at its pin: any other requirement that reaches it would bring another build.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("headway needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet "$$(grep '^torch==' constraints.txt)" -c constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/headway demo

test: setup
	$(BIN)/python -m pytest -q --ignore tests/system

test-system: setup
	$(BIN)/python -m pytest -q tests/system

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

reference: setup
	$(BIN)/python docs/make_reference.py

bench: setup
	$(BIN)/python benchmarks/training.py
	$(BIN)/python benchmarks/translating.py

clean:
	rm -rf $(VENV) headway-demo
