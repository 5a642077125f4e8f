# The README's two commands are `make demo` and `make test`. Both install what is missing, say what they install, and
# build before they run. Everything else here is a part of those two, useful alone.

SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)

# What a plain Debian machine lacks: the compiler for the schedulers, its formatter, the headers that BPF C includes, and
# what libbpf is built with; what the kernel's own examples are built with, and whose recordings ours are held against.
APT_PACKAGES := clang-19 clang-format-19 libbpf-dev libelf-dev zlib1g-dev pkg-config linux-libc-dev gcc g++ libc6-dev make ca-certificates \
  bpftool zstd xz-utils python3 python3-venv debian-archive-keyring trace-cmd
# In which tests try completion scripts and man pages.
TEST_PACKAGES := zsh fish mandoc
RUST_VERSION := 1.95.0
CARGO_DEB_VERSION := 3.8.0
CARGO := cargo
# The program with Parquet. Beside the workspace it is two packages built anew; by itself, as those who install it have it, all
# that they stand on, with other features: enough to look at once.
WITH_PARQUET := --workspace --features fairground/parquet
PARQUET_ALONE := -p fairground -p fairground-trace -p fairground-report --features fairground/parquet

# The release binary is static: it is also the first process of the virtual machines that it boots, where there is no other
# file. The flag holds for this target only, not for build scripts and procedural macros.
TARGET := x86_64-unknown-linux-gnu
RELEASE := target/$(TARGET)/release/fairground
# What a tarball is called.
PACKAGE := fairground-$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)-x86_64-linux
PACK = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct)
STATIC := CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static"
# Python with the packages that the tests of the Python module need.
PYTHON := target/python

MDBOOK_VERSION := 0.5.4

.PHONY: help demo test setup build kernels third-party browser packages test-tools python python-test book pictures soak lint fmt bench bench-reading bench-sweep fuzz-smoke clean

help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | column -ts $$'\t'

demo: build ## Install, build, reproduce the time-slice report of 2009, and compare four schedulers on a page with charts
	@echo
	$(RELEASE) reproduce slice-2009
	@echo
	$(RELEASE) compare 'hogs:3 + sleepers:2,run=2ms,sleep=8ms' --cpus 2 --sched o1,cfs,rfs,eevdf --duration 10s --html target/demo.html
	@echo
	@echo "The same with charts: open target/demo.html"

test: build kernels third-party browser test-tools ## Install, build, and run every test (debug build, held against the release build)
	$(CARGO) build --locked --workspace --all-targets
	FAIRGROUND_RELEASE_BINARY=$(CURDIR)/$(RELEASE) $(CARGO) test --locked --workspace
	$(CARGO) test --locked $(WITH_PARQUET) --test parquet
	$(MAKE) python-test

build: setup ## The release binary, static
	$(STATIC) $(CARGO) build --locked --release --target $(TARGET) -p fairground

# Without a network the tests that need one of these are skipped, and say so.
kernels: build ## Real kernels and the emulator that boots them, from Debian into ~/.cache/fairground (no root)
	$(RELEASE) kernels fetch 6.1 newest || echo "no kernels: the tests on real kernels will be skipped"

browser: setup ## Chromium, in which the tests look at pages
	@./setup.sh $(RUST_VERSION) chromium || echo "no browser: the tests of pages will be skipped"

# Files in packages have the time of the last commit: the same source gives the same bytes.
packages: build ## A Debian package and a static tarball in target/package, unpacked and tried
	@cargo deb --version 2>/dev/null | grep -qwF '$(CARGO_DEB_VERSION)' || $(CARGO) install --locked cargo-deb@$(CARGO_DEB_VERSION)
	rm -rf target/package
	$(PACK) packaging/stage.sh $(RELEASE) target/package/stage
	$(PACK) packaging/tarball.sh target/package/stage $(PACKAGE) target/package
	$(PACK) $(CARGO) deb --package fairground --no-build --no-strip --target $(TARGET) --output target/package/
	packaging/check.sh target/package/*.deb target/package/$(PACKAGE).tar.gz

test-tools: setup ## Shells and a reader of man pages, in which the tests try completions and pages
	@./setup.sh $(RUST_VERSION) $(TEST_PACKAGES) || echo "no shells, no mandoc: their tests will be skipped"

third-party: setup ## The kernel's own example schedulers, built into ~/.cache/fairground (no root)
	./third-party.sh || echo "no third-party objects: the tests that run them will be skipped"

python: setup ## The Python module as a wheel, in target/wheels
	@python/environment.sh $(PYTHON)
	$(PYTHON)/bin/maturin build --locked --release --manifest-path python/Cargo.toml --out target/wheels

# Without a network there is no pytest, and they are skipped. The module is built like the other tests, not optimised.
python-test: build ## The tests of the Python module
	@if python/environment.sh $(PYTHON); then \
	  $(PYTHON)/bin/maturin build --locked --profile dev --manifest-path python/Cargo.toml --out target/wheels/dev && \
	  $(PYTHON)/bin/pip install --quiet --no-deps --no-index --force-reinstall --find-links target/wheels/dev fairground && \
	  FAIRGROUND_BINARY=$(CURDIR)/$(RELEASE) $(PYTHON)/bin/pytest -c python/pyproject.toml python/tests; \
	else echo "no Python packages: the tests of the Python module are skipped"; fi

soak: kernels ## Every scheduler in a virtual machine for a long time: load, 100 reloads, CPUs that go and come (an hour or two)
	$(CARGO) test --locked -p fairground-tests --test schedulers_on_a_kernel -- --ignored --nocapture

setup: ## Install missing packages; explains itself, asks for root only when something is missing
	@./setup.sh $(RUST_VERSION) $(APT_PACKAGES)

lint: setup ## Formatting and clippy, warnings as errors
	$(CARGO) fmt --all --check
	clang-format-19 --dry-run -Werror policies/*.bpf.c policies/include/*.h
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked $(PARQUET_ALONE) --all-targets -- -D warnings

fmt: ## Format everything
	$(CARGO) fmt --all
	clang-format-19 -i policies/*.bpf.c policies/include/*.h

bench: setup ## Simulated scheduling events per second of wall time, one core
	$(CARGO) run --locked --release -p fairground-benches --bin events

bench-reading: build ## Reading a recording of a million events, beside perf (needs perf and hackbench)
	benches/reading.py

bench-sweep: python ## 200 simulations one after the other, and on two workers of Dask
	$(PYTHON)/bin/pip install --quiet --no-deps --no-index --force-reinstall --find-links target/wheels fairground
	$(PYTHON)/bin/python benches/sweep.py

# Debian 12 has no package of mdBook. Built once, without its server, into the cache.
MDBOOK := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/fairground/mdbook-$(MDBOOK_VERSION)

book: setup ## The documentation as HTML, target/book/index.html
	@[ -x $(MDBOOK)/bin/mdbook ] || $(CARGO) install --quiet --locked --no-default-features --features search --root $(MDBOOK) mdbook@$(MDBOOK_VERSION)
	$(MDBOOK)/bin/mdbook build

# The first screen of the page of docs/reading-a-report.md. A browser draws text as its fonts are, so nobody compares the bytes.
pictures: build browser ## The picture of a report in the book and the README
	cd $$(mktemp -d) && PATH=$(CURDIR)/$(dir $(RELEASE)):$$PATH && \
	  fairground compare 'hogs:3 + sleepers:2,run=2ms,sleep=8ms' --cpus 2 --sched o1,cfs,rfs,eevdf --duration 10s --html report.html --quiet >/dev/null && \
	  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1160,940 --virtual-time-budget=4000 \
	    --screenshot=$(CURDIR)/docs/pictures/report.png file://$$PWD/report.html

fuzz-smoke: setup ## Each fuzz target with the same inputs every time
	$(MAKE) -C fuzz smoke

clean: ## Remove what was built
	$(CARGO) clean
