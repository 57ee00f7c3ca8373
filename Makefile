# Targets for people and for CI; `make help` lists them.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# DuckDB's Arrow interface is behind this build tag; nothing that touches DuckDB builds without it.
TAGS    := duckdb_arrow
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null)
LDFLAGS := $(if $(VERSION),-X main.version=$(VERSION))
DIR     ?= .demo
PORT    ?= 3307

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1|/' | column -t -s '|'
	@echo
	@echo '  make demo DIR=folder PORT=number   where the demo keeps its state and listens'

.PHONY: build
build: toolchain ## build bin/sqe
	go build -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/sqe ./cmd/sqe

.PHONY: demo
demo: build ## start a server with sample data, users and policies
	bin/sqe demo --dir $(DIR) --port $(PORT)

.PHONY: test
test: toolchain ## checks, unit tests and end-to-end tests: what CI runs
	tests/run checks unit e2e

.PHONY: checks
checks: toolchain ## formatting, vet, staticcheck, import rules, the tree itself
	tests/run checks

.PHONY: unit
unit: toolchain ## unit tests, with the race detector
	tests/run unit

.PHONY: e2e
e2e: toolchain ## tests with real clients, TPC-H and the leak suite against a running server
	tests/run e2e

.PHONY: bench
bench: toolchain ## TPC-H SF1 against DuckDB alone, latency, streaming: prints the figures
	tests/run bench

.PHONY: bench-large
bench-large: toolchain ## GROUP BY over TPC-H SF10 under a memory limit: prints resident memory
	tests/run bench-large

.PHONY: fuzz
fuzz: toolchain ## every fuzz target for FUZZTIME (default 30s)
	tests/run fuzz

.PHONY: clean
clean: ## remove what the build and the demo left in this folder
	rm -rf bin .demo .cache

# A missing tool is a sentence that says what to do, not a page of compiler output.
.PHONY: toolchain
toolchain:
	@command -v go >/dev/null || { echo 'make: Go is missing. Install Go 1.26 or newer (https://go.dev/doc/install) and put it into PATH.' >&2; exit 1; }
	@go version | grep -qE 'go(1\.(2[6-9]|[3-9][0-9])|[2-9])' || { echo "make: $$(go version) is too old. Install Go 1.26 or newer (https://go.dev/doc/install)." >&2; exit 1; }
	@for cc in c++ g++ clang++; do command -v $$cc >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends g++ >/dev/null; \
	else \
		echo 'make: a C++ compiler is missing; DuckDB is linked with one. Debian: apt-get install g++. Fedora: dnf install gcc-c++. macOS: xcode-select --install.' >&2; exit 1; \
	fi
