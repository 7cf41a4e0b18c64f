//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/noether-ml/noether/internal/blas"
	"github.com/noether-ml/noether/internal/tempfolder"
)

// A runner builds benchmarks and runs them. Environment variables that comments name, such as
// PEERS, are described in the package comment.
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
	blas.Load() // sets OPENBLAS_CORETYPE, so that NumPy takes the same kernels as Noether
	work, remove, err := tempfolder.New("bench")
	return &runner{work: work, remove: remove, data: data, peers: os.Getenv("PEERS"), built: map[string]bool{}}, err
}

// once runs a command that creates a file or folder of the given name in the work folder, unless it
// has run, and returns the path of what it created. The command runs in dir. A file or folder of
// that name in the environment's BINARIES, for machines without Go, is taken instead.
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
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, bytes.TrimSpace(out))
	}
	r.built[name] = true
	return path, nil
}

// model returns the path of a network that export.py, a script in PEERS, writes for images of size
// pixels a side. Without PEERS it returns errSkip: the benchmark cannot run here.
func (r *runner) model(ctx context.Context, name, size string) (string, error) {
	if r.peers == "" {
		return "", errSkip
	}
	dir, err := r.once(ctx, name+"-"+size, r.peers, python(), "export.py", filepath.Join(r.work, name+"-"+size), name+":"+size)
	return filepath.Join(dir, name, "model.onnx"), err
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

// golang returns a source, a function that measures and returns metrics (numbers by name). It runs
// a Go benchmark of a package for a number of iterations, with settings as environment variables,
// NAME=VALUE. A value "model:NAME:SIZE" is replaced by the path of that network, and "dir:PATH" by
// the path, in which $WORK stands for the work folder.
func golang(pkg, benchmark string, iterations int, settings ...string) source {
	return func(ctx context.Context, r *runner) (metrics, error) {
		binary := strings.ReplaceAll(pkg, "/", "-") + ".test"
		path, err := r.once(ctx, binary, "", "go", "test", "-c", "-o", filepath.Join(r.work, binary), "./"+pkg)
		if err != nil {
			return nil, err
		}
		c := exec.CommandContext(ctx, path, "-test.run", "^$", "-test.bench", benchmark, "-test.benchtime", strconv.Itoa(iterations)+"x")
		c.Dir = pkg
		c.Env = os.Environ()
		for _, s := range settings {
			name, value, _ := strings.Cut(s, "=")
			switch kind, rest, _ := strings.Cut(value, ":"); kind {
			case "model":
				net, size, _ := strings.Cut(rest, ":")
				if value, err = r.model(ctx, net, size); err != nil {
					return nil, err
				}
			case "dir":
				value = strings.ReplaceAll(rest, "$WORK", r.work)
			}
			c.Env = append(c.Env, name+"="+value)
		}
		out, err := c.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", benchmark, err, bytes.TrimSpace(out))
		}
		return parseBenchmark(string(out))
	}
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

// peer returns a source that runs a reference implementation (a peer), a Python script that prints
// one JSON object with its metrics. The script is relative to PEERS, or to this repository if it
// starts with "internal/bench/". "$PEERS", "$DATA" and "$WORK" in arguments stand for the folders of the
// runner.
func peer(script string, args ...string) source {
	return func(ctx context.Context, r *runner) (metrics, error) {
		if r.peers == "" {
			return nil, errSkip
		}
		command := exec.CommandContext(ctx, python(), script)
		if !strings.HasPrefix(script, "internal/bench/") {
			command.Dir = r.peers
		}
		replace := strings.NewReplacer("$PEERS", r.peers, "$DATA", r.data, "$WORK", r.work)
		for _, a := range args {
			command.Args = append(command.Args, replace.Replace(a))
		}
		var failure bytes.Buffer
		command.Stderr = &failure
		out, err := command.Output()
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %s", script, err, bytes.TrimSpace(failure.Bytes()))
		}
		m := metrics{}
		return m, numbers(out, m)
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

// arrays returns a source that makes two arrays of n samples x p values to compare, then runs
// another source on them.
func arrays(n, p int, then source) source {
	return func(ctx context.Context, r *runner) (metrics, error) {
		name := fmt.Sprintf("arrays-%dx%d", n, p)
		if _, err := r.once(ctx, name, "", python(), "internal/bench/arrays.py", filepath.Join(r.work, name), strconv.Itoa(n), strconv.Itoa(p)); err != nil {
			return nil, err
		}
		return then(ctx, r)
	}
}

// firstRun returns a source that exports a network and does what a newcomer does on a folder of
// images: noether init, which writes a study (a file that says what to measure), then noether run
// --dry-run, which estimates its time, and noether run. Its metrics are the number of images, the
// seconds that the dry run predicts ("stated"), those that the run takes ("s"), its processor time
// ("cpu-s") and its peak memory ("MiB-peak").
func firstRun(net string) source {
	return func(ctx context.Context, r *runner) (metrics, error) {
		model, err := r.model(ctx, net, "224")
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
		study := filepath.Join(dir, "study.yaml")
		call := func(args ...string) ([]byte, *os.ProcessState, error) {
			c := exec.CommandContext(ctx, program, args...)
			var failure bytes.Buffer
			c.Stderr = &failure
			out, err := c.Output()
			if err != nil {
				err = fmt.Errorf("noether %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(failure.Bytes()))
			}
			return out, c.ProcessState, err
		}
		if _, _, err := call("init", model, filepath.Join(r.data, "imagenet-samples"), "-o", study); err != nil {
			return nil, err
		}
		estimate, _, err := call("run", study, "--dry-run", "--json", "-o", filepath.Join(dir, "run"))
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
		start := time.Now()
		_, state, err := call("run", study, "-o", filepath.Join(dir, "run"))
		if err != nil {
			return nil, err
		}
		return metrics{"images": float64(costs[0].Samples), "stated": costs[0].Total.Seconds(), "s": time.Since(start).Seconds(),
			"cpu-s": (state.UserTime() + state.SystemTime()).Seconds(), "MiB-peak": peakMiB(state)}, os.RemoveAll(dir)
	}
}
