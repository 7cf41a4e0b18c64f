package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestReportOfUnchangedRun checks that a repeated run does not write report.html again if it would
// write the same content. It writes it again if an image was added to the run folder, or if
// report.html was altered or removed.
func TestReportOfUnchangedRun(t *testing.T) {
	dir := brokenFolder(t) // has the valid model good.onnx, which the small study uses
	study := write(t, dir, "study.yaml", []byte(smallStudy{}.text()))
	run := filepath.Join(dir, "run")
	report := filepath.Join(run, "report.html")
	past := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, step := range []struct {
		name    string
		prepare func() error
		written bool
	}{
		{"a first run", nil, true},
		{"a second run", nil, false},
		{"a new image", func() error {
			mine := filepath.Join(run, "pictures", "mine.png")
			return errors.Join(os.MkdirAll(filepath.Dir(mine), 0o777), os.WriteFile(mine, []byte("not a PNG"), 0o666))
		}, true},
		{"the same image", nil, false},
		{"an altered report", func() error { return os.WriteFile(report, []byte("<html></html>"), 0o666) }, true},
		{"a removed report", func() error { return os.Remove(report) }, true},
	} {
		os.Chtimes(report, past, past)
		if step.prepare != nil {
			if err := step.prepare(); err != nil {
				t.Fatal(err)
			}
			os.Chtimes(report, past, past)
		}
		if code, message := call(t, "run", study, "-o", run); code != 0 {
			t.Fatal(message)
		}
		info, err := os.Stat(report)
		if err != nil {
			t.Fatal(err)
		}
		if written := !info.ModTime().Equal(past); written != step.written {
			t.Errorf("%s: written %v, want %v", step.name, written, step.written)
		}
	}
}
