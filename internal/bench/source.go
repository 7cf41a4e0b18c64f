//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/tempfolder"
	"github.com/noether-ml/noether/scores"
)

// A runner builds benchmarks and runs them. The package comment has its environment variables.
type runner struct {
	work   string          // a temporary folder of test binaries, models and arrays
	remove func()          // removes work
	data   string          // NOETHER_TESTDATA, the folder of test data
	peers  string          // PEERS, the folder of reference implementations in Python; "" if there is none
	built  map[string]bool // names of the files in work that are complete
}

func newRunner() (*runner, error) {
	data := os.Getenv("NOETHER_TESTDATA")
	if data == "" {
		return nil, fmt.Errorf("set NOETHER_TESTDATA to the folder of test data")
	}
	blas.Load()                           // sets OPENBLAS_CORETYPE, so that NumPy takes the same kernels as Noether
	client, err := filepath.Abs("python") // for models that PyTorch serves
	if err == nil {
		err = os.Setenv("PYTHONPATH", client+string(filepath.ListSeparator)+os.Getenv("PYTHONPATH"))
	}
	if err != nil {
		return nil, err
	}
	work, remove, err := tempfolder.New("bench")
	return &runner{work: work, remove: remove, data: data, peers: os.Getenv("PEERS"), built: map[string]bool{}}, err
}

// call runs a command in a folder, in an environment (nil: that of this process), and returns its
// standard output and what it used: the seconds ("s"), the processor time ("cpu-s") and the peak
// memory ("MiB-peak").
func call(ctx context.Context, dir string, environment []string, command ...string) ([]byte, metrics, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir, c.Env = dir, environment
	var failure bytes.Buffer
	c.Stderr = &failure
	start := time.Now()
	out, err := c.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %s%s", strings.Join(command, " "), err, bytes.TrimSpace(out), bytes.TrimSpace(failure.Bytes()))
	}
	state := c.ProcessState
	return out, metrics{"s": time.Since(start).Seconds(), "cpu-s": (state.UserTime() + state.SystemTime()).Seconds(), "MiB-peak": machine.PeakMiB(state)}, nil
}

// replace replaces the names of the runner's folders in texts, and further pairs of a name and its
// value.
func (r *runner) replace(texts []string, pairs ...string) []string {
	names := strings.NewReplacer(append([]string{"$PEERS", r.peers, "$DATA", r.data, "$WORK", r.work, "$PYTHON", python()}, pairs...)...)
	var out []string
	for _, text := range texts {
		out = append(out, names.Replace(text))
	}
	return out
}

// once runs a command in dir that creates a file or folder of the given name in the work folder,
// unless it has run, and returns its path: or that of this name in BINARIES.
func (r *runner) once(ctx context.Context, name, dir string, command ...string) (string, error) {
	if dir := os.Getenv("BINARIES"); dir != "" {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path := filepath.Join(r.work, name)
	if r.built[name] {
		return path, nil
	}
	if _, _, err := call(ctx, dir, nil, command...); err != nil {
		return "", err
	}
	r.built[name] = true
	return path, nil
}

// model returns the path of a network of PEERS, exported for images of size pixels a side. Without
// PEERS it returns errSkip.
func (r *runner) model(ctx context.Context, name, size string) (string, error) {
	if r.peers == "" {
		return "", errSkip
	}
	folder := name + "-" + size
	dir, err := r.once(ctx, folder, "", python(), "internal/bench/model.py", r.peers, filepath.Join(r.work, folder), name, size)
	return filepath.Join(dir, "model.onnx"), err
}

// program returns the path of Noether: that in BINARIES, or a build of this repository.
func (r *runner) program(ctx context.Context) (string, error) {
	return r.once(ctx, "noether", "", "go", "build", "-o", filepath.Join(r.work, "noether"), "./cmd/noether")
}

func python() string {
	if p := os.Getenv("PYTHON"); p != "" {
		return p
	}
	return "/usr/bin/python3"
}

// sourceOf returns what a list of words in tables.yaml runs: a kind and its arguments.
func sourceOf(words []string) (sourceFunc, error) {
	kind, ok := kinds[append(words, "")[0]]
	if !ok {
		return nil, fmt.Errorf("%q is not a kind of source", words)
	}
	if n := len(words) - 1; n < kind.arguments {
		return nil, fmt.Errorf("%q has %d arguments; %d are needed", words, n, kind.arguments)
	}
	return func(ctx context.Context, r *runner) (metrics, error) { return kind.run(ctx, r, words[1:]) }, nil
}

// kinds are the kinds of sources, with the number of arguments that each needs.
var kinds = map[string]struct {
	arguments int
	run       func(ctx context.Context, r *runner, args []string) (metrics, error)
}{
	"go": {3, runBenchmark}, "python": {1, runPeer}, "noether": {1, runCommand}, "study": {3, runStudy}, "training": {1, runTraining},
	"first-run": {1, runFirst}, "cells": {2, runOnCells}, "submission": {3, runOnSubmission}, "growth": {2, runGrowth}, "billion": {2, runBillion},
}

// runBenchmark runs a Go benchmark of a package for a number of iterations, with settings as
// environment variables, NAME=VALUE. A value "model:NAME:SIZE" is replaced by the path of that
// network, and "dir:PATH" by the path.
func runBenchmark(ctx context.Context, r *runner, args []string) (metrics, error) {
	pkg := args[0]
	binary := strings.ReplaceAll(pkg, "/", "-") + ".test"
	path, err := r.once(ctx, binary, "", "go", "test", "-c", "-o", filepath.Join(r.work, binary), "./"+pkg)
	if err != nil {
		return nil, err
	}
	environment := os.Environ()
	for _, s := range r.replace(args[3:]) {
		name, value, _ := strings.Cut(s, "=")
		switch kind, rest, _ := strings.Cut(value, ":"); kind {
		case "model":
			net, size, _ := strings.Cut(rest, ":")
			if value, err = r.model(ctx, net, size); err != nil {
				return nil, err
			}
		case "dir":
			value = rest
		}
		environment = append(environment, name+"="+value)
	}
	out, _, err := call(ctx, pkg, environment, path, "-test.run", "^$", "-test.bench", args[1], "-test.benchtime", args[2]+"x")
	if err != nil {
		return nil, err
	}
	return parseBenchmark(string(out))
}

// parseBenchmark reads the metrics of the only benchmark in an output of go test. The time of an
// iteration is added in seconds as s/op.
func parseBenchmark(out string) (metrics, error) {
	var found metrics
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "Benchmark") || len(fields) < 4 || len(fields)%2 != 0 {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("several benchmarks in one process: %s", out)
		}
		found = metrics{}
		for i := 2; i < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", strings.TrimSpace(line), err)
			}
			found[fields[i+1]] = v
		}
		found["s/op"] = found["ns/op"] / 1e9
	}
	if found == nil {
		return nil, fmt.Errorf("no benchmark in %q", out)
	}
	return found, nil
}

// runPeer runs a Python script that prints one JSON object with its metrics. The script is relative
// to PEERS, or to this repository if it starts with "internal/bench/". An argument
// "model:NAME:SIZE" is replaced by the path of that network.
func runPeer(ctx context.Context, r *runner, args []string) (metrics, error) {
	if r.peers == "" {
		return nil, errSkip
	}
	dir := r.peers
	if strings.HasPrefix(args[0], "internal/bench/") {
		dir = ""
	}
	args = r.replace(args)
	for i, a := range args {
		if model, found := strings.CutPrefix(a, "model:"); found {
			name, size, _ := strings.Cut(model, ":")
			path, err := r.model(ctx, name, size)
			if err != nil {
				return nil, err
			}
			args[i] = path
		}
	}
	out, _, err := call(ctx, dir, nil, append([]string{python()}, args...)...)
	if err != nil {
		return nil, err
	}
	m := metrics{}
	return m, numbers(out, m)
}

// prepared returns a function that first runs the scripts of r.Prepare, unless they have run.
func (r *row) prepared(run sourceFunc) sourceFunc {
	return func(ctx context.Context, runner *runner) (metrics, error) {
		for _, p := range r.Prepare {
			command := append([]string{python(), "internal/bench/" + p[1]}, runner.replace(p[2:])...)
			if _, err := runner.once(ctx, p[0], "", command...); err != nil {
				return nil, err
			}
		}
		return run(ctx, runner)
	}
}

// numbers adds the numbers of a JSON object to m. Of a nested object, which describes a statistic,
// it adds the member seconds under the name of the object.
func numbers(text []byte, m metrics) error {
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for name, v := range all {
		switch v := v.(type) {
		case float64:
			m[name] = v
		case map[string]any:
			if s, ok := v["seconds"].(float64); ok {
				m[name] = s
			}
		}
	}
	return nil
}

// runCommand runs a command of the program. Its metrics are those of call.
func runCommand(ctx context.Context, r *runner, args []string) (metrics, error) {
	model, err := r.model(ctx, "resnet18", "224")
	if err != nil {
		return nil, err
	}
	return r.noether(ctx, "", r.replace(args, "$MODEL", model)...)
}

// noether runs the program in a folder, and returns what it used.
func (r *runner) noether(ctx context.Context, dir string, args ...string) (metrics, error) {
	program, err := r.program(ctx)
	if err != nil {
		return nil, err
	}
	_, used, err := call(ctx, dir, nil, append([]string{program}, args...)...)
	return used, err
}

// runStudy runs a study of a network (NAME or NAME:SIZE, of 224 pixels by default), or of the
// ResNet-20 of the test data if that is "". Arguments are the network, the number of forward passes, the text of the study, and flags of the command
// run. The metrics are those of call, the seconds of each stage and of the whole run ("s") by the
// record, what the run takes besides engine and wait ("other"), what it adds to the engine's time
// in percent of that ("share"), and by passes "images/s" and, without the time of opening,
// "cpu-ms/pass" and "work-images/s". A study of Python functions is not measured without PEERS.
// More threads than the machine has cores are not measured.
func runStudy(ctx context.Context, r *runner, args []string) (metrics, error) {
	passes, err := strconv.ParseFloat(args[1], 64)
	if err != nil {
		return nil, err
	}
	if i := slices.Index(args, "--threads"); i >= 0 && i+1 < len(args) {
		if threads, err := strconv.Atoi(args[i+1]); err != nil || threads > runtime.NumCPU() {
			return nil, cmp.Or(err, errSkip)
		}
	}
	if r.peers == "" && strings.Contains(args[2], "$PYTHON") {
		return nil, errSkip
	}
	model := filepath.Join(r.data, "models", "resnet20-cifar10.onnx")
	if name, size, _ := strings.Cut(args[0], ":"); name != "" {
		if model, err = r.model(ctx, name, cmp.Or(size, "224")); err != nil {
			return nil, err
		}
	}
	var record scores.Record
	used, err := r.onFile(ctx, "run", r.replace(args[2:3], "$MODEL", model)[0], args[3:], func(out string) (err error) {
		record, err = scores.ReadRecord(filepath.Join(out, "run.json"))
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, s := range record.Used.Stages {
		used[s.Name] += s.Seconds
	}
	used["s"] = record.Used.Seconds
	used["other"] = used["s"] - used["engine"] - used["wait"]
	used["share"] = 100 * (used["s"] - used["engine"]) / used["engine"]
	used["images/s"] = passes / used["s"]
	used["work-images/s"] = passes / (used["s"] - used["open"])
	used["cpu-ms/pass"] = 1000 * (used["cpu-s"] - used["open"]) / passes
	return used, nil
}

// runTraining trains the networks of a training file. Arguments are its text, and flags of the
// command train. The metrics are those of call.
func runTraining(ctx context.Context, r *runner, args []string) (metrics, error) {
	return r.onFile(ctx, "train", r.replace(args)[0], args[1:], func(string) error { return nil })
}

// onFile runs a command of the program on a file with the given text, and calls read with the
// folder that it wrote before that is removed. The metrics are those of call.
func (r *runner) onFile(ctx context.Context, command, text string, flags []string, read func(out string) error) (metrics, error) {
	dir, err := os.MkdirTemp(r.work, command+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, out := filepath.Join(dir, "file.yaml"), filepath.Join(dir, "out")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		return nil, err
	}
	used, err := r.noether(ctx, "", append([]string{command, file, "-o", out}, flags...)...)
	if err != nil {
		return nil, err
	}
	return used, read(out)
}

// runFirst exports a network and does what a newcomer does on a folder of images: noether init,
// noether run --dry-run and noether run. Its metrics are the number of images, the seconds that the
// dry run predicts ("stated"), and what the run uses.
func runFirst(ctx context.Context, r *runner, args []string) (metrics, error) {
	model, err := r.model(ctx, args[0], "224")
	if err != nil {
		return nil, err
	}
	program, err := r.program(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(r.work, "first-run-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	images := filepath.Join(r.data, "imagenet-samples")
	if _, err := r.noether(ctx, dir, "init", model, images, "-o", "study.yaml"); err != nil {
		return nil, err
	}
	estimate, _, err := call(ctx, dir, nil, program, "run", "study.yaml", "--dry-run", "--json", "-o", "run")
	if err != nil {
		return nil, err
	}
	var costs []struct {
		Samples int           `json:"samples"`
		Total   time.Duration `json:"total_ns"`
	}
	if err := json.Unmarshal(estimate, &costs); err != nil || len(costs) != 1 {
		return nil, fmt.Errorf("the dry run's JSON: %w: %s", err, estimate)
	}
	used, err := r.noether(ctx, dir, "run", "study.yaml", "-o", "run")
	if err != nil {
		return nil, err
	}
	used["images"], used["stated"] = float64(costs[0].Samples), costs[0].Total.Seconds()
	return used, nil
}
