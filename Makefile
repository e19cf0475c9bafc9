# Everything a fresh clone needs, with only Python >= 3.11 and make.
#   make demo    the main job: two sample meetings, summarised under an 8 GB laptop's limits
#   make test    the whole test suite
# Another torch (PyTorch's own CPU builds, several GB smaller on Linux):
#   make demo TORCH="torch==2.13.0 --index-url <the CPU index that pytorch.org's install page shows>"

PYTHON ?= python3
TORCH ?= torch==2.13.0
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.seatrial-ready
OUT ?= out

.DEFAULT_GOAL := help
.PHONY: help demo test lint types format docs clean

help:
	@sed -n 's/^#//p' Makefile

# The stamp is as new as the files that decide what is installed; .venv is kept while it is current.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("seatrial needs Python >= 3.11, but $(PYTHON) is " + sys.version.split()[0] + "; set PYTHON=python3.11 or newer" if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	@# setuptools warns about folders beside the package, which are the package here.
	PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[export]" --group dev
	@touch $@

demo: $(STAMP)
	$(BIN)/seatrial run sample:en --device thin-laptop-8gb --out $(OUT)/en
	$(BIN)/seatrial run sample:zh --device thin-laptop-8gb --out $(OUT)/zh

test: $(STAMP)
	$(BIN)/python -m pytest

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) $(OUT) build dist
