//go:build unix

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// interruptDeadline is the time after which a test decides that a signal does not end the program.
// The documentation says two seconds; on a machine whose cores are shared it may take longer.
const interruptDeadline = 30 * time.Second

// interrupt starts a command, sends it a signal after a pause and returns how long it then took to
// end. It returns 0 if the command ended before the signal.
func interrupt(t *testing.T, signal syscall.Signal, pause time.Duration, program string, args ...string) time.Duration {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Fatalf("%s: %v: %s", args, err, &messages)
		}
		return 0
	case <-time.After(pause):
	}
	start := time.Now()
	if err := cmd.Process.Signal(signal); err != nil {
		return 0
	}
	select {
	case err := <-ended:
		took := time.Since(start)
		if err != nil && !strings.Contains(messages.String(), "stopped") && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != signal {
			t.Errorf("%s after %v: %v: %s", args, pause, err, &messages)
		}
		return max(took, 1)
	case <-time.After(interruptDeadline):
		_ = cmd.Process.Signal(syscall.SIGQUIT) // prints the stacks of all goroutines
		select {
		case <-ended:
		case <-time.After(2 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		t.Errorf("%s has not ended %v after %v, which came after %v: %.3000s", args, interruptDeadline, signal, pause, &messages)
		return interruptDeadline
	}
}

// TestInterrupt checks that SIGINT and SIGTERM end the program while ONNX Runtime runs a model that
// never ends, and within an operator that takes hours. A named pipe is refused at once. It sends
// SIGINT also at random moments of a study with measures of every kind: some sum up batches, others
// hold samples in memory or optimise inputs.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := buildProgram(t)
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	endless := testmodel.WriteEndless(t, dir, "endless")
	slow := testmodel.WriteSlow(t, dir, "slow", 2000) // about 2000^4 comparisons in one operator
	// Fast on the zeros of the trial run before a study, slow on its data.
	testmodel.WriteSlowUnlessBlack(t, dir, "bright", 2000)
	testmodel.Write(t, dir, "good", testmodel.Options{})
	testmodel.Write(t, dir, "other", testmodel.Options{})
	studyOf := func(model string) string {
		return write(t, dir, model+".yaml", []byte(`name: waiting
data: [{name: shapes, shapes: {n: 6, size: 16}}]
models: [{name: m, onnx: `+model+`.onnx, layers: [output]}]
transforms: [{rotate: {values: [10]}}]
measures: [distance]
`))
	}
	endlessStudy, slowStudy := studyOf("endless"), studyOf("bright")
	study := write(t, dir, "study.yaml", []byte(`name: interrupted
data: [{name: shapes, shapes: {n: 150, size: 16}}]
models: [{name: m, onnx: good.onnx, layers: [all]}, {name: other, onnx: other.onnx, layers: [all]}]
transforms: [{rotate: {values: [10, 20]}}]
measures: [accuracy, effective-invariance, distance, seis, firing, invariance, robust-accuracy, similarity: {between: all}, stir: {between: all}]
samples: true
`))
	if out, err := exec.Command(program, "run", pipe, "-o", filepath.Join(dir, "pipe")).CombinedOutput(); err == nil || !strings.Contains(string(out), "named pipe") {
		t.Errorf("a study in a named pipe: %v, %s", err, out)
	}
	for _, args := range [][]string{
		{"inspect", endless},
		{"inspect", slow},
		{"run", endlessStudy, "-o", filepath.Join(dir, "run")},
		{"run", slowStudy, "-o", filepath.Join(dir, "within")},
		{"run", endlessStudy, "--dry-run"},
	} {
		for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			if took := interrupt(t, signal, 500*time.Millisecond, program, args...); took == 0 {
				t.Errorf("%s ended by itself", args)
			}
		}
	}
	runWithTimeout(t, program, dir)
	start := time.Now()
	// The pause is longer than the whole run.
	interrupt(t, syscall.SIGINT, time.Hour, program, "run", study, "-o", filepath.Join(dir, "whole"))
	length, longest := time.Since(start), time.Duration(0)
	for i := range 6 {
		took := interrupt(t, syscall.SIGINT, rand.N(length+1), program, "run", study, "-o", filepath.Join(dir, fmt.Sprint("run", i)))
		longest = max(longest, took)
	}
	t.Logf("a run takes %v; after a signal it ended within %v", length.Round(time.Millisecond), longest.Round(time.Millisecond))
}

// runWithTimeout checks that the cells of a model that never ends, and of one with an operator that
// takes hours, fail with --timeout, and that those of models that need terabytes of memory fail
// with the memory limit. The cells of the other model have scores.
func runWithTimeout(t *testing.T, program, dir string) {
	t.Helper()
	// Each needs 12 bytes x 4,000,000^2, which are the GiB of the error below. In the first the
	// size is known from the graph; in the second it is computed from the data.
	testmodel.WriteExpanding(t, dir, "known", 4_000_000, true)
	testmodel.WriteExpanding(t, dir, "data", 4_000_000, false)
	study := write(t, dir, "timeout.yaml", []byte(`name: timeout
data: [{name: shapes, shapes: {n: 6, size: 16}}]
models:
  - {name: endless, onnx: endless.onnx, layers: [all]}
  - {name: slow, onnx: slow.onnx, layers: [all]}
  - {name: known, onnx: known.onnx, layers: [output]}
  - {name: data, onnx: data.onnx, layers: [output]}
  - {name: good, onnx: good.onnx, layers: [conv]}
transforms: [{rotate: {values: [10]}}]
measures: [distance]
`))
	out := filepath.Join(dir, "timeout")
	if printed, err := exec.CommandContext(t.Context(), program, "run", study, "-o", out, "--timeout", "2s").CombinedOutput(); err == nil {
		t.Errorf("a run with models that fail has no error: %s", printed)
	}
	record, err := scores.ReadRecord(filepath.Join(out, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	failed := map[string]string{}
	for _, f := range record.Failed {
		failed[f.Model] = f.Error
	}
	memory := `running a graph: node "Expand" (Expand) needs 178813.9 GiB more memory, and `
	for model, want := range map[string]string{
		"endless": "running a graph: it did not end within the time limit of 2s", "slow": "running a graph: it did not end within the time limit of 2s",
		"known": memory, "data": memory,
	} {
		if got := failed[model]; !strings.Contains(got, model+".onnx: a run on zeros of 1 x 3 x 16 x 16 failed: "+want) || strings.Contains(got, "\n") {
			t.Errorf("the failure of %s is %q, want %q", model, got, want)
		}
	}
	if len(failed) != 4 {
		t.Errorf("%d models failed, want 4", len(failed))
	}
	for _, r := range readScores(t, out) {
		if r.Model != "good" {
			t.Errorf("there is a score of %s, want scores of good only", r.Model)
		}
	}
}
