.DEFAULT_GOAL := help
.PHONY: help build demo demo-postgres test race fuzz soak churn lag copy truth quorum test-mongod bench page lint interop check

# go run fetches and caches it; nothing is installed.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
# How long each fuzz target runs.
FUZZTIME ?= 10s
# Which packages of interop's module.
INTEROP ?= ./...
# How long the soak takes.
SOAK ?= 10m
# How long rules are changed under load, on each driver.
CHURN ?= 30s

# A mongod, for test-mongod.
MONGOD ?= mongod

# How long pgbench runs on each server, in each of its modes.
QUORUM ?= 60s

# Flags of the benchmarks, such as -quick.
BENCH ?=

# How many megabytes are copied.
COPY_MB ?= 1024

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' Makefile

build: ## build bin/wirewait
	go build -o bin/ ./cmd/wirewait

demo: ## a MongoDB replica set in three places: what each write waited for, and who released it
	go run ./cmd/wirewait demo

demo-postgres: ## the same with a real PostgreSQL primary and two standbys
	go run ./cmd/wirewait demo postgres

test: ## run the tests of the main module
	.ci/gotest -timeout 30m -- ./...

race: ## run them with the race detector
	.ci/gotest -race -timeout 40m -- ./...

fuzz: ## run every fuzz target for FUZZTIME (10s)
	.ci/fuzz $(FUZZTIME)

soak: ## mixed traffic over changing delays and dropped connections, for SOAK (10m), checksummed
	go test -race -count=1 -v -timeout 30m ./internal/soak -soak $(SOAK)

copy: ## copy COPY_MB (1024) in and out of PostgreSQL in flat memory, as make test does with 200
	WIREWAIT_COPY_MB=$(COPY_MB) go test -count=1 -v -run TestCopy_FlatMemoryBothWays ./proxy

churn: ## change rules 1,000 times a second under load, for CHURN (30s)
	go test -race -count=1 -v -run TestRules_ChangeUnderLoad ./proxy -churn $(CHURN)

lag: ## members four seconds behind for a minute, and what lags do to servers' time-outs
	go test -count=1 -v -timeout 20m -run 'Lag' ./proxy -lag 4s -lagging 1m

test-mongod: ## run the tests of replica sets on three real servers: MONGOD, or mongod on PATH
	WIREWAIT_MONGOD=$(MONGOD) go test -count=1 -v -timeout 30m -run 'Mongod$$' ./proxy ./proxy/observe
	cd internal/interop && WIREWAIT_MONGOD=$(MONGOD) go test -count=1 -v -timeout 30m -run '^TestMongodSet$$' ./mongodb

truth: ## who released each of 2,000 writes, and how long it waited, beside what a replica set notes of it; on a quiet machine
	go test -count=1 -v -run TestRealSet_ManyClientsAgainstTheTruth ./proxy -quiet

quorum: ## pgbench on a primary with two standbys, for QUORUM (60s) on each of 15, 17 and 18: who released each commit, beside the servers' logs; on a quiet machine
	go test -count=1 -v -timeout 40m -run TestRealQuorum ./proxy -quorum $(QUORUM) -quiet

bench: ## measure delay errors, overhead and memory beside their baselines (BENCH='-h' lists flags)
	go run ./internal/bench $(BENCH)

page: ## make the pictures of docs/page.md, in Chromium; two minutes
	cd internal/interop && WIREWAIT_SHOTS=$(CURDIR)/docs go test -count=1 -v -run TestShots ./page

lint: ## gofmt, go vet, staticcheck, go mod tidy
	@test -z "$$(gofmt -l .)" || { gofmt -l . ; echo 'run gofmt -w on these'; exit 1; }
	go vet ./... && go mod tidy -diff
	go run $(STATICCHECK) ./...

interop: ## run FerretDB and real drivers through it (a module of its own)
	cd internal/interop && go mod tidy -diff && ../../.ci/gotest -p 1 -timeout 40m -- $(INTEROP)

check: lint race ## what must pass before a commit
