# The targets create .venv when needed and run everything inside it.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# Workers share the cores: threads of their own, which wait by spinning, would slow each other down.
export OPENBLAS_NUM_THREADS := 1

NUMBERS := simulation/test_engine policies/test_every_policy policies/test_linear \
  policies/test_published_examples
LIGHT := test_contexts test_errors test_families test_kalman test_light test_model test_result \
  test_statistics test_steady_state test_system agent/test_agent agent/test_arms \
  agent/test_changes agent/test_contexts agent/test_failures agent/test_first_round \
  agent/test_history agent/test_kill agent/test_limits agent/test_random_lives agent/test_refitting agent/test_screening \
  agent/test_stored agent/test_threads gaussian/test_norms io/test_atomic io/test_model_file \
  monitoring/test_charts monitoring/test_disturbances monitoring/test_parts \
  policies/test_registry policies/test_ucb theory/test_bounds theory/test_exploration \
  theory/test_metric theory/test_mistakes

.PHONY: demo docs test numbers light nightly bench release-check lint clean

demo: $(VENV)/demo  ## compare the policies on random systems: a table and a plot in about a minute
	$(BIN)/driftbandit simulate --family all --systems 20 --runs 4 --rounds 500 --plot demo.png

test: $(VENV)/test lint  ## run the linter, the type checker and the tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --max-worker-restart 0

docs: $(VENV)/docs  ## run the gallery and build the site into site/
	$(BIN)/python tools/gallery.py build/gallery
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "The site is in site/: open site/index.html"

numbers: $(VENV)/test  ## run the tests that compare numbers, to check other XLA_FLAGS
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --max-worker-restart 0 $(NUMBERS:%=tests/%.py)

light:  ## test the plain install, in an environment with only numpy and scipy
	$(PYTHON) -m venv --clear .venv-light
	.venv-light/bin/python -m pip install --quiet --disable-pip-version-check . pytest hypothesis
	.venv-light/bin/python -m pytest -p no:cacheprovider $(LIGHT:%=tests/%.py)

lint: $(VENV)/test  ## run the linter and the type checker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

nightly: $(VENV)/test  ## run the long numerical tests
	$(BIN)/python -m pytest -n $(WORKERS) -m nightly

release-check: $(VENV)/release  ## build the release, install it in clean environments, and check it
	$(BIN)/python tools/release.py $(if $(TAG),--tag $(TAG))

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

$(VENV)/docs: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

$(VENV)/release: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[release]'
	@touch $@

$(VENV)/bench: $(VENV)/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

clean:
	rm -rf $(VENV) .venv-light .venv-docs .mypy_cache .pytest_cache .ruff_cache .hypothesis demo.png build dist site
