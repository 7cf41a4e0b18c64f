# make demo runs the demo on generated data; make test runs the tests. Both install what they need.

GO ?= go
RUNTIME := runtime/node_modules/onnxruntime-node/package.json
WEB := report/html/web/node_modules/vega/package.json
# The commit that noether version prints: 12 digits, and .dirty if files were changed. The version itself is in cmd/noether/version.go.
COMMIT := $(shell git describe --always --exclude '*' --abbrev=12 --dirty=.dirty 2>/dev/null)
NPM := npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
# Packages of another checkout, to which node_modules may be a link, stay as they are.
INSTALL := { test -L node_modules || $(NPM); }

.PHONY: build demo demo-networks screenshots wheel release test lint bench fuzz torture vulncheck fixtures generate schemas clean

build: bin/noether

.PHONY: bin/noether
bin/noether: $(RUNTIME)
	$(GO) build -ldflags '-X main.commit=$(COMMIT)' -o bin/noether ./cmd/noether

# The ONNX Runtime library, pinned by the lock file.
$(RUNTIME): runtime/package-lock.json
	cd runtime && $(INSTALL)
	@touch $@

demo: build
	bin/noether demo

# Trains the three networks of the demo again: about two minutes on two cores.
demo-networks: $(RUNTIME)
	$(GO) run ./internal/demo/networks

# The pictures of reports in README and the tutorial; needs chromium and NOETHER_TESTDATA.
screenshots: build
	$(GO) run ./internal/screenshots

# The packages of the report, whose licences are part of the wheel and the archive.
$(WEB):
	cd report/html/web && $(INSTALL)

# The Python wheel, with the command and ONNX Runtime, into dist/.
wheel: $(RUNTIME) $(WEB)
	$(GO) run ./internal/dist -o dist -commit '$(COMMIT)'

# The wheel, an archive of the command for this system, and their checksums, into dist/.
release: $(RUNTIME) $(WEB)
	$(GO) run ./internal/dist -o dist -commit '$(COMMIT)' -archive

# The packages with the longest tests, which start first so that no core waits at the end.
SLOW := ./study ./report/html ./cmd/noether ./measure/similarity ./measure/seis

# Lists what was skipped, and why, at the end. TESTLOG names a file for the results as JSON.
test: $(RUNTIME)
	$(GO) tool gotestsum --format pkgname --format-hide-empty-pkg $(if $(TESTLOG),--jsonfile $(TESTLOG)) -- $(SLOW) ./...

lint: $(RUNTIME)
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run gofmt on these files"; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

# Speed and peak memory of typical tasks; see docs/results/performance.md. Needs NOETHER_TESTDATA. PEERS names the folder of
# bench.py, to measure PyTorch and numpy too.
bench: $(RUNTIME)
	$(GO) run ./bench $(TABLES)

# The public data of the tests, into fixtures/; set NOETHER_TESTDATA to that folder. Needs python3 with numpy and Pillow.
fixtures:
	$(GO) run ./internal/fixtures -o fixtures

# Runs every fuzz target for a minute.
FUZZTIME ?= 60s
fuzz: $(RUNTIME)
	@for pkg in $$($(GO) list ./...); do \
		for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
		done; \
	done

# Tests studies under random kills, failing system calls, power losses and mutated files, for a time. TORTURE_TABLE names a JSON
# file for the counts, such as $(CURDIR)/bench/results/torture.json for docs/results.
TORTURE ?= 1h
torture: $(RUNTIME)
	$(GO) test ./study -run '^TestTorture$$' -v -timeout 0 -torture $(TORTURE) $(if $(TORTURE_TABLE),-torture-table $(TORTURE_TABLE))

# Known vulnerabilities in the dependencies and the standard library; needs vuln.go.dev.
vulncheck:
	$(GO) tool govulncheck ./...

# Generated code and documents: ONNX messages (protoc, Debian: protobuf-compiler), the tables of docs/results, the report's front end,
# the schemas of study and training files.
generate: build
	$(GO) generate ./...
	cd report/html/web && $(INSTALL) && npm run build
	$(MAKE) schemas

# The schemas of study and training files, which describe every measure, transformation and kind of data.
schemas: build
	bin/noether schema > docs/study.schema.json
	bin/noether schema --training > docs/training.schema.json

clean:
	rm -rf bin dist runtime/node_modules report/html/web/node_modules
