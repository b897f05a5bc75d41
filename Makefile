# The short commands; each sets up what it needs. `make` without a target lists them.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
# The first Python on the path that is new enough; override with `make PYTHON=...`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)

# The tests start many commands, and each would compile all of Venire again.
unexport PYTHONDONTWRITEBYTECODE

ROOMS := arena configs judges storage ratings orchestrator reports pages simulation venire $(patsubst tests/%/,%,$(filter-out %__pycache__/,$(wildcard tests/venire/*/)))

.PHONY: help install demo test collected test-slow test-browser test-ray torture bench bench-peers bench-peers-lock bench-ratings bench-ratings-peers bench-ratings-peers-lock bench-policies bench-resume bench-lag bench-prefixes bench-limiter bench-refusals bench-simulated bench-widths bench-placing bench-page bench-report bench-batches bench-partitions coverage fuzz agreement figures screens notebook examples lint lock clean

help:
	@echo "make demo       set up and run a complete campaign without any key"
	@echo "make test       set up, lint, check types, run the tests; ROOM=ratings runs those of one room alone"
	@echo "make test-slow  the tests that take minutes"
	@echo "make test-browser  the web pages in a real browser; installs Debian's chromium where there is none"
	@echo "make test-ray   what runs on Ray, on a cluster of this machine; installs Ray (285 MB) into the environment"
	@echo "make torture    kill, stop, starve and mislead 200 campaigns, kill some at each step of a batch, and shards that take each other over; check their books (ROUNDS=200 SEED=0)"
	@echo "make fuzz       a million random and hostile replies to the rules that read verdicts (COUNT=1000000 SECONDS=900)"
	@echo "make agreement  how often these rules read recorded judges as published; VENIRE_DATA names the records"
	@echo "make bench      the engine beside bare clients and other tools: docs/performance.md"
	@echo "make bench-peers   set up those other tools, each in an environment of its own; without one its row is left out"
	@echo "make bench-ratings  ratings from pairs beside other libraries: docs/performance.md; bench-ratings-peers sets those up"
	@echo "make bench-policies  what each policy makes of the same verdicts, beside the best possible: docs/policies.md"
	@echo "make bench-resume, bench-lag, bench-prefixes, bench-limiter, bench-refusals, bench-simulated, bench-widths, bench-placing, bench-page, bench-report, bench-batches, bench-partitions   measurements, see benchmarks/README.md"
	@echo "make coverage  how often intervals hold the truth of simulated worlds: docs/ratings.md, docs/judges.md (REPLICATES=300)"
	@echo "make figures    draw docs/figures/*.svg again, each from battles simulated with a seed"
	@echo "make screens    take pictures of the web pages into docs/screens/; VENIRE_DATA names the records"
	@echo "make notebook   run the cells of examples/notebook.ipynb and keep what they show"
	@echo "make examples   run the demo and the notebook, and keep in examples/ what they leave, with the demo's report"
	@echo "make lock       renew requirements.lock and requirements-ray.lock (needs uv)"
	@echo "make clean      remove the virtual environment and caches"

install: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "venire needs Python 3.11 or newer: install it, or name it with make PYTHON=..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: install
	$(BIN)/venire demo

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# ROOM=ratings runs the tests of one room alone, ROOM=venire/running those of one of its folders.
test: install
ifdef ROOM
	@test -d tests/$(ROOM) || { echo "there is no room $(ROOM); there are: $(ROOMS)"; exit 2; }
	$(BIN)/pytest -q -n 4 --dist worksteal tests/$(ROOM)
else
	$(MAKE) --no-print-directory --jobs=2 lint collected
	$(BIN)/pytest -q -n 4 --dist worksteal
endif

# Reads and compiles the tests once, beside the type checker; four workers would each do it at the same time.
collected: install
	@$(BIN)/pytest -qq --collect-only > /dev/null || $(BIN)/pytest -q --collect-only

test-slow: install
	$(BIN)/pytest -q -m "slow and not browser"
	$(BIN)/pytest -q -m "hypothesis and not slow and not browser and not ray" --hypothesis-profile many

# As in tests/browser/conftest.py.
BROWSERS := chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable
APT_GET = $(shell test "$$(id -u)" = 0 || command -v sudo) env DEBIAN_FRONTEND=noninteractive apt-get -qq

# BROWSER=browser runs those that are slow as well.
BROWSER ?= browser and not slow

test-browser: install
	@for one in $(BROWSERS); do command -v $$one > /dev/null && exit; done; $(APT_GET) update; \
		$(APT_GET) install -y chromium-headless-shell || $(APT_GET) install -y chromium || \
		{ echo "the browser tests need Chromium: install the package chromium, or Chrome, so that one of these is on PATH: $(BROWSERS)"; exit 2; }
	$(BIN)/pytest -q -n 2 --dist loadfile -m "$(BROWSER)" tests/browser

# Ray is an extra: only its tests need it. RAY=ray runs those that are slow as well.
RAY ?= ray and not slow

test-ray: $(VENV)/.installed-ray
	$(BIN)/pytest -q -m "$(RAY)"

$(VENV)/.installed-ray: $(VENV)/.installed requirements-ray.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-ray.lock
	@touch $@

ROUNDS ?= 200
SEED ?= 0

torture: install
	$(BIN)/python -m tests.torture --rounds $(ROUNDS) --seed $(SEED)
	$(BIN)/python -m tests.torture.waves
	$(BIN)/python -m tests.torture.shards --seed $(SEED)
	@if $(BIN)/python -c 'import ray' 2>/dev/null; then $(BIN)/python -m tests.torture.actors --helpers --trials 1900; \
		else echo "Ray's own processes are not killed: make test-ray installs Ray"; fi

COUNT ?= 1000000
SECONDS ?= 900

fuzz: install
	$(BIN)/python -m tests.judges.fuzzing --count $(COUNT) --seconds $(SECONDS) --seed $(SEED)

agreement: install
	$(BIN)/python -m tests.judges.agreement

bench: install
	$(BIN)/python benchmarks/bench.py --judge

PEERS := $(basename $(notdir $(wildcard benchmarks/peers/*.lock)))

# The tools that the engine is measured beside, each in an environment of its own; without one its row is left out.
bench-peers: $(PEERS:%=.venv-peers/%/.installed)

.venv-peers/%/.installed: benchmarks/peers/%.lock
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r $<
	@touch $@

# Needs uv.
bench-peers-lock:
	for peer in $(PEERS); do uv pip compile benchmarks/peers/$$peer.in --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --upgrade -o benchmarks/peers/$$peer.lock || exit; done

bench-ratings: install
	$(BIN)/python benchmarks/ratings/bench.py --judge

bench-policies: install
	$(BIN)/python benchmarks/policies/bench.py --judge

RATERS := $(basename $(notdir $(wildcard benchmarks/ratings/peers/*.lock)))
RATERS_HOME := .venv-peers/ratings
# FastChat's last release has no rating_systems.py: the file is taken from its repository, at one commit.
FASTCHAT := https://raw.githubusercontent.com/lm-sys/FastChat/e208d5677c6837d590b81cb03847c0b9de100765/fastchat/serve/monitor/rating_systems.py
FASTCHAT_SHA256 := cf73707b39e5b97cf890f117f9afef088fa781f6891391e14631dc4ed4a920cf

# One library that cannot be had leaves its own rows out, not those of the others.
bench-ratings-peers:
	-$(MAKE) --keep-going $(RATERS:%=$(RATERS_HOME)/%/.installed) $(RATERS_HOME)/fastchat/rating_systems.py

$(RATERS_HOME)/%/.installed: benchmarks/ratings/peers/%.lock
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $<
	@touch $@

$(RATERS_HOME)/fastchat/rating_systems.py: $(RATERS_HOME)/fastchat/.installed
	curl --fail --silent --show-error --location --max-time 60 -o $@.new $(FASTCHAT)
	echo "$(FASTCHAT_SHA256)  $@.new" | sha256sum --check --quiet
	mv $@.new $@

# Needs uv.
bench-ratings-peers-lock:
	for peer in $(RATERS); do uv pip compile benchmarks/ratings/peers/$$peer.in --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --upgrade -o benchmarks/ratings/peers/$$peer.lock || exit; done

bench-resume: install
	$(BIN)/python benchmarks/resume.py

bench-lag: install
	$(BIN)/python benchmarks/loop_lag.py

bench-batches: install
	$(BIN)/python benchmarks/batches.py
	$(BIN)/python benchmarks/batches.py --protocol two-stage

bench-prefixes: install
	$(BIN)/python benchmarks/prefixes.py

bench-limiter: install
	$(BIN)/python benchmarks/limiter.py

bench-refusals: install
	$(BIN)/python benchmarks/refusals.py --judge

bench-simulated: install
	$(BIN)/python benchmarks/simulated.py

bench-widths: install
	$(BIN)/python benchmarks/widths.py

bench-partitions: install
	$(BIN)/python benchmarks/partitions.py --kinds ranges shards

REPLICATES ?= 300
coverage: install
	$(BIN)/python benchmarks/coverage/run.py --replicates $(REPLICATES)

bench-placing: install
	$(BIN)/python benchmarks/placing/bench.py

bench-page: install
	$(BIN)/python benchmarks/page.py --judge

bench-report: install
	$(BIN)/python benchmarks/report.py --judge

figures: install
	$(BIN)/python docs/figures/make.py

screens: install
	$(BIN)/python docs/screens/make.py

notebook: install
	$(BIN)/python examples/make_notebook.py

examples: install notebook
	$(BIN)/python examples/make_demo.py

# One resolution for Python 3.11 to 3.13 and every platform, with hashes and without an index's address. That of Ray
# keeps to the versions of the first, since both are installed side by side.
lock:
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade -o requirements.lock
	uv pip compile --group pyproject.toml:ray --constraint requirements.lock --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --upgrade -o requirements-ray.lock

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache build dist
