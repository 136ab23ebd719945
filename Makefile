# Every command a person needs; `make help` lists them. Each sets up what it needs by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python

export PATH := $(CURDIR)/$(BIN):$(PATH)

CORE := $(shell find src/weft -name '*.py' -o -name '*.pxd' | sort)

.DEFAULT_GOAL := help
.PHONY: always dev help run demo browser test check format build bench bench-gateway bench-instructions bench-journal bench-lanes bench-mesh bench-peers bench-spark \
        bench-steady conformance interop requirements fuzz simulate races lane-runs soak crash-journal chaos lane-faults exactly-once lock clean test-compiled test-interpreted

help: ## list the commands
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build ## run a gateway on 127.0.0.1:7411 and print commands to try; ^C ends it
	@$(BIN)/weft serve

demo: build $(VENV)/.spark ## sensors at one of three gateways, subscribers at the others, a route that goes direct, and a Spark job that counts; ^C ends it
	@$(PY) -m examples.demo

test: check test-compiled test-interpreted ## every check and every test, compiled and interpreted

# Browser tests run where Chromium is installed, and are skipped elsewhere with the reason. Three at a
# time keep two cores busy: most of what a test does is to wait for another process.
test-compiled: dev
	@if command -v chromium >/dev/null; then $(MAKE) --no-print-directory $(VENV)/.browser; fi
	@echo "== tests, compiled core"
	@$(PY) -m pytest --numprocesses 3 -rs

test-interpreted: dev
	@echo "== core tests, interpreted core (WEFT_PURE=1), every line and branch covered"
	@WEFT_PURE=1 $(BIN)/coverage run -m pytest tests/wire tests/broker
	@$(BIN)/coverage report --fail-under=100

check: dev ## format, lint, types, layers, style
	@$(BIN)/ruff format --check --quiet . || { echo "not formatted: run 'make format'"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/cython-lint src
	@$(BIN)/mypy
	@$(PY) -m pytest tests/test_layers.py
	@$(PY) -m tools.style

format: $(VENV)/.installed ## rewrite the sources in the house format
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

bench: dev ## compiled against interpreted, and a million subscriptions
	@$(PY) -m benchmarks compiled subscriptions

bench-gateway: dev ## idle connections and tunnels, busy services, stopped readers, killed workers; about 4 minutes
	@$(PY) -m benchmarks stopped services recovery tunnels idle

bench-instructions: dev ## instructions a message by valgrind, AGAINST=TREE for those of another checkout, too; 5 minutes
	@$(PY) -m benchmarks.instructions $(if $(AGAINST),--against $(AGAINST))

bench-journal: dev $(VENV)/.peers ## messages that are kept, beside the durable logs of peers; ROUNDS=5, 10 minutes
	@$(PY) -m benchmarks.peers.kept --rounds $(or $(ROUNDS),5) --json build/kept.json --chart build/kept.svg

bench-lanes: dev $(VENV)/.peer-packages ## from client to client, relayed and by lanes, beside zenoh and pyzmq; ROUNDS=5, 12 minutes
	@$(PY) -m benchmarks.peers.lanes --rounds $(or $(ROUNDS),5) --json build/lanes.json --chart build/lanes.svg

bench-mesh: dev $(VENV)/.peers ## a hop between two gateways, beside one between two servers of NATS; ROUNDS=5, 4 minutes
	@$(PY) -m benchmarks.peers.hop --rounds $(or $(ROUNDS),5) --json build/hop.json --chart build/hop.svg

bench-peers: dev $(VENV)/.peers ## Weft and its peers side by side, brokers and Python clients; ROUNDS=5, 12 and 5 minutes
	@$(PY) -m benchmarks.peers --rounds $(or $(ROUNDS),5) --json build/peers.json --chart build/peers.svg
	@$(PY) -m benchmarks.peers.clients --rounds $(or $(ROUNDS),5) --json build/clients.json --chart build/clients.svg

bench-spark: dev $(VENV)/.peer-packages ## the journal as Spark reads it, beside native Parquet and DuckDB; ROWS=1000000, ROUNDS=5, 9 minutes
	@$(PY) -m benchmarks.pipeline --rows $(or $(ROWS),1000000) --rounds $(or $(ROUNDS),5) --json build/pipeline.json
	@$(PY) -m benchmarks.pipeline.latency

bench-steady: dev ## what a delivery costs beside many others, and over time; STEADY_S=600, and 3 minutes
	@$(PY) -m benchmarks steady

browser: dev $(VENV)/.browser ## weft.js in Node and in Chromium, which is installed first, 300 MB; 2 minutes
	@$(PY) -m pytest tests/javascript tests/browser

interop: dev $(VENV)/.interop build/interop/bayeux/.installed build/interop/eventsource/.installed build/interop/typescript/.installed ## clients that others wrote against a gateway; needs node 20 and npm
	@$(PY) -m pytest tests/interop

conformance: dev ## the Autobahn suite for WebSockets against a gateway; needs Python 2.7 as PYTHON2, 5 minutes
	@$(PY) -m tools.conformance

requirements: dev ## every requirement, the tests that prove it, and whether they pass
	@$(PY) tools/requirements.py

fuzz: dev $(VENV)/.fuzz ## feed the decoders hostile bytes; FUZZ_S=20 seconds for each
	@FUZZ_S=$(or $(FUZZ_S),20) $(PY) -m fuzz

simulate: dev ## meshes that break, on a made-up network, and every message accounted for; SEEDS=100000, hours
	@$(BIN)/weft simulate --seeds $(or $(SEEDS),100000)

races: dev ## channels of the same names opened at several gateways at once, while everything breaks; SEEDS=10000, 20 minutes
	@$(BIN)/weft simulate --channels --seeds $(or $(SEEDS),10000)

lane-runs: dev ## clients and a gateway on a made-up network, lanes that break, and every message accounted for; SEEDS=10000, half an hour
	@$(PY) -m tools.lane_runs --seeds $(or $(SEEDS),10000) --processes 2

soak: dev ## attack a running gateway at random; SOAK_S=600 seconds
	@$(PY) -m tools.soak $(or $(SOAK_S),600)

crash-journal: dev ## kill gateways and cut the power of their disks, and count what is lost; KILLS=100, CUTS=20
	@$(PY) -m tools.crashes --kills $(or $(KILLS),100) --cuts $(or $(CUTS),20) $(if $(SEED),--seed $(SEED))

chaos: dev ## break the links and processes of five gateways under load, and judge what was heard; CHAOS_S=120, PLACE=loopback
	@$(PY) -m tools.chaos --seconds $(or $(CHAOS_S),120) --place $(or $(PLACE),loopback) --max-links $(or $(MAX_LINKS),8) \
	    $(if $(SEED),--seed $(SEED))

lane-faults: dev ## break lanes between clients under load, and judge what was heard; PROMOTIONS=1000, PLACE=loopback, 5 minutes
	@$(PY) -m tools.lane_faults --promotions $(or $(PROMOTIONS),1000) --place $(or $(PLACE),loopback) $(if $(SEED),--seed $(SEED))

exactly-once: dev ## kill drivers and gateways under streaming queries, and count rows; ROWS=1000000, 35 minutes
	@$(PY) -m tools.exactly_once --rows $(or $(ROWS),1000000) $(if $(SEED),--seed $(SEED))

lock: $(VENV)/.installed ## write the lock files anew from requirements/*.in
	@$(BIN)/pip install --quiet --require-hashes -r requirements/lock.txt
	@for name in browser dev fuzz interop lock peers; do $(BIN)/uv pip compile --quiet --universal --python-version 3.11 \
	    --generate-hashes --no-header requirements/$$name.in -o requirements/$$name.txt; done
	@for name in spark run; do $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	    --no-header --constraints requirements/dev.txt requirements/$$name.in -o requirements/$$name.txt; done

clean: ## remove everything that was made here
	@rm -rf $(VENV) build .coverage .hypothesis .mypy_cache .pytest_cache .ruff_cache src/*.egg-info fuzz/corpus
	@find src -name '*.so' -delete
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

build: $(VENV)/.built

# What a gateway does not need is installed beside the build, once it is asked for.
dev: build $(VENV)/.installed

# A stale extension would hide an edited source, so any change below src/weft builds again.
$(VENV)/.built: $(VENV)/.gateway $(VENV)/.sources $(CORE) setup.py
	@$(PY) tools/progress.py "building the core" build/log -- \
	    $(PY) setup.py build_ext --inplace --parallel $(shell nproc) || \
	    { rm -rf build/cython; echo "weft: the core was not built, see above" >&2; exit 1; }
	@touch $@

# A module that is removed or renamed makes no other one newer, but it does change this list.
$(VENV)/.sources: $(VENV)/.gateway always
	@echo '$(CORE)' | cmp -s - $@ || echo '$(CORE)' >$@

# $(call install,TITLE,NAME) installs the locked packages of requirements/NAME.txt.
install = $(PY) tools/progress.py "installing $(1)" build/pip-$(2).log --total $$(grep -c '^[a-z].*==' requirements/$(2).txt) -- \
    $(BIN)/pip install --disable-pip-version-check --progress-bar off --require-hashes -r requirements/$(2).txt

# The virtual environment is made again if it was moved, or its Python is gone or another one.
$(VENV)/.python: always
	@tools/prepare.sh $(PYTHON) $(VENV)

$(VENV)/.gateway: $(VENV)/.python requirements/run.txt pyproject.toml
	@$(call install,what a gateway needs,run)
	@WEFT_IS_BUILT=1 $(BIN)/pip install --quiet --no-deps --no-build-isolation --no-index --editable .
	@touch $@

$(VENV)/.spark: $(VENV)/.gateway requirements/spark.txt
	@$(call install,Spark,spark)
	@touch $@

$(VENV)/.installed: $(VENV)/.spark requirements/dev.txt
	@$(call install,what tests and checks need,dev)
	@touch $@

$(VENV)/.browser: $(VENV)/.installed requirements/browser.txt tools/chromium.sh
	@tools/chromium.sh
	@echo "== installing what drives Chromium"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/browser.txt
	@touch $@

$(VENV)/.interop: $(VENV)/.installed requirements/interop.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/interop.txt
	@touch $@

build/interop/%/.installed: tests/interop/%/package.json tests/interop/%/package-lock.json
	@echo "== installing the stock clients of $*"
	@mkdir -p $(@D)
	@cp tests/interop/$*/package.json tests/interop/$*/package-lock.json $(@D)
	@cd $(@D) && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error
	@touch $@

$(VENV)/.fuzz: $(VENV)/.installed requirements/fuzz.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/fuzz.txt \
	    || { echo "weft: atheris, which fuzzing needs, cannot be installed for $$($(PY) --version)"; exit 1; }
	@touch $@

$(VENV)/.peers: $(VENV)/.peer-packages tools/peers.sh
	@tools/peers.sh
	@touch $@

$(VENV)/.peer-packages: $(VENV)/.installed requirements/peers.txt
	@echo "== installing the locked packages of the peers"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/peers.txt
	@touch $@
