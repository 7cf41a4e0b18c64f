package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
	"github.com/noether-ml/noether/study/rundir"
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

// TestKilledRunEndsWithTheSameScores checks that a run that is killed by SIGKILL several times, in the
// middle of writing a state and at random moments, ends with the scores of an undisturbed run. No kill
// may leave a half-written file.
func TestKilledRunEndsWithTheSameScores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := buildProgram(t)
	testmodel.Write(t, dir, "good", testmodel.Options{})
	study := write(t, dir, "study.yaml", []byte(`name: killed
data: [{name: shapes, shapes: {n: 600, size: 16}}]
models: [{name: m, onnx: good.onnx, layers: [conv, penultimate]}]
transforms: [{rotate: {values: [10, 20, 30, 40, 50, 60, 70, 80]}}]
measures: [accuracy, effective-invariance, distance, seis]
samples: true
batch: 4
`))
	run := func(out string, more ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"run", study, "-o", out}, more...)...)
		cmd.Stderr = os.Stderr
		return cmd
	}
	want, got := filepath.Join(dir, "whole"), filepath.Join(dir, "killed")
	if err := run(want).Run(); err != nil {
		t.Fatal(err)
	}
	const enough = 8 // half of them while a state is written
	writing, tooFast := 0, 0
	for kills := 0; kills < enough || writing < enough/2; {
		if tooFast == 25 || kills == 5*enough {
			t.Fatalf("%d of %d kills hit a run that was writing a state, and %d runs ended before: states are written in place, or too fast", writing, kills, tooFast)
		}
		cmd := run(got, "--save-every", "5ms")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		when := afterSaves(1+rand.IntN(3), rand.N(30*time.Millisecond))
		if kills%2 == 0 || kills >= enough {
			when = whileWriting(1 + rand.IntN(5))
		}
		finished, err := killWhen(cmd, ended, filepath.Join(got, "states"), when)
		if err != nil {
			t.Fatal(err)
		}
		if finished { // the run was too fast: start again
			tooFast++
			sameRows(t, want, got)
			if err := os.RemoveAll(got); err != nil {
				t.Fatal(err)
			}
			continue
		}
		kills++
		if len(temporary(filepath.Join(got, "states"))) > 0 {
			writing++
		}
		nothingDamaged(t, program, got)
		for _, file := range temporary(filepath.Join(got, "states")) {
			os.Remove(filepath.Join(got, "states", file))
		}
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

// nothingDamaged checks that a kill has left no half-written file.
func nothingDamaged(t *testing.T, program, run string) {
	t.Helper()
	raw, _ := exec.CommandContext(t.Context(), program, "check", run, "--json").Output()
	var found []rundir.Finding
	if err := json.Unmarshal(raw, &found); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for _, f := range found {
		if f.Kind == rundir.Damaged || f.Kind == rundir.Foreign {
			t.Errorf("a kill leaves %+v", f)
		}
	}
}

// sameRows checks that the scores of two run folders are equal to the bit: values, intervals and
// nulls.
func sameRows(t *testing.T, want, got string) {
	t.Helper()
	a, b := readScores(t, want), readScores(t, got)
	if len(a) != len(b) {
		t.Fatalf("%d rows, want %d", len(b), len(a))
	}
	same := func(x, y float64) bool {
		return math.IsNaN(x) && math.IsNaN(y) || x == y
	}
	intervals := 0
	for i := range a {
		x, y := a[i], b[i]
		if !same(x.Value, y.Value) || !same(x.Low, y.Low) || !same(x.High, y.High) || !same(x.Null, y.Null) || x.N != y.N {
			t.Errorf("%s %s of %q: %v [%v, %v] null %v n %d, want %v [%v, %v] null %v n %d", x.Measure, x.Statistic, x.Layer,
				y.Value, y.Low, y.High, y.Null, y.N, x.Value, x.Low, x.High, x.Null, x.N)
		}
		if !math.IsNaN(x.Low) {
			intervals++
		}
	}
	if intervals == 0 {
		t.Error("no score has an interval")
	}
}

// killWhen kills a run when a condition on its folder of states holds, which is evaluated every 200
// microseconds. It reports whether the run ended before, and its error.
func killWhen(cmd *exec.Cmd, ended <-chan error, states string, holds func(states string) bool) (finished bool, err error) {
	for {
		select {
		case err := <-ended:
			return true, err
		case <-time.After(200 * time.Microsecond):
		}
		if holds(states) {
			cmd.Process.Kill()
			<-ended
			return false, nil
		}
	}
}

// afterSaves returns a condition that holds some time after states were saved a number of times.
func afterSaves(saves int, pause time.Duration) func(states string) bool {
	var last time.Time
	return func(states string) bool {
		now := newest(states)
		switch {
		case saves > 0 && now.After(last):
			last = now
			saves--
		case saves == 0 && time.Since(last) > pause:
			return true
		}
		return false
	}
}

// whileWriting returns a condition that holds while the n-th state is written.
func whileWriting(n int) func(states string) bool {
	seen := map[string]bool{}
	return func(states string) bool {
		for _, file := range temporary(states) {
			seen[file] = true
		}
		return len(seen) >= n && len(temporary(states)) > 0
	}
}

// temporary returns the names of the temporary files of a folder into which states are being written.
func temporary(dir string) []string {
	var out []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if atomicfile.IsTemporary(e.Name()) && strings.Contains(e.Name(), ".bin.") {
			out = append(out, e.Name())
		}
	}
	return out
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
