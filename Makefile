# make demo measures three small networks on generated data; make test runs the tests. Both install
# what they need.

GO ?= go
RUNTIME := internal/runtime/node_modules/onnxruntime-node/package.json
WEB := internal/report/html/web/node_modules/vega/package.json
# The commit that noether version prints: 12 digits, and .dirty if files were changed. The version
# itself is in cmd/noether/version.go.
COMMIT := $(shell git describe --always --exclude '*' --abbrev=12 --dirty=.dirty 2>/dev/null)
NPM := npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
# Installs the npm packages of a folder, unless node_modules is a link to those of another checkout.
INSTALL := { test -L node_modules || $(NPM); }

.PHONY: build demo demo-networks screenshots wheel wheels check-wheel site release test race cover lint golangci actionlint apidiff bench fuzz torture vulncheck fixtures generate schemas zoo clean

build: bin/noether

.PHONY: bin/noether
bin/noether: $(RUNTIME)
	$(GO) build -ldflags '-X main.commit=$(COMMIT)' -o bin/noether ./cmd/noether

# The ONNX Runtime library, in the version of the lock file of npm.
$(RUNTIME): internal/runtime/package-lock.json
	cd internal/runtime && $(INSTALL)
	@touch $@

demo: build
	bin/noether demo

# Trains the three networks of the demo again: about two minutes on two cores.
demo-networks: $(RUNTIME)
	$(GO) run ./internal/demo/networks

# The screenshots of reports in README and the tutorial. Needs chromium, and NOETHER_TESTDATA, the
# folder that make fixtures writes.
screenshots: build
	$(GO) run ./internal/screenshots

# The npm packages of the report's front end. The wheel and the archive include their licences.
$(WEB):
	cd internal/report/html/web && $(INSTALL)

# The Python wheel, with the command and ONNX Runtime, into dist/.
wheel: $(RUNTIME) $(WEB)
	$(GO) run ./internal/dist -o dist -commit '$(COMMIT)'

# The wheel, an archive of the command for this system, and their checksums, into dist/.
release: $(RUNTIME) $(WEB)
	$(GO) run ./internal/dist -o dist -commit '$(COMMIT)' -archive

# The same for several systems, with Zig's C compiler. Linux gets a wheel for glibc 2.28 and later.
# macOS is built on macOS.
TARGETS ?= linux/amd64,linux/arm64,windows/amd64
ZIG ?= $(CURDIR)/python/.venv/bin/uvx --from ziglang==0.17.1 python-zig
wheels: $(RUNTIME) $(WEB)
	$(GO) run ./internal/dist -o dist -commit '$(COMMIT)' -archive -targets $(TARGETS) -zig '$(ZIG)'

# The wheel of this system by the checks of the Python index, of its tag and of its content, and the
# types of README's example. PUBLISH holds the tools of python/requirements-publish.txt.
PUBLISH := python/.publish/bin
check-wheel: wheel
	$(PUBLISH)/twine check --strict dist/noether_ml-*.whl
	$(PUBLISH)/check-wheel-contents dist/noether_ml-*.whl
	$(PUBLISH)/auditwheel show dist/noether_ml-*.whl | grep -A1 'consistent with'
	sed -n '/^```python/,/^```/p' README.md | sed '/^```/d' >dist/readme.py
	cd python && .venv/bin/mypy --strict ../dist/readme.py

# The documentation as a site in dist/site, with the report of the demo. Broken links, pages outside
# its navigation and examples in Python that do not compile are errors.
site: build
	bin/noether demo --no-open --out dist/demo >/dev/null
	NOETHER_REPORT=$(CURDIR)/dist/demo/report.html NO_MKDOCS_2_WARNING=1 $(PUBLISH)/mkdocs build -q --strict -f python/site/mkdocs.yml

# The packages with the longest tests, which start first so that no core waits at the end.
SLOW := ./internal/study ./internal/study/run ./internal/report/html ./cmd/noether ./measure/similarity ./measure/seis

# Runs the tests, and lists those that were skipped, and why, at the end. TESTLOG names a file for
# the results as JSON.
test: $(RUNTIME)
	$(GO) tool gotestsum --format pkgname --format-hide-empty-pkg $(if $(TESTLOG),--jsonfile $(TESTLOG)) -- $(SLOW) ./...

# The packages in which goroutines share memory, with the race detector.
RACE ?= ./dataset/... ./engine/... ./internal/features/... ./internal/fetch/... ./internal/observe/... ./internal/report/serve/... ./internal/study/... ./measure/paired/...
race: $(RUNTIME)
	$(GO) test -race -short $(RACE)

# The coverage of each package by its own tests, the least covered first.
cover: $(RUNTIME)
	@$(GO) test -cover ./... | awk '/^(ok)?[ \t].*coverage: [0-9]/ { sub(/%.*/, "", $$0); c = $$NF; p = $$1 == "ok" ? $$2 : $$1; sub(/.*noether-ml\/noether/, ".", p); printf "%6.1f %%  %s\n", c, p } /^FAIL|^---/' | sort -n

# The Python checks run where .ci/run has made the virtual environment.
PYTHONLINT := python/.venv/bin
lint: $(RUNTIME)
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt on these files"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	@if [ -x $(PYTHONLINT)/ruff ]; then cd python && .venv/bin/ruff check . && .venv/bin/mypy && \
	.venv/bin/codespell --ignore-words-list informations --skip '*.json,*.svg,*.png,*.go' ../docs ../README.md noether_ml; \
	else echo "python: not checked, as there is no $(PYTHONLINT): see python/requirements-lint.txt"; fi

# The linters of .golangci.yml. They take minutes, so the workflow runs them and make lint does not.
golangci: $(RUNTIME)
	$(GO) tool -modfile=internal/tools/go.mod golangci-lint run

# The syntax of the workflows, and of the scripts in them.
actionlint:
	$(GO) run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# How the exported API of the public packages differs from BASE, by default the revision at which
# the branch left origin/main, or the last release.
BASE ?= $(shell git merge-base HEAD origin/main 2>/dev/null || git describe --tags --abbrev=0 2>/dev/null)
apidiff:
	internal/tools/apidiff.sh $(BASE)

# Speed and peak memory of typical tasks; see docs/results/performance.md. Needs NOETHER_TESTDATA.
# TABLES names the tables to measure; by default those that do not take long. PEERS names the folder
# of bench.py (see internal/bench/main.go), to measure PyTorch and numpy too.
bench: $(RUNTIME)
	$(GO) run ./internal/bench $(TABLES)

# The public data of the tests, into fixtures/; set NOETHER_TESTDATA to that folder. Needs python3
# with numpy and Pillow.
fixtures:
	$(GO) run ./internal/fixtures -o fixtures

# Runs every fuzz target for FUZZTIME, by default a minute. go run ./internal/fuzzcorpus then keeps
# what it found.
FUZZTIME ?= 60s
fuzz: $(RUNTIME)
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

# Tests by fault injection: runs of studies under random kills, failing system calls, power losses
# and mutated files, for the time TORTURE. TORTURE_TABLE names a JSON file for the numbers of runs,
# such as $(CURDIR)/internal/bench/results/torture.json for docs/results/torture.md.
TORTURE ?= 1h
torture: $(RUNTIME)
	$(GO) test ./internal/study -run '^TestTorture$$' -v -timeout 0 -torture $(TORTURE) $(if $(TORTURE_TABLE),-torture-table $(TORTURE_TABLE))

# Exports, serves, measures and differentiates the networks of python/zoo, and writes the page
# docs/results/zoo.md. It takes hours; NETWORKS are patterns such as 'timm/*', and networks of the
# stored results are left out. Needs the libraries of python/requirements-test.txt.
NETWORKS ?= *
zoo: build
	cd python && NOETHER=$(CURDIR)/bin/noether .venv-test/bin/python -m zoo '$(NETWORKS)' && .venv-test/bin/python -m zoo.page

# Known vulnerabilities in the dependencies and the standard library; needs access to vuln.go.dev.
vulncheck:
	$(GO) tool govulncheck ./...

# Generated code and documents: the protobuf messages of ONNX (needs protoc; Debian:
# protobuf-compiler), the tables of docs/results, the report's front end, and the schemas of study
# and training files.
generate: build
	$(GO) generate ./...
	cd internal/report/html/web && $(INSTALL) && npm run build
	$(MAKE) schemas

# The JSON schemas of study and training files. They describe every measure, transformation and kind
# of data.
schemas: build
	bin/noether schema > docs/study.schema.json
	bin/noether schema --training > docs/training.schema.json

clean:
	rm -rf bin dist internal/runtime/node_modules internal/report/html/web/node_modules
