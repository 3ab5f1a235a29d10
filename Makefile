# What can be made here; `make help` lists it. Set-up needs Rust (rust-toolchain.toml names the
# version), Python 3.11 or newer, a C compiler and make; everything else is fetched.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --warn-undefined-variables

CARGO ?= cargo
PYTHON ?= python3
# Figures to re-create (none named: all of them), how thoroughly, and where they go.
FIGURES ?=
PROFILE ?= quick
OUT ?= out

VENV := .venv
BIN := $(VENV)/bin

# The binding is compiled from these; Python sources are used in place.
BINDING_SOURCES := Cargo.toml Cargo.lock python/pyproject.toml \
	$(wildcard crates/tresse-py/Cargo.toml crates/tresse-sim/Cargo.toml crates/tresse-plugin/Cargo.toml \
	           crates/tresse-proto/Cargo.toml crates/tresse-policy/Cargo.toml crates/tresse-wire/Cargo.toml) \
	$(shell find crates/tresse-py crates/tresse-sim/src crates/tresse-plugin/src crates/tresse-proto/src crates/tresse-policy/src \
	        crates/tresse-wire/src -name '*.rs')

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(firstword $(MAKEFILE_LIST)) | sed -E 's/:[^#]*## /\t/' | expand -t 20

# ---- use ---------------------------------------------------------------------------------------

.PHONY: reproduce
reproduce: $(VENV)/.binding ## re-create the papers' figures: out/report.html (PROFILE=paper: as long as the papers ran)
	$(BIN)/tresse-lab reproduce $(FIGURES) --profile $(PROFILE) --out $(OUT)

.PHONY: reproduce-check
reproduce-check: $(VENV)/.binding ## the same, and fail unless every row has the verdict that python/expected.toml has for it
	$(BIN)/tresse-lab reproduce --profile quick --out $(OUT) --require-claims python/expected.toml

.PHONY: build
build: $(VENV)/.binding ## target/release/tresse and .venv/bin/tresse-lab
	$(CARGO) build --locked --release --package tresse-cli

# The socket interface for C: libraries, header and what pkg-config tells of them.
PREFIX ?= /usr/local
DESTDIR ?=
SOCKETS_INTO = $(DESTDIR)$(PREFIX)

# Where the build has put the library; a test installs its own.
SOCKETS_BUILT = $${CARGO_TARGET_DIR:-target}/release
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
# Programs ask for this name, which changes when the interface does.
SONAME = libtresse_sockets.so.0

.PHONY: install-sockets
install-sockets: ## the C library tresse-sockets, its header and tresse-sockets.pc (PREFIX=/usr/local, DESTDIR=)
	$(CARGO) rustc --locked --release --package tresse-sockets --lib -- -C link-arg=-Wl,-soname,$(SONAME)
	install -d $(SOCKETS_INTO)/lib/pkgconfig $(SOCKETS_INTO)/include
	install -m 755 $(SOCKETS_BUILT)/libtresse_sockets.so $(SOCKETS_INTO)/lib/libtresse_sockets.so.$(VERSION)
	ln -sf libtresse_sockets.so.$(VERSION) $(SOCKETS_INTO)/lib/$(SONAME)
	ln -sf $(SONAME) $(SOCKETS_INTO)/lib/libtresse_sockets.so
	install -m 644 $(SOCKETS_BUILT)/libtresse_sockets.a $(SOCKETS_INTO)/lib/
	install -m 644 include/tresse_sctp.h include/tresse_scheduler.h $(SOCKETS_INTO)/include/
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' crates/tresse-sockets/tresse-sockets.pc.in > $(SOCKETS_INTO)/lib/pkgconfig/tresse-sockets.pc

# ---- check -------------------------------------------------------------------------------------

.PHONY: test
test: fmt-check check-house lint check-targets py-lint rust-test swarm-fresh py-test ## everything that CI runs

.PHONY: fmt
fmt: $(VENV)/.binding ## format Rust and Python
	$(CARGO) fmt --all
	cd python && ../$(BIN)/ruff format --config pyproject.toml . ../tools ../examples

.PHONY: fmt-check
fmt-check:
	$(CARGO) fmt --all --check

.PHONY: lint
lint: ## clippy, warnings are errors
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	# The core without the features that other members of the workspace switch on.
	$(CARGO) clippy --locked --package tresse-policy --package tresse-proto --all-targets -- -D warnings
	# Sockets without encryption.
	$(CARGO) clippy --locked --package tresse --no-default-features --all-targets -- -D warnings

# Where the tests do not run it is checked that everything compiles. The command line's checksums and the cryptography
# have parts in C, for which a compiler for that system would be needed: there the first are left to Rust, and of the second
# only Rust is looked at, with `true` for a C compiler.
WASM := wasm32-unknown-unknown
SYSTEMS := x86_64-pc-windows-gnu aarch64-apple-darwin

.PHONY: check-targets
check-targets: ## whether all crates compile for Windows and macOS, and wire, policies, core and simulator for WebAssembly
	@for target in $(WASM) $(SYSTEMS); do \
		if ! rustup target add $$target >/dev/null 2>&1; then \
			echo "check-targets: skipped $$target: rustup cannot add it"; continue; \
		fi; \
		parts="--workspace"; \
		[[ $$target == $(WASM) ]] && parts="--package tresse-wire --package tresse-policy --package tresse-proto --package tresse-sim"; \
		CARGO_FEATURE_PURE=1 CC=true AR=true $(CARGO) check --locked --quiet --target $$target $$parts && echo "check-targets: $$target compiles" || exit 1; \
	done

.PHONY: check-house
check-house: ## file and function budgets; links, files and tests that the documentation names
	$(PYTHON) -m doctest tools/check_house.py tools/check_docs.py tools/bench_against.py
	$(PYTHON) tools/check_house.py
	$(PYTHON) tools/check_docs.py

# The oldest compiler that the packages name: older than that of the other checks.
OLDEST = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

# Programs of others do the last three; CI installs them.
.PHONY: check-packages
check-packages: ## documentation without warnings, licences of dependencies, spelling, interfaces since the last release; CI runs it too
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --locked --no-deps --workspace --lib
	@if rustup toolchain install $(OLDEST) --profile minimal >/dev/null 2>&1; then \
		RUSTUP_TOOLCHAIN=$(OLDEST) CARGO_TARGET_DIR=target/oldest cargo check --locked --quiet --workspace; \
	else echo "check-packages: skipped the oldest compiler: rustup cannot add Rust $(OLDEST)"; fi
	@skipped() { echo "check-packages: skipped $$1: $$2 is missing"; }; \
	if command -v cargo-deny >/dev/null; then $(CARGO) deny --locked check; else skipped licences cargo-deny; fi; \
	if command -v typos >/dev/null; then typos; else skipped spelling typos; fi; \
	last=$$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true); \
	if [[ -z $$last ]]; then skipped interfaces "a release"; \
	elif command -v cargo-semver-checks >/dev/null; then $(CARGO) semver-checks --baseline-rev "$$last"; \
	else skipped interfaces cargo-semver-checks; fi

.PHONY: rust-test
rust-test: ## Rust tests: unit, property, simulation, command line, tshark, documentation
	$(CARGO) test --locked --workspace --no-fail-fast

# AWS-LC takes a minute to compile, so the other tests do without it.
.PHONY: aws-lc-test
aws-lc-test: ## tests of encryption with the cryptography of AWS-LC (a C compiler): X25519MLKEM768, records, associations over loopback
	$(CARGO) test --locked --package tresse --features aws-lc-rs --lib security
	$(CARGO) test --locked --package tresse --features aws-lc-rs --test secured

.PHONY: py-lint
py-lint: $(VENV)/.binding
	cd python && ../$(BIN)/ruff format --config pyproject.toml --check . ../tools ../examples
	cd python && ../$(BIN)/ruff check --config pyproject.toml . ../tools ../examples
	cd python && ../$(BIN)/mypy

.PHONY: py-test
py-test: $(VENV)/.binding
	cd python && ../$(BIN)/pytest

.PHONY: py
py: py-lint py-test ## the Python half of `make test`

# ---- search for faults --------------------------------------------------------------------------

# How many random simulations, or for how long, from which seed on (none: where nobody has been); or one of them, by its
# SEED or the file with its SCRIPT.
SEEDS ?=
MINUTES ?= 1
FIRST ?=
JOBS ?= $(shell nproc)
SEED ?=
SCRIPT ?=
CENSUS ?=

.PHONY: swarm
swarm: ## random simulations with rules after every event (SEEDS=100000, FIRST=7; SEED=7 or SCRIPT=file shows one, packet by packet)
	$(CARGO) run --locked --quiet --profile swarm --package tresse-swarm -- \
		$(if $(SEED),--seed $(SEED),$(if $(SCRIPT),--script $(SCRIPT),$(if $(FIRST),--first $(FIRST)) --jobs $(JOBS) $(if $(SEEDS),--count $(SEEDS),--seconds $$(($(MINUTES) * 60))) $(if $(CENSUS),--census)))

# As the tests are built: what another profile would win in a minute, building it would cost.
.PHONY: swarm-fresh
swarm-fresh: ## a minute of random simulations, with new seeds each time (FIRST=7: seeds from 7 on)
	$(CARGO) run --locked --quiet --package tresse-swarm -- --seconds 60 --shortening 800000 --jobs $(JOBS) $(if $(FIRST),--first $(FIRST))

.PHONY: sanitize
sanitize: ## the C tests of the sockets under AddressSanitizer and ThreadSanitizer (gcc, rustup)
	CARGO=$(CARGO) tools/sanitize.sh address
	CARGO=$(CARGO) tools/sanitize.sh thread

# Seconds for each target, and which; libFuzzer counts the branches that an input takes and the values that it compares,
# by code that any compiler can put in.
FUZZ_SECONDS ?= 60
FUZZ_TARGETS ?= packet cookie association sacks asconf keys offer records
FUZZ_HOST = $(shell rustc -vV | sed -n 's/^host: //p')
FUZZ_FLAGS := -Cpasses=sancov-module $(addprefix -Cllvm-args=-sanitizer-coverage-, \
	level=4 inline-8bit-counters pc-table trace-compares)

.PHONY: fuzz
fuzz: ## search for inputs that violate a property, a minute for each target (FUZZ_SECONDS, FUZZ_TARGETS); keep those with new coverage
	RUSTFLAGS='$(FUZZ_FLAGS)' $(CARGO) build --locked --quiet --profile swarm --target $(FUZZ_HOST) \
		--package tresse-fuzz --features libfuzzer --bin tresse-fuzz
	for target in $(FUZZ_TARGETS); do \
		built=$${CARGO_TARGET_DIR:-target}; work=$$built/fuzz-work/$$target; \
		fuzz=$$built/$(FUZZ_HOST)/swarm/tresse-fuzz; export TRESSE_FUZZ=$$target; \
		rm -rf $$work/kept; mkdir -p $$work/found $$work/kept; \
		$(CARGO) run --locked --quiet --package tresse-fuzz --bin tresse-corpus -- unpack $$target $$work/all; \
		$$fuzz $$work/all -max_total_time=$(FUZZ_SECONDS) -timeout=10 -verbosity=0 \
			-artifact_prefix=$$work/found/; \
		$$fuzz -set_cover_merge=1 -max_len=256 -verbosity=0 $$work/kept $$work/all; \
		$(CARGO) run --locked --quiet --package tresse-fuzz --bin tresse-corpus -- pack $$target $$work/kept; \
	done

# ---- measure and document ----------------------------------------------------------------------

.PHONY: robustness
robustness: ## cost of attacks compared with honest peers; writes docs/robustness.md
	UPDATE_DOCS=1 $(CARGO) bench --locked --package tresse-proto --bench robustness

.PHONY: bench
bench: ## speed of the core (and of sctp-proto beside it) and of the simulator; delays of messages where packets are lost
	$(CARGO) bench --locked --package tresse-proto --bench goodput
	$(CARGO) bench --locked --package tresse-proto --bench associations
	$(CARGO) bench --locked --package tresse-proto --bench schedulers
	$(CARGO) bench --locked --package tresse-sim --bench packets
	$(CARGO) bench --locked --package tresse-sim --bench delays

TABLES ?=
# `aws-lc-rs`: encryption by AWS-LC.
FEATURES ?=
SOCKET_BENCH := benches/sockets/target

# Where the system allows it, before everything else that runs: two cores are busy for a minute.
.PHONY: bench-sockets
bench-sockets: ## speed and memory over real sockets, compared with plain UDP, quinn and usrsctp (TABLES="goodput memory", FEATURES=aws-lc-rs)
	$(CARGO) build --release --quiet $(if $(FEATURES),--features $(FEATURES)) --manifest-path benches/sockets/Cargo.toml --target-dir $(SOCKET_BENCH)
	$(if $(shell chrt -r 10 true 2>&1 || echo no),,chrt -r 10 )$(SOCKET_BENCH)/release/bench-sockets $(TABLES)

.PHONY: bench-sealed
bench-sealed: ## cost of encryption in memory: goodput compared with the clear, and set-ups (FEATURES=aws-lc-rs)
	$(CARGO) bench --locked --package tresse --bench sealed $(if $(FEATURES),--features $(FEATURES))

.PHONY: bench-calls
bench-calls: ## speed of the C sockets compared with the Rust API, in the same run
	$(CARGO) bench --locked --quiet --package tresse-sockets --bench calls --no-run
	$(if $(shell chrt -r 10 true 2>&1 || echo no),,chrt -r 10 )$(CARGO) bench --locked --quiet --package tresse-sockets --bench calls

ONLY ?=
SECONDS_EACH ?= 20

.PHONY: links
links: ## rates over links in network namespaces compared with the expected ones, as a table (ONLY=three, SECONDS_EACH=20)
	$(CARGO) build --locked --release --quiet --package tresse-cli
	$(PYTHON) tools/links.py --tresse $${CARGO_TARGET_DIR:-target}/release/tresse --seconds $(SECONDS_EACH) $(if $(ONLY),--only $(ONLY))

WRITE ?=

.PHONY: fingerprints
fingerprints: $(VENV)/.binding ## compare the packets of a fixed set of simulations with tools/fingerprints.txt (WRITE=1 writes it)
	$(BIN)/python tools/fingerprints.py $(if $(WRITE),--write)

COMMIT ?= HEAD
RUNS ?= 3

.PHONY: bench-against
bench-against: ## speed of the core and of the simulator compared with an older commit (COMMIT=..., RUNS=5)
	$(PYTHON) tools/bench_against.py $(COMMIT) --runs $(RUNS)

SOAK_SECONDS ?= 3600
.PHONY: soak
soak: ## an hour of a tunnel whose links and server fail and whose keys change: not a byte wrong, memory flat (SOAK_SECONDS=60; root)
	TRESSE_SOAK_SECONDS=$(SOAK_SECONDS) $(CARGO) test --locked --package tresse-cli --test soak -- --nocapture

.PHONY: tunnel-acceptance
tunnel-acceptance: ## delays of small requests beside bulk and losses of datagrams, through a tunnel over two links of 20 Mbit/s (root)
	$(CARGO) test --locked --package tresse-cli --test tunnel_links -- --include-ignored --nocapture --test-threads 1

.PHONY: verdicts
verdicts: ## whether tresse perf reports each cause that limits a transfer, between real sockets; on an otherwise idle machine
	$(CARGO) test --locked --package tresse-cli --test verdicts -- --include-ignored --test-threads 1 --nocapture

.PHONY: transfer-1g
transfer-1g: ## move 1 GB over two real paths and compare the files
	TRESSE_TRANSFER_BYTES=1000000000 $(CARGO) test --locked --package tresse-cli --test transfer a_file_arrives

.PHONY: docs
docs: ## docs/switches.md from the configuration tables
	UPDATE_DOCS=1 $(CARGO) test --locked --quiet --package tresse-proto --test switches_page

.PHONY: interop
interop: ## test against other SCTP stacks and write docs/interop.md, with day and versions; run programs of others over tresse
	UPDATE_DOCS=1 $(CARGO) test --locked --package tresse --test interop
	$(CARGO) test --locked --package tresse-preload --test programs --test usrsctp

.PHONY: interop-kernel
interop-kernel: ## test against the SCTP of Linux alone, in a machine that QEMU emulates, and write its column
	tools/fetch_kernel.sh
	UPDATE_DOCS=1 INTEROP=Linux $(CARGO) test --locked --package tresse --test interop
	$(CARGO) test --locked --package tresse-preload --test kernel

# ---- set-up ------------------------------------------------------------------------------------

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "make: Python 3.11 or newer is needed, $(PYTHON) is " + sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.binding: $(VENV)/.created $(BINDING_SOURCES)
	$(BIN)/pip install --quiet --editable 'python[test]'
	touch $@

.PHONY: clean
clean: ## remove everything that was built
	$(CARGO) clean
	rm -rf $(VENV)
