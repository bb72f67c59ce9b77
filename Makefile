# The ways into this repository; `make help` lists them.
.PHONY: help install programs run build images package test bare clang test-asan test-tsan chaos fuzz nightly bench cluster cluster-down \
  e2e e2e-ipv6 e2e-kueue docs site format lint clean
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
CHAOS_RUNS ?= 50
CHAOS_SCHEDULES ?= 1000000
CHAOS_PAUSE ?= 30
CHAOS_SEED ?= $(shell date +%s)
CHAOS_TESTS ?= *
ROWS ?=
SUITE ?= trixie
TARGET ?= run test
SINCE ?=
LINT_SECONDS ?=
CMAKE_FLAGS ?=
PROGRAMS ?= muster muster-trainer muster_tables muster-operator muster-supervisor
NODES ?= 2
WITHOUT ?=
E2E ?= $(filter-out %/test_kueue.py $(WITHOUT), $(wildcard tests/e2e/test_*.py))
CLUSTER_TOOLS = etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl coredns helm
# With E2E of your own, all of them.
E2E_MARKS ?= $(if $(filter file,$(origin E2E)),-m "not nightly")
AS_ROOT = $(shell [ "$$(id -u)" = 0 ] || echo sudo)
SOURCES = git ls-files --cached --others --exclude-standard -- '*.h' '*.cc' '*.inc' '*.cu' '*.cuh'

help:  ## This list
	@sed -n 's/^\([a-z0-9 -]*\):.*## /\1\t/p' Makefile | expand -t 22

install:  ## Install the Debian packages that are missing
	@deploy/setup/install.sh build develop

programs:  ## Build the programs, without tests, into build/release; PROGRAMS="muster ..." for some
	@deploy/setup/install.sh build
	@mkdir -p build
	@[ -s build/arrow/link.txt ] || rm -f build/arrow/link.txt  # once more, if Arrow could not be had
	@[ -f build/release/build.ninja ] || cmake --preset release -DMUSTER_TESTS=OFF $(CMAKE_FLAGS) \
	  >build/release.log 2>&1 || { cat build/release.log; exit 1; }
	@cmake --build build/release -j$(JOBS) --target $(PROGRAMS)

build: install  ## Build a release into build/release: programs, tests, benchmarks
	@mkdir -p build
	@[ -s build/arrow/link.txt ] || rm -f build/arrow/link.txt
	@cmake --preset release $(CMAKE_FLAGS) >build/release.log 2>&1 || { cat build/release.log; exit 1; }
	@cmake --build build/release -j$(JOBS)

images: programs  ## The operator's and the trainer's image, as build/images/*.tar
	@deploy/setup/install.sh packaging
	@docker/build

package: PROGRAMS = muster muster-trainer muster_tables
package: programs  ## A Debian package of muster and muster-trainer, in build/release
	@deploy/setup/install.sh packaging
	@cd build/release && cpack -G DEB >cpack.log || { cat cpack.log; exit 1; }
	@ls build/release/*.deb

run: PROGRAMS = muster muster-trainer muster_tables
run: programs  ## Train MNIST: one ps, a chief, a worker and an evaluator on this machine
	build/release/bin/muster run examples/mnist-mlp.yaml

test: build  ## Build and pass all tests
	@deploy/setup/python.sh
	@deploy/setup/go.sh check-dashboards etcd kube-apiserver kubectl helm
	ctest --test-dir build/release -j2 --output-on-failure --no-tests=error

bare:  ## The targets TARGET ("run test") in a clone of HEAD on a bare Debian: SUITE=bookworm, trixie
	@deploy/setup/install.sh bare
	@deploy/setup/bare.sh $(SUITE) $(foreach target,$(TARGET),"make $(target)")

clang: install  ## Build the programs by clang into build/clang, without a warning; their digests must be GCC's
	cmake --preset release -B build/clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_COMPILE_WARNING_AS_ERROR=ON >/dev/null
	cmake --build build/clang -j$(JOBS) --target $(PROGRAMS) test_compute
	build/clang/bin/test_compute --gtest_filter='*Digest*'

test-asan test-tsan: test-%: install  ## All tests under AddressSanitizer+UBSan; those with threads under ThreadSanitizer
	@deploy/setup/python.sh
	@deploy/setup/go.sh check-dashboards etcd kube-apiserver kubectl helm
	cmake --preset $* $(CMAKE_FLAGS) >/dev/null
	cmake --build build/$* -j$(JOBS)
	ctest --test-dir build/$* -j2 $(if $(filter tsan,$*),-LE one_thread) --output-on-failure --no-tests=error

chaos: build  ## CHAOS_SCHEDULES simulated jobs (4 min), jobs killed, paused, ...: CHAOS_RUNS, CHAOS_SEED, CHAOS_TESTS
	@echo "$(CHAOS_SCHEDULES) simulated jobs"
	@MUSTER_PROTOCOL_PAIRS=31 build/release/bin/test_protocol --gtest_brief=1 \
	  --gtest_filter=Protocol.HoldsWithTwoProcessesLost
	@each=$$(($(CHAOS_SCHEDULES) / 2 / $(JOBS))); seed=$$(($(CHAOS_SEED) * 1000003)); \
	export MUSTER_PROTOCOL_SCHEDULES=$$each MUSTER_COLLECTIVE_SCHEDULES=$$each; \
	seq $(JOBS) | xargs -P $(JOBS) -I{} sh -ec "first=\$$(($$seed + {} * $$each)); \
	  export MUSTER_PROTOCOL_SEED=\$$first MUSTER_COLLECTIVE_SEED=\$$first; \
	  for program in test_protocol test_collective_protocol; do \
	  build/release/bin/\$$program --gtest_brief=1 --gtest_filter=*.HoldsInRandomSchedules; done"
	@export MUSTER_CHAOS_ALL=1 MUSTER_CHAOS_RUNS=$(CHAOS_RUNS) MUSTER_CHAOS_PAUSE=$(CHAOS_PAUSE) \
	  MUSTER_CHAOS_SEED=$(CHAOS_SEED); \
	seq $(JOBS) | xargs -P $(JOBS) -I{} sh -c 'GTEST_TOTAL_SHARDS=$(JOBS) GTEST_SHARD_INDEX=$$(({} - 1)) \
	  build/release/bin/chaos --gtest_filter="$(CHAOS_TESTS)"'

fuzz: install  ## Run each fuzz target for FUZZ_SECONDS (60)
	cmake --preset fuzz $(CMAKE_FLAGS) >/dev/null
	cmake --build build/fuzz -j$(JOBS) --target fuzz_targets
	@set -e; for target in build/fuzz/bin/fuzz_*; do \
	  name=$$(basename $$target); corpus=build/fuzz/corpus/$$name; mkdir -p $$corpus; \
	  seeds=tests/fuzz/corpus/$$name; [ -d $$seeds ] || seeds=; \
	  echo "$$name for $(FUZZ_SECONDS) s"; \
	  $$target -max_total_time=$(FUZZ_SECONDS) -artifact_prefix=build/fuzz/ -print_final_stats=1 $$corpus $$seeds; \
	done

nightly:  ## What takes too long for every change: bare machines, both sanitizers, each fuzz target for 10 minutes, chaos, all of e2e, Kueue
	@$(MAKE) bare SUITE=bookworm
	@$(MAKE) bare SUITE=trixie TARGET="run test clang images package"
	@$(MAKE) test-asan
	@$(MAKE) test-tsan
	@$(MAKE) fuzz FUZZ_SECONDS=600
	@$(MAKE) chaos
	@deploy/setup/python.sh bench
	@$(MAKE) e2e E2E_MARKS=
	@MUSTER_CLUSTER_IPV6=1 $(MAKE) e2e E2E_MARKS= WITHOUT=tests/e2e/test_programs.py
	@$(MAKE) e2e-kueue
	@$(MAKE) lint

bench: build  ## Measure Muster beside its peers; ROWS="mlp-single ..." for some rows
	@deploy/setup/python.sh bench
	build/venv/bin/python tests/bench/bench.py $(ROWS)

cluster:  ## A Kubernetes of NODES (2) nodes on this machine; prints how to use it
	@deploy/setup/install.sh develop cluster packaging
	@deploy/setup/go.sh $(CLUSTER_TOOLS)
	@$(AS_ROOT) deploy/cluster/cluster.sh up $(NODES)
	@echo "export KUBECONFIG=$$($(AS_ROOT) deploy/cluster/cluster.sh kubeconfig)"

cluster-down:  ## End that Kubernetes and remove what it made
	@$(AS_ROOT) deploy/cluster/cluster.sh down

e2e: build  ## Bring a Kubernetes up, pass the end-to-end tests on it, tear it down; E2E=tests/e2e/test_x.py for some
	@deploy/setup/install.sh cluster packaging
	@deploy/setup/python.sh e2e
	@deploy/setup/go.sh $(CLUSTER_TOOLS)
	@$(AS_ROOT) build/venv/bin/python -B -m pytest -p no:cacheprovider -v --durations 30 --durations-min 5 $(E2E_MARKS) $(E2E)

e2e-ipv6: build  ## A few end-to-end tests, on a cluster without IPv4
	@MUSTER_CLUSTER_IPV6=1 $(MAKE) -o build e2e E2E="tests/e2e/test_mnist.py::test_trains_as_on_one_machine \
	  tests/e2e/test_collective.py::test_an_example_trains_as_on_one_machine"

e2e-kueue: build  ## The end-to-end tests with Kueue, which takes as long to build as they take
	@deploy/setup/go.sh kueue
	@$(MAKE) -o build e2e E2E=tests/e2e/test_kueue.py

docs: install  ## Regenerate the references of fields, commands, exit codes, variables and folders, the chart's CRD and deploy/muster.yaml
	@mkdir -p build
	@cmake --preset release $(CMAKE_FLAGS) >build/release.log 2>&1 || { cat build/release.log; exit 1; }
	@cmake --build build/release -j$(JOBS) --target muster print_schema
	@build/release/bin/print_schema | /usr/bin/python3 tests/python/make_reference.py build/release/bin/muster
	@build/release/bin/muster crd >charts/muster/files/crd.yaml
	@deploy/setup/python.sh
	@deploy/setup/go.sh helm
	@build/venv/bin/python tests/python/make_chart.py

site:  ## Make the site of docs/ in build/site, without a warning; python3 -m http.server -d build/site shows it
	@deploy/setup/python.sh site
	@NO_MKDOCS_2_WARNING=1 build/site-venv/bin/mkdocs build --config-file deploy/site/mkdocs.yml

format:  ## Rewrite C++ sources in the project's style
	@$(SOURCES) | xargs clang-format -i

lint: build  ## Check style, shell scripts, Python, includes, pages, clang-tidy's findings and the use of mutexes; SINCE=COMMIT: of what changed
	@/usr/bin/python3 tests/python/lint.py build/release $(if $(SINCE),--since $(SINCE)) \
	  $(if $(LINT_SECONDS),--seconds $(LINT_SECONDS))

clean:  ## Remove everything that was built
	rm -rf build
