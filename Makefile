# make demo    build the MQAR construction and show its sizes, margin and domain
# make nearest FILE=compiler/passes/schedule.py   run the tests nearest to a file
# make quick   run one test of each file; TOUCHED=1 names the modules of which no function ran
# make test    run every test; of those with many cases as many as take a quarter of a second
# make whole   run every case of every test
# make check   run ruff and mypy, which change nothing here
# make pages   count again what pages of docs/ say of the code: sizes, lemmas, passes, the public interface
# make bench   time the scan and the start of the command; keep how costs grow
# make hostile N=10000   damage checkpoints at random, ask too much of them, and verify them; kill processes that save
# make fuzz N=100000 START=0   random programs over the whole language: exact or refused, from a seed on
# make proofs N=5000     mutate checkpoints and hold the checker to its word
# make lemmas   check the lemmas of docs/proofs.md by machine, where Coq is installed
# make runtimes   read exports with every program that they are for, into docs/export.md
# make trust SHARE=1 WORKERS=8   all of these and the mutants, into docs/trust.md; stopped, it goes on where it was
# make site    build docs/ as a site with search into build/site; a link that leads nowhere is an error
# make clean   remove caches and outputs, keep .venv
# The first of these also makes .venv with everything in it; PYTHON chooses the interpreter (3.11 or newer).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INPUTS := pyproject.toml constraints.txt scripts/install-mamba-cpu constructions/command/install_mamba.py
OWN := $(BIN)/python -m pip install --quiet --upgrade --no-deps --target build/runtimes
INSTALL := $(BIN)/python -m pip install --quiet -c constraints.txt --no-build-isolation

COUNTED := scripts.api_reference scripts.pass_lists conformance.counts tests.verify.checker.size \
	tests.verify.checker.lemmas tests.verify.checker.proved tests.verify.kernel.cost tests.verify.kernel.size

# One thread: with several, OpenMP threads that spin on a shared machine make every small product slower.
export OMP_NUM_THREADS := 1
# Hundreds of our modules are compiled once, not at each start of a command, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
# pip compiles some 13,000 files of packages one after the other; BYTECODE does that on every core.
export PIP_COMPILE := 0
BYTECODE := $(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # some packages bring files that are no Python

.PHONY: demo nearest quick test whole check pages bench hostile fuzz proofs lemmas runtimes trust site clean

demo: $(VENV)/installed
	$(BIN)/construct mqar --kappa 16 --vocab 512

nearest: $(VENV)/installed-test
	tests=$$($(BIN)/python -m tests.nearest $(FILE)) && $(BIN)/python -m pytest -q $$tests

quick: $(VENV)/installed-test
	$(BIN)/python -m pytest -q --quick $(if $(TOUCHED),--touched)

# Each process takes a half in order, so what the tests of a file share is made once, and the faster one helps at the end.
test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal --spread

whole: $(VENV)/installed-test
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

pages: $(VENV)/installed-test
	@for page in $(COUNTED); do $(BIN)/python -m $$page || exit 1; done

bench: $(VENV)/installed
	$(BIN)/python benchmarks/scan.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python -m benchmarks.history

hostile: $(VENV)/installed-test
	$(BIN)/python -m tests.artifact.hostile $(or $(N),10000)
	$(BIN)/python -m tests.artifact.hostile $(or $(N),10000) --over oversized
	$(BIN)/python -m tests.artifact.kills 500

fuzz: $(VENV)/installed-test
	$(BIN)/python -m tests.fuzz --programs $(or $(N),1000) --start $(or $(START),0)

proofs: $(VENV)/installed-test
	$(BIN)/python -m tests.verify.checker.evidence $(or $(N),5000)

lemmas:
	lemmas/build

# Two clients need packages other than the project's own: an earlier transformers, and Triton for its interpreter.
runtimes: $(VENV)/installed-test
	$(OWN)/transformers transformers==4.57.6 huggingface_hub==0.36.2 tokenizers==0.22.2
	$(OWN)/triton triton==3.9.0
	$(BIN)/python -m tests.export --own transformers_old=build/runtimes/transformers triton_client=build/runtimes/triton

trust: $(VENV)/installed-test
	$(BIN)/python -m tests.trust --share $(or $(SHARE),1) $(if $(WORKERS),--workers $(WORKERS))

site: $(VENV)/installed-test
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

$(VENV)/installed: $(INPUTS)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	scripts/install-mamba-cpu $(BIN)/python
	$(INSTALL) -e .
	$(BYTECODE)
	touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(INSTALL) -e '.[test]'
	$(BYTECODE)
	touch $@

clean:
	rm -rf build out *.egg-info .pytest_cache .hypothesis
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
