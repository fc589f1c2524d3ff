# make demo    build the MQAR construction and show its sizes, margin and domain
# make test    run every test
# make bench   time the scan
# make clean   remove caches and outputs, keep .venv
# The first of these also makes .venv with everything in it; PYTHON chooses the interpreter (3.11 or newer).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt scripts/install-mamba-cpu constructions/install_mamba.py
INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation

# One thread: with several, OpenMP threads that spin on a shared machine make every small product slower.
export OMP_NUM_THREADS := 1

.PHONY: demo test bench clean

demo: $(VENV)/installed
	$(BIN)/construct mqar --kappa 16 --vocab 512

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2

bench: $(VENV)/installed
	$(BIN)/python benchmarks/scan.py

$(VENV)/installed: $(INPUTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	scripts/install-mamba-cpu $(BIN)/python
	$(INSTALL) -e .
	touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(INSTALL) -e '.[test]'
	touch $@

clean:
	rm -rf build out *.egg-info .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
