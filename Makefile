# Everything from a fresh clone, with nothing but Python 3.11+, Rust and a package index (Rust is installed where
# Debian's packages may be).
#   make demo    the main job on embedded defaults: two providers, one service, one portal
#   make test    the whole fast suite (installs Debian's chromium, Apache and nginx for the tests where it may)
#   make test-cluster   the same promises on PostgreSQL and OpenSearch: installs Debian's packages where it may,
#                resolves OpenSearch by Maven (kept in the user's cache), and starts one of each
#   make dist    a wheel in dist/
#   make docs    the documentation site, in site/
#   make check   lint, types and tests, of Rust and Python: what CI runs
#   make fuzz    every reader of foreign bytes on inputs that nobody wrote, a minute each; TARGET=oai for one alone
#   make fuzz-core   the same for the Rust crate, by cargo-fuzz; TARGET=page for one alone
#   make evidence   every experiment anew, some 100 minutes on two idle cores; INDLET_DATA names the collections

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CORE := src/indlet/_core.abi3.so
CORE_SOURCES := Cargo.toml Cargo.lock core/Cargo.toml $(shell find core/src -name '*.rs')

.PHONY: docs fuzz dist rust demo test test-cluster postgresql opensearch check lint types browser servers evidence bench clean lock hashes

demo: $(STAMP) $(CORE)
	$(BIN)/indlet demo $(DEMO)

# In parallel: three at a time on two cores, because many tests wait for servers and browsers.
test: $(STAMP) $(CORE) browser servers
	$(BIN)/python -m pytest -n $$(( $$(nproc 2>/dev/null || echo 2) * 3 / 2 )) --dist loadgroup $(PYTEST)

# What is promised of every store, on PostgreSQL, and of every index, on OpenSearch; what runs on the embedded ones is
# `make test`. INDLET_TEST_POSTGRESQL and INDLET_TEST_OPENSEARCH name servers that run already.
test-cluster: $(STAMP) $(CORE) postgresql opensearch
	INDLET_TEST_STORE=postgresql INDLET_TEST_INDEX=opensearch $(BIN)/python -m pytest $(CLUSTER) \
	  -k "not sqlite and not embedded" -n 3 $(PYTEST)

CLUSTER := tests/store tests/service/test_equality.py tests/provider/test_crawl_killed.py \
  tests/service/harvest/test_harvest_owed.py tests/service/harvest/test_unchanged.py tests/service/harvest/test_set_names.py \
  tests/service/index/test_index_contract.py tests/cluster tests/service/search/test_search.py

postgresql:
	@test -n "$$INDLET_TEST_POSTGRESQL" || command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql >/dev/null; } || \
	  { echo "no PostgreSQL here and no right to install it: set INDLET_TEST_POSTGRESQL to the URL of a server"; exit 1; }

opensearch:
	@test -n "$$INDLET_TEST_OPENSEARCH" || { command -v mvn && command -v java; } >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    apt-get install -y -qq --no-install-recommends maven openjdk-17-jre-headless >/dev/null; } || \
	  { echo "no Maven or Java here and no right to install them: set INDLET_TEST_OPENSEARCH to a node's URL"; exit 1; }

# A wheel that can be installed anywhere.
dist: $(STAMP)
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	@ls dist/*.whl

check: lint types test-core test

lint: $(STAMP)
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench
	cargo fmt --check
	cargo clippy --quiet --all-targets --all-features -- -D warnings

test-core: rust
	cargo test --quiet

types: $(STAMP)
	$(BIN)/mypy

# Everything the commands and the tests need, at the versions that constraints.txt pins.
# requirements.txt has the same with the hashes of every file: what is installed is what was tested, to the byte.
$(STAMP): pyproject.toml constraints.txt requirements.txt | rust
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --require-hashes --no-deps --requirement requirements.txt
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pip install --quiet --no-build-isolation --constraint constraints.txt --editable ".[all]" --group dev
	$(BIN)/python -m compileall -q src  # as in an installation; without it a start takes twice as long where Python may not write
	touch $@

# The core is compiled ahead of time; `pip install` above has done so once.
$(CORE): $(CORE_SOURCES) $(STAMP)
	$(BIN)/maturin develop --quiet --release --skip-install
	touch $@

# Debian 12 has a current Rust under other names. Anybody else installs it: https://rustup.rs
rust:
	@command -v cargo >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    { apt-get install -y -qq --no-install-recommends rustc-web cargo-web gcc >/dev/null 2>&1 || \
	      apt-get install -y -qq --no-install-recommends rustc cargo gcc >/dev/null; }; } || \
	  { echo "Rust is missing: install rustc and cargo 1.85 or newer (https://rustup.rs), then try again"; exit 1; }

# Browser tests use the system's chromium; without one, and without the right to install it, they say so and skip.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && \
	    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; } || \
	  echo "no chromium here and no right to install it: the browser tests will be skipped"

# The tests of sites start real web servers; without them, and without the right to install them, they skip.
servers:
	@{ command -v apache2 && command -v nginx; } >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    apt-get install -y -qq --no-install-recommends apache2 libapache2-mod-php nginx-light caddy >/dev/null; } || \
	  echo "no Apache or nginx here and no right to install them: the tests of sites will be skipped"

# TARGET: oai bounds marc rtf mail sgml html files archives query tokens settings feed compressed didl api
fuzz: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group fuzz || \
	  echo "atheris or schemathesis cannot be installed here: mutations of our own instead"
	$(BIN)/python -m bench.fuzz $(TARGET) $(FUZZ)
	@test -n "$(TARGET)" || $(MAKE) --no-print-directory fuzz-core

# The crate's own targets: page vector positions segment query. libFuzzer without a sanitizer needs no nightly compiler.
fuzz-core: rust
	@command -v cargo-fuzz >/dev/null || cargo install --quiet cargo-fuzz || \
	  { echo "cargo-fuzz cannot be installed here: the targets of core/fuzz are left out"; exit 0; }; \
	if command -v cargo-fuzz >/dev/null; then cd core && for target in $(or $(TARGET),page vector positions segment query); do \
	  RUSTC_BOOTSTRAP=1 cargo fuzz run --sanitizer none $$target -- -max_total_time=$(or $(SECONDS),60) -timeout=10 || exit 1; \
	done; fi

# The documentation site, in site/; warnings are errors.
docs: $(STAMP) $(CORE)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	$(BIN)/python -m sphinx -q -W --keep-going -c docs -d .sphinx . site
	@echo site/docs/index.html

evidence: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group bench
	$(BIN)/python -m bench.evidence $(EVIDENCE)

# Pin again, after a change of dependencies.
lock: $(STAMP)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet pyproject.toml --all-extras --group dev --group bench --group fuzz --group docs --universal \
	  --python-version 3.11 --upgrade --no-annotate --no-header --no-emit-index-url | grep == > constraints.txt
	$(MAKE) hashes

# After a change of constraints.txt by hand: the hashes of what it pins.
hashes: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
	  --constraint constraints.txt --generate-hashes --no-annotate --no-header --no-emit-index-url \
	  --output-file requirements.txt.new && mv requirements.txt.new requirements.txt
	$(BIN)/uv pip compile --quiet pyproject.toml --extra service --extra postgresql --extra opensearch --universal \
	  --python-version 3.11 --constraint constraints.txt --generate-hashes --no-annotate --no-header --no-emit-index-url \
	  --output-file deploy/requirements.txt.new && mv deploy/requirements.txt.new deploy/requirements.txt

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) target demo-data .mypy_cache .ruff_cache .pytest_cache
