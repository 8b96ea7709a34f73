# Two commands do nearly everything: `make demo` and `make test`. `make mutations` shows that the tests can fail, `make mutants` how much they see.
# Each builds, or installs with rustup, what it still lacks, and says so. No system package is needed
# besides a Rust toolchain (1.88 or later) and a C linker; what else a target has use for, it installs for root.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= cargo
BARE_TARGET := x86_64-unknown-none

.PHONY: demo test quick hunt soak soak-hosts build lab library install install-library install-am install-udm install-command am udm splitc wheel packages dist book bench instructions compare compare-network compare-one-sided compare-locks compare-am compare-show check-compare check-licences check-advisories check-semver check-publish check-packages check-arm check-links check-structure tools tool-fmt tool-clippy tool-valgrind tool-ip tool-tshark tool-mpirun tool-cmake tool-pkg-config fmt clippy docs bare papers planted mutations mutants tests python bench-python

demo: build tool-ip
	@echo "== the demonstration"
	target/release/hamlyn demo

# Format, lints and tests of the crates that differ from BASE: for a change that is under way.
quick: tool-fmt tool-clippy
	@packages=$$({ git diff --name-only $(QUICK_BASE); git ls-files --others --exclude-standard; } | while read -r file; do \
	    folder=$$(dirname "$$file"); \
	    while [ "$$folder" != . ] && ! [ -f "$$folder/Cargo.toml" ]; do folder=$$(dirname "$$folder"); done; \
	    case $$folder in .|lab/compare*|lab/fuzz|faces/python) ;; *) sed -n 's/^name = "\(.*\)"/-p \1/p' "$$folder/Cargo.toml" | head -1;; esac; \
	  done | sort -u | tr '\n' ' '); \
	$(CARGO) fmt --all --check; \
	if [ -z "$$packages" ]; then echo "== no crate differs from $(QUICK_BASE)"; exit 0; fi; \
	echo "== lints and tests: $$packages"; \
	$(CARGO) clippy --all-targets --locked $$packages -- -D warnings; \
	$(CARGO) run -q -p xtask --locked -- test $$packages
QUICK_BASE ?= HEAD

# Ten thousand random programs in random worlds, and a minute of troubles among five hosts, of seeds that nobody has tried.
# It prints them. Before a release.
hunt: lab tool-ip
	seed=$$(date +%s)0000; echo "== seeds from $$seed"; \
	  target/release/hamlyn-lab simulate --scenarios 10000 --seed $$seed; target/release/hamlyn-lab soak --for 60 --seed $$seed

# Random programs, worlds and faults, until somebody stops it or something is found wrong.
soak: lab
	target/release/hamlyn-lab simulate --soak --seed $$(date +%s)0000

# Five hosts with full traffic among them while processes are killed and cables pulled, for an hour, or `make soak-hosts SOAK_SECONDS=600`.
SOAK_SECONDS ?= 3600
soak-hosts: lab tool-ip
	target/release/hamlyn-lab soak --for $(SOAK_SECONDS) --seed $$(date +%s)

build: tools
	@echo "== building the hamlyn command (release)"
	$(CARGO) build --release --locked -p hamlyn-cli

# The command of the laboratory: it measures, simulates and reproduces.
lab: tools
	@echo "== building the hamlyn-lab command (release)"
	$(CARGO) build --release --locked -p hamlyn-lab

library: tools
	@echo "== building the library for C (release)"
	$(CARGO) build --release --locked -p hamlyn-c

# Where the library and the command go (docs/install.md). Under sudo nothing is built: what `make library am udm build`
# has built is installed.
PREFIX ?= /usr/local
DESTDIR ?=
LIBDIR ?= $(PREFIX)/lib
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
install: install-library install-am install-udm install-command

install-library: $(if $(SUDO_UID),,library)
	faces/c/packaging/install.sh target/release/libhamlyn_c.a $(VERSION) "$(PREFIX)" "$(DESTDIR)" "$(LIBDIR)"

# Active Messages for C: am.h and libhamlyn_am.
am: tools
	@echo "== building Active Messages for C (release)"
	$(CARGO) build --release --locked -p hamlyn-am-c

install-am: $(if $(SUDO_UID),,am)
	LIBRARY=hamlyn_am FACE=faces/am faces/c/packaging/install.sh target/release/libhamlyn_am_c.a $(VERSION) "$(PREFIX)" "$(DESTDIR)" "$(LIBDIR)"

# User Direct Messaging and CRL for C: udm.h, crl.h and libhamlyn_udm.
udm: tools
	@echo "== building User Direct Messaging for C (release)"
	$(CARGO) build --release --locked -p hamlyn-udm-c

install-udm: $(if $(SUDO_UID),,udm)
	LIBRARY=hamlyn_udm FACE=faces/udm faces/c/packaging/install.sh target/release/libhamlyn_udm_c.a $(VERSION) "$(PREFIX)" "$(DESTDIR)" "$(LIBDIR)"

install-command: $(if $(SUDO_UID),,build)
	packaging/command.sh target/release/hamlyn "$(PREFIX)" "$(DESTDIR)"

# The Split-C compiler and its runtime.
splitc: tools
	@echo "== building Split-C (release)"
	$(CARGO) build --release --locked -p hamlyn-splitcc -p hamlyn-splitc-c

# The Python wheel of the first of PYTHONS, under target/wheels. Needs maturin, from PyPI once.
wheel: export CARGO_TARGET_DIR = $(CURDIR)/target/python/cargo
wheel: tools tool-venv
	@room=target/python/maturin; \
	if ! [ -x $$room/bin/maturin ] && ! { $(firstword $(PYTHONS)) -m venv $$room \
	  && $$room/bin/python -m pip install --quiet --disable-pip-version-check "maturin>=1.12,<2"; }; then \
	  echo "SKIPPED: no virtual environment, or no network to PyPI: no wheel is made"; exit 0; fi; \
	echo "== a Python wheel"; \
	rm -rf target/wheels; \
	room=$$PWD/$$room; \
	cd faces/python; $$room/bin/maturin build --release --locked --quiet --interpreter $$room/bin/python --out $(CURDIR)/target/wheels

# Debian packages, under target/packages.
packages: tools
	@echo "== building all that the packages have (release)"
	@# In one call, so that what they share is built once.
	$(CARGO) build --release --locked -p hamlyn-c -p hamlyn-am-c -p hamlyn-udm-c -p hamlyn-cli -p hamlyn-splitcc -p hamlyn-splitc-c
	@if ! command -v dpkg-shlibdeps >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "== installing dpkg-dev, to make packages"; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq dpkg-dev; fi
	@echo "== Debian packages"
	rm -rf target/packages
	packaging/deb.sh target/packages

# What a release publishes, under target/dist with SHA256SUMS: source archive, crates, Python wheels, Debian packages. Of what is
# committed; `make dist ALLOW_DIRTY=1` tries it out before. Wheels need maturin and zig, from PyPI once.
dist: export ALLOW_DIRTY := $(ALLOW_DIRTY)
dist: tools tool-venv
	@if command -v dpkg-deb >/dev/null; then $(MAKE) packages; \
	else echo "SKIPPED: no dpkg-deb: Debian packages are made on Debian and its like only"; rm -rf target/packages; fi
	packaging/dist.sh target/dist target/packages

# What `make dist` makes is checked and used: archives, crates and wheels here, packages and a wheel in a fresh root of Debian, which needs
# root, and a network once (docs/install.md).
check-packages:
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  { command -v debootstrap && command -v lintian && command -v musl-gcc; } >/dev/null || { echo "== installing debootstrap, lintian and musl-tools, to check packages"; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq debootstrap lintian musl-tools || true; }; fi
	$(MAKE) dist
	packaging/check-archives.sh target/dist target/check-packages
	@if [ "$$(id -u)" != 0 ]; then echo "SKIPPED: a fresh root of Debian can be made by root only: Debian packages are not checked"; \
	elif ! command -v apt-get >/dev/null; then echo "SKIPPED: no apt-get: Debian packages are checked on Debian and its like only"; \
	else packaging/check-packages.sh target/dist target/check-packages; fi

# The book, in target/book: all documents, with the pages of rustdoc and Doxygen beside them. Once its tools are there, no network is
# used, neither to make it nor to read it.
BOOK = target/book
MDBOOK = $(or $(shell command -v mdbook),target/tools/bin/mdbook)
book: tools
	@if ! command -v $(MDBOOK) >/dev/null; then \
	  echo "== installing mdbook under target/tools, to make the book"; $(CARGO) install --quiet --locked --root target/tools mdbook; fi
	$(CARGO) run -q -p xtask --locked -- book
	rm -rf $(BOOK)
	$(MDBOOK) build --dest-dir "$(CURDIR)/$(BOOK)" target/book-source
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps --locked -p hamlyn -p hamlyn-tokio -p hamlyn-job -p hamlyn-splitc -p hamlyn-am -p hamlyn-locks -p hamlyn-udm -p hamlyn-crl
	mkdir -p $(BOOK)/docs/reference
	cp -R target/doc $(BOOK)/docs/reference/rust
	@if ! command -v doxygen >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "== installing doxygen, for the pages of the C headers"; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq doxygen || true; fi
	@if command -v doxygen >/dev/null; then \
	  echo "== pages of the C headers"; doxygen faces/c/Doxyfile && mv target/doxygen/html $(BOOK)/docs/reference/c; \
	else echo "SKIPPED: no doxygen (apt-get install doxygen): the book lacks the pages of the C headers"; fi
	@echo "== the book: $(BOOK)/index.html"

# Builds for 64-bit Arm, and tests there under qemu: many minutes, so no part of `make test`.
check-arm: tools
	@if ! command -v qemu-aarch64 >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "== installing gcc-aarch64-linux-gnu and qemu-user, to check for Arm"; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user || true; fi
	packaging/check-arm.sh

bench: build lab tool-ip
	target/release/hamlyn-lab bench

# Instructions of a short message, by callgrind.
instructions: lab tool-valgrind
	target/release/hamlyn-lab bench --instructions

# The interface beside its peers, in one run. It installs the peers, which needs root, and says
# what it installs, and takes half an hour at most. `make compare COMPARE="--quick --only ucx,zeromq"` for less, `COMPARE=--thorough` for more.
COMPARE ?=
compare: tools
	@echo "== building the comparison"
	$(CARGO) build --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare
	$(CARGO) run --quiet --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare -- $(COMPARE)

# The same between two hosts: network namespaces, which need root.
compare-network: tools tool-ip
	$(CARGO) build --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare
	$(CARGO) run --quiet --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare -- network $(COMPARE)

# One-sided operations beside those of MPI and OpenSHMEM, and additions to one word: minutes.
compare-one-sided: tools
	$(CARGO) build --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare
	$(CARGO) run --quiet --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare -- one-sided $(COMPARE)

# Locks beside a lock in Redis, measured in one run.
compare-locks: tools
	$(CARGO) build --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare
	$(CARGO) run --quiet --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare -- locks $(COMPARE)

# Active Messages beside those of GASNet-EX (of Debian's next release, unpacked below target) and UCX: ten minutes at most.
compare-am: tools
	$(CARGO) build --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare
	$(CARGO) run --quiet --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare -- am $(COMPARE)

# The comparison's tables, in lab/compare/results and docs/comparison.md, and its pictures, anew from its raw data.
compare-show: tools
	$(CARGO) run --quiet --release --manifest-path lab/compare/Cargo.toml -p hamlyn-compare -- show

# What `make test` does for the product, for the comparison's driver and our programs in it; and that the tables say
# what the raw data say. Needs none of the peers.
check-compare: tool-fmt tool-clippy
	$(CARGO) fmt --all --check --manifest-path lab/compare/Cargo.toml
	$(CARGO) clippy --workspace --all-targets --manifest-path lab/compare/Cargo.toml -- -D warnings
	$(CARGO) test --workspace --manifest-path lab/compare/Cargo.toml

test: BESIDE = --beside python
test: fmt clippy docs bare papers check-links check-structure planted check-licences tool-venv tests
	@echo "== all of it passed"

# The Python package: formatted, linted, built as a wheel, installed into a virtual environment and tested there, for each interpreter of
# PYTHONS. Before its own tests come the promises of the C library, kept by parties in Python, and between those and parties in C: built as
# `make tests` builds them, so not twice. Installs what that needs from PyPI; what a machine lacks is skipped aloud.
# `make python PYTHONS="python3.9 python3.13"`; `PYTHONS=python3-dbg` (Debian's debug interpreter) and `PYTHONS=python3.14t` (without the
# interpreter's lock) run all of it there.
PYTHONS ?= python3
PYTEST ?=
# `dev` uses the crates of a registry as they were built for the other tests; `release` is built as it is shipped.
WHEEL_PROFILE ?= dev
PYTHON_TARGET = CARGO_TARGET_DIR="$${CARGO_TARGET_DIR:-$(CURDIR)/target}"
python: tool-fmt tool-clippy tool-venv
	@for python in $(PYTHONS); do \
	  if ! version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then \
	    echo "== SKIPPED: no $$python: the Python package is not checked with it (install Python 3.9 or later)"; continue; fi; \
	  case $$version in 2.*|3.[0-8]) echo "== SKIPPED: $$python is Python $$version: 3.9 or later is needed, so it is skipped"; continue;; esac; \
	  version=$$version$$($$python -c 'import sys; print(sys.abiflags)'); \
	  if [ $$version = 3.13t ]; then echo "== SKIPPED: $$python has no interpreter's lock: that needs Python 3.14 or later (PyO3), so it is skipped"; continue; fi; \
	  room=target/python/$$version; \
	  if ! $$python -m venv $$room || ! $$room/bin/python -m pip install --quiet --disable-pip-version-check "maturin>=1.12,<2" mypy numpy pytest; then \
	    echo "== SKIPPED: $$python: no virtual environment, or no network to PyPI: the Python package is not checked with it"; continue; fi; \
	  room=$$PWD/$$room; \
	  echo "== the Python package with Python $$version: format and lints"; \
	  $(CARGO) fmt --check --manifest-path faces/python/Cargo.toml; \
	  $(PYTHON_TARGET) PYO3_PYTHON=$$room/bin/python $(CARGO) clippy --manifest-path faces/python/Cargo.toml --locked -- -D warnings; \
	  echo "== the Python package with Python $$version: a wheel"; \
	  rm -rf $$room/wheels; \
	  (cd faces/python; $(PYTHON_TARGET) $$room/bin/maturin build --profile $(WHEEL_PROFILE) --locked --quiet --interpreter $$room/bin/python --out $$room/wheels); \
	  $$room/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $$room/wheels/*.whl; \
	  $(CARGO) test --workspace --locked --quiet --no-run --test conformance --test languages; \
	  echo "== the promises with parties in Python $$version, and with parties in both C and Python"; \
	  PATH="$$room/bin:$$PATH" HAMLYN_PARTY="$$PWD/faces/python/tests/party.py" $(CARGO) test --workspace --locked --test conformance; \
	  echo "== the Python package with Python $$version: tests"; \
	  $$room/bin/python -m pytest -q -p no:cacheprovider -c faces/python/pyproject.toml --rootdir faces/python faces/python/tests $(PYTEST); \
	done

# The Python package beside multiprocessing, shared_memory and ZeroMQ, in one run.
bench-python: WHEEL_PROFILE = release
bench-python: python
	@room=target/python/$$($(firstword $(PYTHONS)) -c 'import sys; print("%d.%d%s" % (*sys.version_info[:2], sys.abiflags))'); \
	  $$room/bin/python -m pip install --quiet --disable-pip-version-check pyzmq matplotlib || echo "== no network to PyPI: ZeroMQ and pictures are left out"; \
	  $$room/bin/python -m hamlyn.bench $(BENCH)

# What every build needs.
tools:
	@command -v $(CARGO) >/dev/null || { echo "no cargo: install Rust 1.88 or later (https://rustup.rs)"; exit 1; }
	@command -v cc >/dev/null || { echo "no C linker: install one (Debian: apt-get install gcc)"; exit 1; }
	@version=$$(rustc --version | sed -E 's/^rustc 1\.([0-9]+).*/\1/'); \
	  if [ "$$version" -lt 88 ]; then echo "$$(rustc --version): 1.88 or later is needed (rustup update stable)"; exit 1; fi

# What single targets need besides.
tool-fmt tool-clippy: tool-%: tools
	@part=$*; if ! $(CARGO) $$part --version >/dev/null 2>&1; then \
	    name=$$part; [ $$part = fmt ] && name=rustfmt; \
	    echo "== adding $$name with rustup"; rustup component add $$name; \
	  fi

# What they can go without: installed for root, or skipped aloud.
tool-valgrind: PURPOSE = to count instructions
tool-ip: PACKAGE = iproute2
tool-ip: PURPOSE = to make hosts in network namespaces
tool-tshark: PURPOSE = to check the dissector
tool-mpirun: PACKAGE = openmpi-bin
tool-mpirun: PURPOSE = to start jobs of Split-C and Active Messages
tool-cmake: PURPOSE = to find the installed library by it
tool-pkg-config: PURPOSE = to find the installed library by it
tool-valgrind tool-ip tool-tshark tool-mpirun tool-cmake tool-pkg-config: tool-%:
	@if ! command -v $* >/dev/null; then \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    echo "== installing $(or $(PACKAGE),$*), $(PURPOSE)"; \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $(or $(PACKAGE),$*) || true; \
	  else echo "== no $* ($(or $(PACKAGE),$*)), $(PURPOSE): what needs it is skipped"; fi; fi

# Debian has the module for virtual environments in a package of its own.
tool-venv:
	@if ! python3 -c 'import ensurepip, venv' 2>/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "== installing python3-venv, to test the Python package"; \
	  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv || true; fi

fmt: tool-fmt
	@echo "== formatting"
	$(CARGO) fmt --all --check

clippy: tool-clippy
	@echo "== lints, warnings denied"
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

docs: tools
	@echo "== documentation, warnings denied"
	RUSTDOCFLAGS="-D warnings -D rustdoc::private_intra_doc_links" $(CARGO) doc --workspace --no-deps --locked

# Licences, doubles and sources of all dependencies (deny.toml). To build the tool takes many minutes: it is used where it is.
check-licences: tools
	@if $(CARGO) deny --version >/dev/null 2>&1; then \
	  echo "== licences, doubles and sources of dependencies"; \
	  $(CARGO) deny --locked check licenses bans sources; \
	else echo "== no cargo-deny: licences of dependencies are not checked (cargo install --locked cargo-deny)"; fi

# Known faults of dependencies; needs cargo-deny, and a network that reaches the database at GitHub.
check-advisories: tools
	$(CARGO) deny --locked check advisories

# What the public interface of the library lost or changed since BASE, a commit, by the rules of semantic versioning: fails if programs
# that compile with BASE's would not with this, and the version stays. To build the tool takes many minutes, so it is put under
# target/tools once, and this is no part of `make test`.
BASE ?= HEAD^
SEMVER_CHECKS = $(or $(shell command -v cargo-semver-checks),target/tools/bin/cargo-semver-checks)
check-semver: tools
	@if ! command -v $(SEMVER_CHECKS) >/dev/null; then \
	  echo "== installing cargo-semver-checks under target/tools"; $(CARGO) install --quiet --locked --root target/tools cargo-semver-checks; fi
	@echo "== the public interface beside that of $(BASE)"
	PATH="$(CURDIR)/target/tools/bin:$$PATH" $(CARGO) semver-checks --baseline-rev $(BASE) -p hamlyn -p hamlyn-tokio -p hamlyn-splitc

# Each crate is packaged, and built from its package alone, with those of its siblings in place of a registry; and the
# command is installed. Needs no network, but cargo 1.90 or later. `cargo publish --dry-run --workspace --exclude xtask --exclude hamlyn-examples` asks the
# registry, too.
check-publish: export CARGO_PROFILE_DEV_OPT_LEVEL = 0
check-publish: export CARGO_PROFILE_DEV_DEBUG = none
check-publish: tools
	@if [ "$$($(CARGO) --version | sed -E 's/^cargo 1\.([0-9]+).*/\1/')" -ge 90 ]; then \
	  echo "== packages, each built"; \
	  $(CARGO) package --quiet --workspace --exclude xtask --exclude hamlyn-examples --locked --offline --allow-dirty; \
	else echo "== $$($(CARGO) --version): packages of a workspace need 1.90 or later, so they are not checked"; fi
	@echo "== the command, installed"
	$(CARGO) install --quiet --path faces/cli --locked --offline --debug --no-track --force --root target/install
	target/install/bin/hamlyn --version

# The engine must build where there is no operating system to call.
bare: tools
	@echo "== the engine without an operating system"
	@if ! [ -d "$$(rustc --print sysroot)/lib/rustlib/$(BARE_TARGET)" ] && command -v rustup >/dev/null; then \
	  echo "== adding the target $(BARE_TARGET) with rustup"; rustup target add $(BARE_TARGET) || true; fi
	@if [ -d "$$(rustc --print sysroot)/lib/rustlib/$(BARE_TARGET)" ]; then \
	  $(CARGO) build -p hamlyn-engine --locked --target $(BARE_TARGET); \
	else \
	  echo "== $(BARE_TARGET) cannot be had here; checking instead that the engine is no_std and names no I/O"; \
	fi
	$(CARGO) run -q -p xtask --locked -- check-engine

papers: tools
	@echo "== docs/papers against the inventories and the tree"
	$(CARGO) run -q -p xtask --locked -- check-papers

# All links of the documents, and the summary of the book.
check-links: tools
	@echo "== links of the documents"
	$(CARGO) run -q -p xtask --locked -- check-links

# Which crate uses which, and which files use each other in a circle.
check-structure: tools
	@echo "== the structure of the tree"
	$(CARGO) run -q -p xtask --locked -- check-structure

# Each edit that plants a bug must apply to the code of now.
planted: tools
	@echo "== planted bugs"
	$(CARGO) run -q -p xtask --locked -- check-planted

# The tests find every planted bug, in a copy of the tree that has them all (decision 0016). What is built of the copy must
# not lie with what is built of the tree: cargo would take the one for the other.
mutations: tool-fmt
	@echo "== a copy of the tree with all planted bugs, each of which must be found"
	$(CARGO) run -q -p xtask --locked -- plant
	@# In one call, so that what both use is built once.
	cd target/planted; \
	  rustfmt --check --edition 2024 crates/engine/tests/transport_mutations.rs crates/ring/tests/overflow_mutations.rs lab/sim/tests/mutations.rs; \
	  $(CARGO) test --locked --target-dir target -p hamlyn-engine -p hamlyn-ring -p hamlyn-sim --test transport_mutations --test overflow_mutations --test mutations

# A sample of small changes of the product, of which tests and scenarios must notice 95 % (decision 0032): one build of a copy
# that has them all, and hours of tests. `make mutants MUTANTS="--seed 7 --count 50"`.
MUTANTS ?=
mutants: tools
	@echo "== a copy of the tree with a sample of mutants, each of which a test or a scenario should kill"
	nice -n 10 $(CARGO) run -q -p xtask --locked -- mutants $(MUTANTS)

tests: tools tool-valgrind tool-ip tool-tshark tool-mpirun tool-cmake tool-pkg-config
	@echo "== tests"
	$(CARGO) run -q -p xtask --locked -- test $(BESIDE)
