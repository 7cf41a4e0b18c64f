//go:build unix

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/testmodel"
)

// buildProgram compiles the command into a folder and returns its path.
func buildProgram(t *testing.T, dir string) string {
	t.Helper()
	program := filepath.Join(dir, "noether")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// promised is the time within which an interrupt ends the program. The test grants the same again
// for a machine whose cores are shared.
const promised = 2 * time.Second

// interrupt starts a command, sends it SIGINT after a pause and returns how long it took to end. It
// returns 0 if it ended before.
func interrupt(t *testing.T, pause time.Duration, program string, args ...string) time.Duration {
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
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		return 0
	}
	select {
	case err := <-ended:
		took := time.Since(start)
		if err != nil && !strings.Contains(messages.String(), "stopped") && cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
			t.Errorf("%s after %v: %v: %s", args, pause, err, &messages)
		}
		return max(took, 1)
	case <-time.After(2 * promised):
		_ = cmd.Process.Signal(syscall.SIGQUIT) // prints the stacks
		select {
		case <-ended:
		case <-time.After(promised):
			_ = cmd.Process.Kill()
			<-ended
		}
		t.Errorf("%s has not ended %v after the interrupt, which came after %v: %.3000s", args, 2*promised, pause, &messages)
		return 2 * promised
	}
}

// TestInterrupt checks that SIGINT ends the program in reads that never return, in runs of the
// engine that never end, and at random moments of a study of every kind of work.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := buildProgram(t, dir)
	pipe := filepath.Join(dir, "pipe.yaml")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	endless := testmodel.WriteEndless(t, dir, "endless")
	testmodel.Write(t, dir, "good", testmodel.Options{})
	testmodel.Write(t, dir, "other", testmodel.Options{})
	waiting := write(t, dir, "waiting.yaml", []byte(`name: waiting
data: [{name: shapes, shapes: {n: 6, size: 16}}]
models: [{name: m, onnx: endless.onnx, layers: [all]}]
measures: [firing]
`))
	study := write(t, dir, "study.yaml", []byte(`name: interrupted
data: [{name: shapes, shapes: {n: 150, size: 16}}]
models: [{name: m, onnx: good.onnx, layers: [all]}, {name: other, onnx: other.onnx, layers: [all]}]
transforms: [{rotate: {values: [10, 20]}}]
measures: [accuracy, effective-invariance, distance, seis, firing, invariance, robust-accuracy, similarity: {between: all}, stir: {between: all}]
samples: true
`))
	for _, args := range [][]string{
		{"run", pipe, "-o", filepath.Join(dir, "pipe")},
		{"inspect", endless},
		{"run", waiting, "-o", filepath.Join(dir, "run")},
		{"run", waiting, "--dry-run"},
	} {
		if took := interrupt(t, 500*time.Millisecond, program, args...); took == 0 {
			t.Errorf("%s ended by itself", args)
		}
	}
	runWithTimeout(t, program, dir)
	start := time.Now()
	interrupt(t, time.Hour, program, "run", study, "-o", filepath.Join(dir, "whole"))
	length, longest := time.Since(start), time.Duration(0)
	for i := range 6 {
		took := interrupt(t, rand.N(length+1), program, "run", study, "-o", filepath.Join(dir, fmt.Sprint("run", i)))
		longest = max(longest, took)
	}
	t.Logf("a run of %v; the longest end took %v", length.Round(time.Millisecond), longest.Round(time.Millisecond))
}

// runWithTimeout checks that --timeout fails the cells of a model that never ends, and no others.
func runWithTimeout(t *testing.T, program, dir string) {
	t.Helper()
	study := write(t, dir, "timeout.yaml", []byte(`name: timeout
data: [{name: shapes, shapes: {n: 6, size: 16}}]
models: [{name: endless, onnx: endless.onnx, layers: [all]}, {name: good, onnx: good.onnx, layers: [conv]}]
transforms: [{rotate: {values: [10]}}]
measures: [distance]
`))
	out := filepath.Join(dir, "timeout")
	printed, err := exec.CommandContext(t.Context(), program, "run", study, "-o", out, "--timeout", "2s").CombinedOutput()
	if err == nil || !strings.Contains(string(printed), "endless.onnx: a run of 1 black images of 3 x 16 x 16 failed: running a graph: it did not end within the time limit of 2s\n") {
		t.Errorf("%v: %s", err, printed)
	}
	for _, r := range readScores(t, out) {
		if r.Model != "good" {
			t.Errorf("a score of %s", r.Model)
		}
	}
}
