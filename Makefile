# Front door. `make build` is all a user needs; `make demo` shows what it does.
#   make demo [MODEL=path]   build, then info, ls, check of example models (or of yours, or a folder), catalogue
#   make build               build/safetensors, build/libsafetensors.{a,so}
#   make check               the working loop: 90 seconds, no network once set up
#   make test                all suites, the longest in part: at most 28 minutes
#   make test-long           what make test leaves out of imports, Ray Data and Daft, Spark, Python
#                            and a failing system, also under ASan
#   make python              the package, built into build/venv with what its tests need
#   make asan msan tsan m32 s390x aarch64   the tests under sanitizers and on other machines
#   make zig                 suites of labels and values on the command as releases have it
#   make kill                thousands of runs of commands that are killed while they write
#   make writers             a minute of processes that append to one dataset at once
#   make fuzz [SECONDS=600]  fuzz harnesses and the comparison with the official package
#   make test-spark          the Spark suite alone, on Spark 4.1
#   make test-spark-all      and on 4.0, 4.2 and 3.5, each in an environment of its own
#   make test-engines        the suites of Ray Data, Daft, DuckDB, Polars, HF datasets
#   make test-browsers       the catalogue's pages in Chromium and in Firefox
#   make test-desktop        xdg-mime and a desktop's thumbnailer on installed files
#   make bench               measured against others; docs/measured.md keeps the results
#   make bench-python        the package beside the official one
#   make bench-eager         a file into memory, beside other loaders, warm and cold
#   make bench-catalog       the catalogue's pages: ready, search, scrolling, size, generation
#   make bench-dataset       datasets beside save_file, load_file and Parquet
#   make bench-loaders       TorchBatches beside MosaicML Streaming, WebDataset, HF and Lance
#   make bench-spark         Spark with datasets beside Spark with Parquet
#   make tsan-python         the extension under ThreadSanitizer
#   make asan-python         Python's tests with the extension under ASan+UBSan (30 min)
#   make conformance        other readers on tests/corpus, installed one by one; docs/conformance.md
#   make zoo                 tests/zoo made anew from public model classes (see docs/accuracy.md)
#   make screenshots         docs/pictures/catalogue*.png, in a browser
#   make oracles             the lists of tests/zoo that programs of the field make (docs/accuracy.md)
#   make quant-oracles       tests/quant made anew by the packages that quantise (docs/convert.md)
#   make adapter-oracles     tests/adapter/cases made anew by LyCORIS, PEFT and torch.linalg, and the
#                            figures of docs/disagreements.md checked (docs/adapters.md)
#   make merge-oracles       tests/merge/cases.safetensors made anew by mergekit, and compared
#   make layout-oracles      tests/layout made anew by diffusers' converters (docs/layouts.md)
#   make zoo-score           how info names them; the table of docs/accuracy.md
#   make figures             fails where a measured table is older than the sources that it measures
#   make release-rehearsal   every target here once, on one commit; goes on where it was stopped
#   make docs                docs/cli.md, the pictures and outputs in documents made anew; build/site
#   make coverage            lines and branches, per folder
#   make abi                 compare the stable headers with what earlier releases promised
#   make abi-baseline        renew that promise, where docs/abi.md allows it, and add to tests/abi/frozen.txt
#   make install [PREFIX=/usr/local] [DESTDIR=]
#   make windows             build/windows: command, DLL and libraries for Windows, as a zip, too
#   make bundle [WITH=edit,set,convert,read,stats] [ALL_HOSTS=1] [NAME=safetensors]
#                            build/bundle/safetensors.{h,c}: the library, or more of it, as two files
#   make compilers           the core by gcc, clang and, for seven systems, zig
#   make deb                 packages for Debian in build/deb, and lintian
#   make deb-test            they build the same twice; install and test them in a fresh Debian 12
#   make windows-test        the command, the library and the zip for Windows, tested under wine
#   make windows-python-test [TORCH=1]   the Python package in a CPython for Windows, under wine
#   make macos               build/macos/*.zip: command and libraries for macOS, built here, not run
#   make macos-test          what is in it; that a second build is the same
#   make wheels              wheels for Linux, Windows and macOS and the source package, in
#                            build/wheels, checked
#   make wheels-test         the checks again; under wine; that a second build is the same
#   make dist                what a release consists of, in build/dist, with checksums
#   make dist-test           the source archive builds and installs in a fresh Debian 12
#   make manifests DOWNLOAD=URL HOMEPAGE=URL   packaging/ filled from build/dist
#   make test-packages       Conan and vcpkg build from packaging/; bill of materials validated
#   make clean
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
PREFIX ?= /usr/local
# Not every shell expands a ~ in an argument.
override PREFIX := $(patsubst ~/%,$(HOME)/%,$(PREFIX))
DESTDIR ?=
BUNDLE := $(if $(filter command line,$(origin NAME)),$(NAME),safetensors)
SECONDS_ := $(if $(filter command line environment,$(origin SECONDS)),$(SECONDS),600)

.PHONY: windows all demo screenshots build check test python tsan-python asan-python bench-python bench-eager bench-dataset bench-loaders asan msan tsan m32 s390x aarch64 zig conformance kill \
        writers fuzz bench release-rehearsal figures coverage install bundle clean setup-build setup-test setup-bench setup-cross setup-windows \
        setup-abi abi abi-baseline \
        deb deb-test dist dist-test manifests test-packages \
        test-spark test-spark-all test-long test-engines test-browsers test-desktop bench-catalog zoo oracles quant-oracles layout-oracles merge-oracles zoo-score docs

all: build

setup-build setup-test setup-bench setup-cross setup-windows setup-abi:
	@tools/setup.sh $(subst setup-,,$@)

build: setup-build
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release

demo: build
	@tools/demo.sh $(if $(MODEL),"$(MODEL)")

check: setup-build setup-test
	@tools/python.sh tests/run.py check

test: setup-build setup-test setup-abi setup-windows
	@tools/python.sh tests/run.py test

python: setup-build
	@tools/venv.sh

tsan-python: python
	@tools/sanitized_python.sh thread

asan-python: build python
	@tools/sanitized_python.sh address

test-spark: setup-build
	@tools/spark_env.sh
	@build/spark/bin/python -m pytest -q tests/spark

test-spark-all: setup-build
	@status=0; for version in 4.1 4.0 4.2 3.5; do \
	    echo "Spark $$version"; folder=build/spark-$$version; named=$$version; \
	    [[ $$version != 4.1 ]] || { folder=build/spark; named=; }; \
	    tools/spark_env.sh $$named && \
	    $$folder/bin/python -m pytest -q tests/spark || status=1; \
	done; exit $$status

test-long: setup-build setup-test
	@status=0; tools/python.sh tests/run.py long || status=1; \
	tools/python.sh tests/run.py asan --only faults || status=1; exit $$status

test-engines: setup-build
	@tools/engines_env.sh
	@build/engines/bin/python -m pytest -q tests/engines

zoo:
	@tools/zoo_env.sh
	@build/zoo/bin/python tools/zoo.py

oracles:
	@tools/oracles.sh

quant-oracles:
	@tools/quant_oracles.sh

adapter-oracles:
	@tools/adapter_oracles.sh

layout-oracles:
	@tools/layout_oracles.sh

merge-oracles:
	@tools/merge_oracles.sh

zoo-score: build
	@python3 tools/zoo_score.py --write

docs: build
	@build/safetensors __reference cli >docs/cli.md
	@tools/venv.sh && build/venv/bin/python tools/python_api.py >docs/python-api.md
	@tools/pictures.py
	@python3 tests/examples/sessions.py --update
	@tools/docs_env.sh
	@build/docs/bin/python tools/docs_site.py && echo "build/site/index.html"

screenshots: build
	@tools/browser_env.sh
	@build/browser/bin/python tools/shots.py

bench-python: python
	@build/venv/bin/python bench/python.py --write

test-browsers: build
	@tools/browser_env.sh --firefox
	@status=0; build/browser/bin/python tests/page/run.py -v || status=1; \
	build/browser/bin/python tests/page/run.py -v --firefox || status=1; exit $$status

test-desktop: build
	@tools/setup.sh desktop
	@python3 tests/desktop/run.py --service

bench-catalog: build
	@tools/browser_env.sh
	@build/browser/bin/python bench/catalog.py --write

bench-eager: python
	@build/venv/bin/python -m pip --disable-pip-version-check install -q --no-deps --upgrade \
		--only-binary :all: --target build/eager -r bench/requirements-eager.txt
	@PYTHONPATH=build/eager build/venv/bin/python bench/eager.py --write

bench-dataset: python
	@build/venv/bin/python bench/dataset.py --write

bench-loaders: python
	@tools/loaders_env.sh
	@build/loaders/bin/python bench/loaders.py --write

bench-spark: setup-build
	@tools/spark_env.sh
	@build/spark/bin/python bench/spark.py --write

asan msan tsan kill: setup-build setup-test
	@tools/python.sh tests/run.py $@

m32 s390x: setup-build setup-test setup-cross
	@tools/python.sh tests/run.py $@

aarch64: setup-build setup-test setup-cross
	@tools/cmocka.sh build/cmocka-aarch64 aarch64-linux-gnu-gcc
	@tools/python.sh tests/run.py $@

zig: build setup-test
	@tools/zig_env.sh
	@tools/python.sh tests/run.py $@

conformance: build
	@command -v npm >/dev/null || tools/setup.sh npm
	@cmake --build --preset release --target verdict
	@tools/python.sh tests/conformance/run.py

coverage: python setup-test
	@status=0; tools/python.sh tests/run.py coverage || status=1; \
	tools/coverage_python.sh || status=1; \
	tools/python.sh tools/coverage.py build/coverage build/coverage-python || status=1; \
	exit $$status

writers: python
	@SFT_WRITERS_S=60 build/venv/bin/python -m pytest -q tests/python/test_dataset_writers.py

fuzz: setup-build setup-test
	@cmake --preset fuzz --log-level=WARNING >/dev/null
	@cmake --build --preset fuzz
	@tools/python.sh fuzz/run.py --seconds $(SECONDS_)

figures:
	@tests/figures.py --strict

release-rehearsal:
	@tools/rehearsal.py

bench: setup-build setup-test setup-bench
	@cmake --preset release --log-level=WARNING >/dev/null
	@cmake --build --preset release --target all benches
	@tools/python.sh bench/compare.py

abi: build setup-abi
	@tools/python.sh tests/abi/run.py

abi-baseline: setup-build setup-abi
	@tools/python.sh tests/abi/run.py --baseline

# The prefix first: a build takes minutes.
install:
	@tools/install_prefix.sh "$(DESTDIR)$(PREFIX)"
	@$(MAKE) --no-print-directory build
	@DESTDIR="$(DESTDIR)" cmake --install build --prefix "$(PREFIX)"
	@if [ -z "$(DESTDIR)" ] && command -v update-mime-database >/dev/null; then \
	    update-mime-database "$(PREFIX)/share/mime"; fi

windows: setup-build
	@tools/windows.sh

bundle: setup-build
	@python3 tools/bundle.py build/bundle $(if $(WITH),--with $(WITH)) $(if $(ALL_HOSTS),--all-hosts) \
	    --name $(BUNDLE)
	@cc -std=c11 -O2 -Wall -Wextra -c build/bundle/$(BUNDLE).c -o build/bundle/$(BUNDLE).o
	@echo "build/bundle/$(BUNDLE).h build/bundle/$(BUNDLE).c"

.PHONY: compilers
compilers: setup-build
	@tools/zig_env.sh
	@python3 tests/vendoring/compilers.py

deb: setup-build
	@tools/setup.sh deb
	@tools/deb.sh

deb-test: deb
	@tools/deb.sh --again
	@tools/deb_test.sh

# Wine needs the page at 0x7ffe0000, near which it lies itself. Where the heap begins at a random
# address, it covers that page once in some thousand starts, and wine ends with status 1.
FIXED = $$(setarch -R true 2>/dev/null && echo setarch -R)

.PHONY: windows-test
windows-test: build setup-test windows
	@tools/wine_env.sh
	@status=0; $(FIXED) tools/python.sh tests/run.py windows || status=1; \
	tools/wine_env.sh --stop; exit $$status

.PHONY: windows-python-test
windows-python-test:
	@tools/wine_env.sh
	@tools/windows_python.sh $(if $(TORCH),--torch)
	@tools/wheels_env.sh
	@rm -rf build/windows-python/wheel
	@build/release/bin/python tools/wheels.py --only cp311-abi3-win_amd64 \
	    --out build/windows-python/wheel
	@status=0; $(FIXED) tests/windows/python.py --wheel build/windows-python/wheel/*.whl || status=1; \
	tools/wine_env.sh --stop; exit $$status

.PHONY: macos macos-test
macos: build
	@tools/zig_env.sh
	@tools/macos.py
	@python3 tests/macos/check.py

macos-test: build
	@tools/zig_env.sh
	@tools/macos.py --again
	@python3 tests/macos/check.py

.PHONY: wheels wheels-test
wheels:
	@tools/wheels_env.sh
	@rm -rf build/wheels
	@build/release/bin/python tools/wheels.py
	@build/release/bin/python tests/wheels/run.py --skip wine,again

wheels-test: setup-cross
	@tools/wheels_env.sh
	@python=$$(tools/free_threaded.sh); \
	SFT_PYTHONS=$$python:$(SFT_PYTHONS) $(FIXED) build/release/bin/python tests/wheels/run.py

dist: build
	@tools/dist.py $(if $(COMPLETE),--complete)

dist-test: dist
	@tools/dist_test.sh

manifests:
	@tools/manifests.py --download "$(DOWNLOAD)" --homepage "$(HOMEPAGE)"

test-packages: build
	@tools/setup.sh packaging
	@tools/packaging_env.sh
	@build/packaging/bin/python tests/packaging/run.py --full

clean:
	tools/wine_env.sh --stop
	rm -rf build "$$(tools/wine_env.sh --prefix)"
