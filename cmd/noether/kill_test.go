package main

import (
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

func readScores(t *testing.T, dir string) []scores.Row {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "scores.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := scores.ReadCSV(f)
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	return rows
}

// TestKilledRunEndsWithTheSameScores checks that a run that is killed by SIGKILL several times, at
// random moments, ends with the scores of an undisturbed run.
func TestKilledRunEndsWithTheSameScores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "noether")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testmodel.Write(t, dir, "good", testmodel.Options{})
	study := write(t, dir, "study.yaml", []byte(`name: killed
data: [{name: shapes, shapes: {n: 600, size: 16}}]
models: [{name: m, onnx: good.onnx, layers: [conv, penultimate]}]
transforms: [{rotate: {values: [10, 20, 30, 40]}}]
measures: [accuracy, effective-invariance, distance, seis]
samples: true
batch: 4
`))
	run := func(out string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, "run", study, "-o", out, "--save-every", "20ms")
		cmd.Stderr = os.Stderr
		return cmd
	}
	want, got := filepath.Join(dir, "whole"), filepath.Join(dir, "killed")
	if err := run(want).Run(); err != nil {
		t.Fatal(err)
	}
	const enough = 6
	pause := 30 * time.Millisecond
	for kills := 0; kills < enough; {
		cmd := run(got)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		finished, err := killAfterSaves(cmd, ended, filepath.Join(got, "states"), 1+rand.IntN(3), pause)
		if err != nil {
			t.Fatal(err)
		}
		if !finished {
			kills++
			continue
		}
		sameRows(t, want, got) // the run was too fast: start again
		if err := os.RemoveAll(got); err != nil {
			t.Fatal(err)
		}
		pause /= 2
	}
	if err := run(got).Run(); err != nil {
		t.Fatal(err)
	}
	sameRows(t, want, got)
	if left, _ := filepath.Glob(filepath.Join(got, "states", "*.bin")); len(left) > 0 {
		t.Errorf("states are left: %v", left)
	}
	samples := func(dir string) int64 {
		info, err := os.Stat(filepath.Join(dir, "samples.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if samples(want) == 0 || samples(got) == 0 {
		t.Error("samples.parquet is empty")
	}
}

// sameRows compares the scores of two run folders.
func sameRows(t *testing.T, want, got string) {
	t.Helper()
	a, b := readScores(t, want), readScores(t, got)
	if len(a) != len(b) {
		t.Fatalf("%d rows against %d", len(b), len(a))
	}
	for i := range a {
		if d := math.Abs(a[i].Value - b[i].Value); d > 1e-5*max(1, math.Abs(a[i].Value)) || math.IsNaN(a[i].Value) != math.IsNaN(b[i].Value) {
			t.Errorf("%s %s of %q: %v against %v", a[i].Measure, a[i].Statistic, a[i].Layer, b[i].Value, a[i].Value)
		}
	}
}

// killAfterSaves kills a run at a random moment after it has saved its states the given number of
// times. It reports whether the run ended before, and its error.
func killAfterSaves(cmd *exec.Cmd, ended <-chan error, states string, saves int, pause time.Duration) (finished bool, err error) {
	last := newest(states)
	for {
		select {
		case err := <-ended:
			return true, err
		case <-time.After(2 * time.Millisecond):
		}
		if now := newest(states); now.After(last) {
			last = now
			if saves--; saves == 0 {
				time.Sleep(rand.N(pause + 1))
				cmd.Process.Kill()
				<-ended
				return false, nil
			}
		}
	}
}

// newest returns the latest modification time in a folder.
func newest(dir string) time.Time {
	var last time.Time
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last
}
