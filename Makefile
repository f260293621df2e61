# Every target bootstraps its own environment; `make` alone lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PY := .venv/bin/python
RUN := .venv/bin/

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z][a-z-]*:.*## / {printf "  \033[1mmake %-8s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.venv/.synced: uv.lock pyproject.toml bootstrap.sh
	@./bootstrap.sh

.PHONY: generate
generate: .venv/.synced ## Write the client's generated code: the synchronous half, shapes and models
	@$(PY) -m tools.generate

.PHONY: demo
demo: generate ## All three workloads in a minute, a worker killed on the way, and a page to look at
	@$(RUN)penstock demo

.PHONY: up
up: generate ## Start everything on this machine and print its address
	@$(RUN)penstock up

JOBS ?= 3
.PHONY: test
test: check fetch ## All checks and tests on real servers, JOBS files at a time; LOAD=8 adds busy processes
	@$(if $(LOAD),$(PY) -m tools.busy $(LOAD) )$(RUN)pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(ARGS)

.PHONY: quick
quick: check ## The inner loop: all checks and the tests that need no JVM, browser, notebook or chaos
	@$(RUN)pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder --quick -q $(ARGS)

.PHONY: fetch
fetch: generate ## Get the real servers and engines that tests need and this machine lacks
	@$(PY) -m tests.servers.fetch

.PHONY: check
check: generate ## Format, lint, types, imports
	@$(RUN)ruff format --check .
	@$(RUN)ruff check .
	@$(RUN)mypy
	@$(PY) -m tools.vague_names
	@$(PY) -m tools.import_contracts --check
	@$(RUN)lint-imports --no-logo

.PHONY: format
format: .venv/.synced ## Rewrite the code in the project's format
	@$(RUN)ruff format .
	@$(RUN)ruff check --fix .

.PHONY: ui
ui: ## Build the graph drawing from ui/ into the package (needs Node 20; users need none)
	@cd ui && npm ci --silent && npm run --silent build

N ?= 1000
.PHONY: chaos
chaos: generate ## Storm N schedules (default 1000) and check the history; SEED=n replays one, QUEUE=nats announces by NATS
	@$(PY) -m tests.chaos --schedules $(N) $(if $(SEED),--seed $(SEED)) $(if $(QUEUE),--queue $(QUEUE))

.PHONY: fuzz
fuzz: fetch ## Run the fuzzer NAME (api, graphs, maintenance, reconcile, snapshots) on N generated cases (default 1000); SEED=n replays
	@[ -n "$(NAME)" ] || { echo "Say which: make fuzz NAME=api|graphs|maintenance|reconcile|snapshots" >&2; exit 2; }
	@$(PY) -m tests.fuzz $(NAME) --cases $(N) $(if $(SEED),--seed $(SEED))

.PHONY: test-cluster
test-cluster: generate ## Penstock on a real Kubernetes, built and run on this machine (needs root and Go); ARGS chooses steps
	@$(PY) -m tests.cluster $(ARGS)

.PHONY: bench
bench: .venv/.synced ## Measure NAME beside its peers and write bench/ledger/NAME.json; ARGS are its own
	@[ -n "$(NAME)" ] || { echo "Say which: make bench NAME=$$(cd bench && ls -d */ | grep -v -e ledger -e __ | tr -d / | paste -sd'|')" >&2; exit 2; }
	@./bootstrap.sh --group bench
	@$(PY) -m bench.$(NAME) $(ARGS)

.PHONY: manifests
manifests: .venv/.synced ## Write the Kustomize base from the Helm chart
	@$(PY) -m tools.manifests

.PHONY: sbom
sbom: .venv/.synced ## Write the CycloneDX bill of materials of all runtime packages to dist/sbom.cdx.json
	@$(PY) -m tools.sbom

.PHONY: advisories
advisories: .venv/.synced ## Hold uv.lock against the advisory database in the folder PENSTOCK_ADVISORIES; nothing is fetched
	@PENSTOCK_ADVISORIES="$(PENSTOCK_ADVISORIES)" $(PY) -m tools.advisories

.PHONY: abuse
abuse: ## Two minutes of hostile clients beside normal users; writes bench/ledger/abuse.json
	@$(MAKE) --no-print-directory bench NAME=abuse

.PHONY: clean
clean: ## Remove the environment and caches (never data)
	rm -rf .venv .cache .mypy_cache .ruff_cache .pytest_cache
