package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// TestEndsWithReader checks that a run ends when nobody reads its messages any more.
func TestEndsWithReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.WriteEndless(t, dir, "endless")
	study := write(t, dir, "study.yaml", []byte(`name: endless
data: [{name: shapes, shapes: {n: 6, size: 16}}]
models: [{name: m, onnx: endless.onnx, layers: [output]}]
transforms: [{rotate: {values: [10]}}]
measures: [distance]
`))
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), buildProgram(t), "run", study, "-o", filepath.Join(dir, "run"))
	cmd.Stderr = writer
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	writer.Close()
	time.Sleep(500 * time.Millisecond)
	reader.Close()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(interruptDeadline):
		_ = cmd.Process.Kill()
		t.Errorf("the run has not ended %v after its reader", interruptDeadline)
	}
}

// TestSignalsAtRandomTimes sends SIGKILL or SIGTERM to fifty runs of a study (a list of
// measurements of a model) at random times, each of which resumes the run before. None leaves a
// partial file. Runs that finish have the scores of an uninterrupted run, which sameRows compares.
func TestSignalsAtRandomTimes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := buildProgram(t)
	testmodel.Write(t, dir, "good", testmodel.Options{}) // good.onnx, a small convolutional network
	// shapes are synthetic images. seis is a measure of equivariance and invariance, here without
	// confidence intervals. samples: true also writes the values of single samples.
	study := write(t, dir, "study.yaml", []byte(`name: signals
data: [{name: shapes, shapes: {n: 200, size: 16}}]
models: [{name: m, onnx: good.onnx, layers: [conv, penultimate]}]
transforms: [{rotate: {values: [10, 20]}}]
measures: [accuracy, distance, seis: {interval: false}]
samples: true
batch: 8
`))
	// run returns a run that saves unfinished measurements into the folder out every 10 ms.
	run := func(out string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(t.Context(), program, "run", study, "-o", out, "--save-every", "10ms")
		var messages bytes.Buffer
		cmd.Stderr = &messages
		return cmd, &messages
	}
	want := filepath.Join(dir, "whole")
	start := time.Now()
	cmd, messages := run(want)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, messages)
	}
	longest := time.Since(start) // maximum time before a signal, adapted so that some runs finish and others not
	signals := 50
	if testing.Short() {
		signals = 12
	}
	got := filepath.Join(dir, "interrupted")
	finished, stopped := 0, 0
	for i := range signals {
		cmd, messages := run(got)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(longest))))
		signal := []os.Signal{syscall.SIGKILL, syscall.SIGTERM}[i%2]
		cmd.Process.Signal(signal)
		timeout := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		if !timeout.Stop() {
			t.Fatalf("the run has not ended two minutes after %v", signal)
		}
		noPartialFiles(t, got)
		switch {
		case err == nil: // the run finished before the signal
			finished++
			longest = longest * 4 / 5
			sameRows(t, want, got)
			if err := os.RemoveAll(got); err != nil {
				t.Fatal(err)
			}
		case signal == syscall.SIGTERM && !strings.Contains(messages.String(), "stopped") && strings.Contains(messages.String(), "noether:"):
			t.Fatalf("after SIGTERM it prints %q", messages)
		default:
			stopped++
			longest += longest / 20
		}
	}
	if stopped < signals/4 {
		t.Errorf("%d of %d runs were stopped, too few to test interruptions", stopped, signals)
	}
	if cmd, messages = run(got); cmd.Run() != nil {
		t.Fatalf("the last run: %s", messages)
	}
	sameRows(t, want, got)
	if out, err := exec.CommandContext(t.Context(), program, "check", got).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("%d runs were stopped, %d finished before", stopped, finished)
}

// noPartialFiles checks that the files of a run folder can be read: the cells, run.json and
// scores.csv, if they exist.
func noPartialFiles(t *testing.T, dir string) {
	t.Helper()
	for _, sub := range []string{"cells", "states"} {
		s := store.New(filepath.Join(dir, sub), store.Options{Verify: true})
		if err := s.Refresh(); err != nil {
			t.Fatal(err)
		}
		for _, l := range s.Logs() {
			if l.Damaged > 0 || l.Tail > 0 {
				t.Errorf("a log of %s is incomplete: %+v", sub, l)
			}
		}
		s.Close()
	}
	if record := filepath.Join(dir, "run.json"); exists(record) {
		if _, err := scores.ReadRecord(record); err != nil {
			t.Error(err)
		}
	}
	if table := filepath.Join(dir, "scores.csv"); exists(table) {
		readScores(t, dir)
	}
}
