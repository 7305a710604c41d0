PYTHON ?= python3
BIN := .venv/bin
# What the demonstration needs, and what tests, checks and benchmarks need beside it (torch among it).
STAMP := .venv/.installed
DEV_STAMP := .venv/.installed-dev
# Packages that are only measured; some of them have licences that nothing here is to depend on.
PEERS_STAMP := .venv/.installed-peers
KERNELS := $(wildcard src/ngp/kernels/*.c src/ngp/kernels/*.h)
CHECKED := $(wildcard src tests benchmarks docs examples setup.py conftest.py)

.DEFAULT_GOAL := help
.PHONY: help demo test coverage fuzz sanitize browser lint bench bench-peers docs clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 13

# Editing a dependency, a constraint or a kernel installs (and compiles) anew.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e

$(STAMP): pyproject.toml constraints.txt setup.py $(KERNELS)
	test -x $(BIN)/pip || $(PYTHON) -m venv .venv
	$(INSTALL) '.[cli,report]'
	@touch $@

$(DEV_STAMP): $(STAMP)
	$(INSTALL) '.[dev]'
	@touch $@

$(PEERS_STAMP): $(STAMP)
	$(INSTALL) '.[peers,torch]'
	@touch $@

demo: $(STAMP) ## run the demonstration
	$(BIN)/ngp demo

test: $(DEV_STAMP) ## run the tests
	$(BIN)/python -m pytest -n 2

coverage: $(DEV_STAMP) ## run the tests, list the lines of the package that they miss, and fail below 95 %
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

fuzz: $(DEV_STAMP) ## compare the compiled kernels with their plain twins in a thousand random cases
	$(BIN)/python tests/fuzz.py

# Leaks aren't looked for: Python keeps much of its memory until the process ends, and so do the packages.
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZED = OMP_NUM_THREADS=1 PYTHONPATH=build/sanitize/lib PYTHONMALLOC=malloc ASAN_OPTIONS=detect_leaks=0 \
	LD_PRELOAD=$$(gcc -print-file-name=libasan.so) $(BIN)/python

sanitize: $(DEV_STAMP) ## run the compiled kernels, with every instruction set, so that memory errors and undefined behaviour fail
	CC=gcc CFLAGS="-g $(SANITIZE)" LDFLAGS="$(SANITIZE)" \
		$(BIN)/python setup.py --quiet build --build-base build/sanitize --build-lib build/sanitize/lib
	$(SANITIZED) -m pytest -p no:cacheprovider -m "not slow" tests/kernels/test_gather.py tests/kernels/test_perceptron.py \
		tests/kernels/test_scoring.py tests/kernels/test_screening_kernel.py tests/predictors/test_ssfn_blocks.py
	$(SANITIZED) tests/fuzz.py --cases 500

browser: ## install what the tests of the report need: Chromium (Debian's, if none is there) and axe-core
	command -v chromium >/dev/null || (apt-get update -qq && apt-get install -y -qq chromium >/dev/null)
	command -v npm >/dev/null || (apt-get update -qq && apt-get install -y -qq nodejs npm >/dev/null)
	npm ci --no-audit --no-fund --silent --prefix tests/report/browser

lint: $(DEV_STAMP) ## check style, format and types
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy

bench: $(DEV_STAMP) ## measure the speed and write benchmarks/results/speed.json
	mkdir -p benchmarks/results
	$(BIN)/python -m benchmarks.speed --json benchmarks/results/speed.json

bench-peers: $(PEERS_STAMP) ## measure NGP beside other packages and write benchmarks/results/peers.json and peers.md, README's lines and docs/peers.png
	mkdir -p benchmarks/results
	$(BIN)/python -m benchmarks.peers --whole --limit 120 --json benchmarks/results/peers.json
	$(BIN)/python -m benchmarks.peer_tables benchmarks/results/peers.json > benchmarks/results/peers.md
	$(BIN)/python -m docs.build_peers

docs: $(DEV_STAMP) ## build the documentation, docs/_build/index.html, run all its examples and check its numbers
	$(BIN)/python -m pytest -n 2 docs/tests
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going docs docs/_build
	@echo "Documentation: docs/_build/index.html"

clean: ## remove the environment, builds and caches
	rm -rf .venv build dist docs/_build docs/api/generated docs/gallery demo-report reproduction tests/report/browser/node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.*
	rm -rf src/*.egg-info src/ngp/kernels/*.so
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
