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

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// TestFiftyRandomMoments checks that runs that are ended at fifty random moments, by SIGKILL or
// SIGTERM, leave no partial files. Runs that finish have the scores of an undisturbed run.
func TestFiftyRandomMoments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "noether")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	testmodel.Write(t, dir, "good", testmodel.Options{})
	study := write(t, dir, "study.yaml", []byte(`name: moments
data: [{name: shapes, shapes: {n: 200, size: 16}}]
models: [{name: m, onnx: good.onnx, layers: [conv, penultimate]}]
transforms: [{rotate: {values: [10, 20]}}]
measures: [accuracy, distance, seis: {interval: false}]
samples: true
batch: 8
`))
	run := func(out string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(t.Context(), program, "run", study, "-o", out, "--save-every", "10ms")
		var said bytes.Buffer
		cmd.Stderr = &said
		return cmd, &said
	}
	want := filepath.Join(dir, "whole")
	start := time.Now()
	cmd, said := run(want)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	within := time.Since(start) // the range of the random moments, adapted to the speed of the machine
	moments := 50
	if testing.Short() {
		moments = 12
	}
	got := filepath.Join(dir, "disturbed")
	ends, stops := 0, 0
	for i := range moments {
		cmd, said := run(got)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.Int64N(int64(within))))
		signal := []os.Signal{syscall.SIGKILL, syscall.SIGTERM}[i%2]
		cmd.Process.Signal(signal)
		late := time.AfterFunc(2*time.Minute, func() { cmd.Process.Kill() })
		err := cmd.Wait()
		if !late.Stop() {
			t.Fatalf("the run does not end on %v", signal)
		}
		nothingIsHalfWritten(t, got)
		switch {
		case err == nil: // it finished before
			ends++
			within = within * 4 / 5
			sameRows(t, want, got)
			if err := os.RemoveAll(got); err != nil {
				t.Fatal(err)
			}
		case signal == syscall.SIGTERM && !strings.Contains(said.String(), "stopped") && strings.Contains(said.String(), "noether:"):
			t.Fatalf("on SIGTERM it says %q", said)
		default:
			stops++
			within += within / 20
		}
	}
	if stops < moments/4 {
		t.Errorf("%d of %d runs were stopped: the test tests too little", stops, moments)
	}
	if cmd, said = run(got); cmd.Run() != nil {
		t.Fatalf("the last run: %s", said)
	}
	sameRows(t, want, got)
	if out, err := exec.CommandContext(t.Context(), program, "check", got).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	t.Logf("%d stops, %d ends", stops, ends)
}

// nothingIsHalfWritten reads every record of a run folder that has one.
func nothingIsHalfWritten(t *testing.T, dir string) {
	t.Helper()
	cells, _ := filepath.Glob(filepath.Join(dir, "cells", "*.json"))
	for _, c := range cells {
		if strings.HasSuffix(c, ".samples.json") {
			continue
		}
		if _, err := scores.ReadCell(c); err != nil {
			t.Error(err)
		}
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
