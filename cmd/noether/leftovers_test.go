package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestStaleTemporaryFiles checks that a command that writes into a folder removes the temporary
// files that a killed process left there: those older than atomicfile.StaleAfter, an hour.
func TestStaleTemporaryFiles(t *testing.T) {
	// The folder of the results of a run, beside its model and study, and the compiled command.
	run, program := finishedRun(t), buildProgram(t)
	models := filepath.Dir(run)
	model, study := filepath.Join(models, "good.onnx"), filepath.Join(models, "study.yaml")
	past := time.Now().Add(-2 * time.Hour)
	for name, c := range map[string]struct {
		folder string // that the command writes into; "": a new one
		args   func(folder string) []string
	}{
		"run":    {run, func(string) []string { return []string{"run", study, "-o", run} }},
		"report": {run, func(string) []string { return []string{"report", run} }},
		"export": {"", func(d string) []string { return []string{"export", run, "--csv", "-o", filepath.Join(d, "x.csv")} }},
		"plot":   {"", func(d string) []string { return []string{"plot", run, "-o", filepath.Join(d, "x.svg")} }},
		"grad":   {"", func(d string) []string { return []string{"grad", model, "-o", filepath.Join(d, "x.onnx")} }},
		"init": {"", func(d string) []string {
			return []string{"init", model, filepath.Join(models, "photos"), "-o", filepath.Join(d, "x.yaml")}
		}},
	} {
		folder := c.folder
		if folder == "" {
			folder = t.TempDir()
		}
		stale := filepath.Join(folder, ".scores.csv.0123456789abcdef.tmp")
		if err := os.WriteFile(stale, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(stale, past, past); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), program, c.args(folder)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", name, err, out)
		}
		if exists(stale) {
			t.Errorf("%s did not remove %s", name, stale)
		}
	}
}
