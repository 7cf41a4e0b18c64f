package main

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/internal/study/store"
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

// TestKilledRunEndsWithTheSameScores checks that a run that is killed by SIGKILL several times ends
// with the scores of an undisturbed run, and that no kill leaves a half-written file. Half of the
// kills are aimed at moments when the run writes states, from which a later run continues. The
// others happen at random moments.
func TestKilledRunEndsWithTheSameScores(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := buildProgram(t)
	testmodel.Write(t, dir, "good", testmodel.Options{})
	study := write(t, dir, "study.yaml", []byte(`name: killed
data: [{name: shapes, shapes: {n: 2000, size: 16}}]
models: [{name: m, onnx: good.onnx, layers: [conv, penultimate]}]
transforms: [{rotate: {values: [10, 20, 30, 40, 50, 60, 70, 80]}}]
measures: [accuracy, effective-invariance, distance, seis]
samples: true
batch: 4
`))
	run := func(out string, more ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program, append([]string{"run", study, "-o", out}, more...)...)
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // for killWhen
		return cmd
	}
	want, got := filepath.Join(dir, "whole"), filepath.Join(dir, "killed")
	if err := run(want).Run(); err != nil {
		t.Fatal(err)
	}
	const minKills = 8
	killedWriting := 0 // kills while a state was written
	completed := 0     // runs that ended before they were killed
	for kills := 0; kills < minKills || killedWriting < minKills/2; {
		if completed == 25 || kills == 5*minKills {
			t.Fatalf("%d of %d kills hit a run that was writing a state, and %d runs ended before they were killed: states are written too fast", killedWriting, kills, completed)
		}
		since := time.Now()
		cmd := run(got, "--save-every", "5ms")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		condition := afterSaves(1+rand.IntN(3), rand.N(30*time.Millisecond))
		if kills%2 == 0 || kills >= minKills {
			condition = whileWriting(1+rand.IntN(5), since)
		}
		finished, err := killWhen(cmd, ended, filepath.Join(got, "states"), condition)
		if err != nil {
			t.Fatal(err)
		}
		if finished { // start again
			completed++
			sameRows(t, want, got)
			if err := os.RemoveAll(got); err != nil {
				t.Fatal(err)
			}
			continue
		}
		kills++
		if torn(filepath.Join(got, "states"), since) {
			killedWriting++
		}
		checkFilesComplete(t, program, got)
	}
	t.Logf("%d kills hit a run that was writing a state, and %d runs ended before they were killed", killedWriting, completed)
	if err := run(got).Run(); err != nil {
		t.Fatal(err)
	}
	sameRows(t, want, got)
	if left, _ := filepath.Glob(filepath.Join(got, "states", "*")); len(left) > 0 {
		t.Errorf("the finished run has left the states %v", left)
	}
	sizeOfSamples := func(dir string) int64 {
		info, err := os.Stat(filepath.Join(dir, "samples.parquet"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	if sizeOfSamples(want) == 0 || sizeOfSamples(got) == 0 {
		t.Error("samples.parquet is empty")
	}
}

// checkFilesComplete checks with "noether check" that a kill has left no file in a run folder that
// is half-written (Damaged) or not of a run (Foreign).
func checkFilesComplete(t *testing.T, program, run string) {
	t.Helper()
	raw, _ := exec.CommandContext(t.Context(), program, "check", run, "--json").Output()
	var found []results.Finding
	if err := json.Unmarshal(raw, &found); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for _, f := range found {
		if f.Kind == results.Damaged || f.Kind == results.Foreign {
			t.Errorf("a kill leaves %+v", f)
		}
	}
}

// sameRows checks that the scores of two run folders are equal to the bit: values, intervals, nulls
// and numbers of samples.
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

// killWhen kills a run when a condition on its folder of states holds. The condition is evaluated
// every 200 microseconds. killWhen reports whether the run ended before, and its error.
func killWhen(cmd *exec.Cmd, ended <-chan error, states string, holds func(states string) bool) (finished bool, err error) {
	for {
		select {
		case err := <-ended:
			return true, err
		case <-time.After(200 * time.Microsecond):
		}
		if holds(states) {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the process and the one that it supervises
			<-ended
			return false, nil
		}
	}
}

// afterSaves returns a condition that holds once the given delay has passed after a number of saves
// of states.
func afterSaves(saves int, delay time.Duration) func(states string) bool {
	var last time.Time
	return func(states string) bool {
		now := newest(states)
		switch {
		case saves > 0 && now.After(last):
			last = now
			saves--
		case saves == 0 && time.Since(last) > delay:
			return true
		}
		return false
	}
}

// whileWriting returns a condition that holds while states are written, from the n-th time on that
// it is so. since is the start of the run.
func whileWriting(n int, since time.Time) func(states string) bool {
	return func(states string) bool {
		if torn(states, since) {
			n--
		}
		return n <= 0
	}
}

// torn reports whether a log in a folder of states that was written after a time ends in an
// incomplete record.
func torn(states string, since time.Time) bool {
	s := store.New(states, store.Options{})
	defer s.Close()
	if s.Refresh() != nil {
		return false
	}
	return slices.ContainsFunc(s.Logs(), func(l store.Log) bool {
		info, err := os.Stat(filepath.Join(states, l.Name))
		return err == nil && l.Tail > 0 && info.ModTime().After(since)
	})
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
