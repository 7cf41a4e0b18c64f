package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestReportOfUnchangedRun checks that a second run leaves a report that is as it would be written,
// and writes it again if a picture was added, or if it was altered or removed.
func TestReportOfUnchangedRun(t *testing.T) {
	dir := brokenFolder(t)
	study := write(t, dir, "study.yaml", []byte(broken{}.study()))
	run := filepath.Join(dir, "run")
	page := filepath.Join(run, "report.html")
	past := time.Now().Add(-time.Hour).Truncate(time.Second)
	for _, step := range []struct {
		name    string
		prepare func() error
		written bool
	}{
		{"a first run", nil, true},
		{"a second run", nil, false},
		{"a new picture", func() error {
			return os.WriteFile(filepath.Join(run, "pictures", "mine.png"), []byte("no picture"), 0o666)
		}, true},
		{"the picture seen", nil, false},
		{"an altered page", func() error { return os.WriteFile(page, []byte("<html></html>"), 0o666) }, true},
		{"a removed page", func() error { return os.Remove(page) }, true},
	} {
		os.Chtimes(page, past, past)
		if step.prepare != nil {
			if err := step.prepare(); err != nil {
				t.Fatal(err)
			}
			os.Chtimes(page, past, past)
		}
		if code, message := call(t, "run", study, "-o", run); code != 0 {
			t.Fatal(message)
		}
		info, err := os.Stat(page)
		if err != nil {
			t.Fatal(err)
		}
		if written := !info.ModTime().Equal(past); written != step.written {
			t.Errorf("%s: written %v, want %v", step.name, written, step.written)
		}
	}
}
