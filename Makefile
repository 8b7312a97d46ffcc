# The targets create .venv when needed and run everything inside it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# Workers share the cores: threads of their own, which wait by spinning, would slow each other down.
export OPENBLAS_NUM_THREADS := 1

NUMBERS := simulate every_policy rivals
LIGHT := agent agent_history agent_hostile agent_kill agent_machine agent_names agent_threads \
  agent_troubles constants discounted families huge kalman light lower_bounds metric mistakes \
  model model_file schedule statistics steady_state system

.PHONY: demo test numbers light nightly bench lint clean

demo: $(VENV)/demo  ## compare the policies on random systems: a table and a plot in under two minutes
	$(BIN)/driftbandit simulate --family all --systems 20 --runs 4 --rounds 500 --plot demo.png

test: $(VENV)/test lint  ## run the linter, the type checker and the tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

numbers: $(VENV)/test  ## run the tests that compare numbers, to check other XLA_FLAGS
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(NUMBERS:%=tests/test_%.py)

light:  ## test the plain install, in an environment with only numpy and scipy
	$(PYTHON) -m venv --clear .venv-light
	.venv-light/bin/python -m pip install --quiet --disable-pip-version-check . pytest hypothesis
	.venv-light/bin/python -m pytest -p no:cacheprovider $(LIGHT:%=tests/test_%.py)

lint: $(VENV)/test  ## run the linter and the type checker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

nightly: $(VENV)/test  ## run the long numerical tests
	$(BIN)/python -m pytest -n $(WORKERS) -m nightly

bench: $(VENV)/bench  ## measure speed against other programs in the same run
	$(BIN)/python benchmarks/engine.py

$(VENV)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "driftbandit needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/demo: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[all]'
	@touch $@

$(VENV)/test: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

$(VENV)/bench: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

clean:
	rm -rf $(VENV) .venv-light .mypy_cache .pytest_cache .ruff_cache .hypothesis demo.png
