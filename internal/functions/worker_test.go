package functions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// interpreter returns a program that takes the place of Python.
func interpreter(t *testing.T, script string) Interpreter {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return Interpreter{Executable: path}
}

// TestWorkerThatEnds checks the errors of calls of a process that cannot start, or ends.
func TestWorkerThatEnds(t *testing.T) {
	p := Program{Use: Transforms, Name: "mine:f"}
	if _, err := Start(t.Context(), Interpreter{Executable: filepath.Join(t.TempDir(), "absent")}, []Program{p}); err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Errorf("error %v for an absent interpreter", err)
	}
	with := interpreter(t, "read line; echo 'mine has no f' >&2; exit 1")
	var printed []string
	with.Log = func(text string) { printed = append(printed, text) }
	w, err := Start(t.Context(), with, []Program{p})
	if err != nil {
		t.Fatal(err)
	}
	f := remote{use: Transforms, name: "mine:f@0123", inputs: 3}
	if _, err := f.call(nil, "image"); err == nil || err.Error() != "function mine:f: its Python process ended: mine has no f" {
		t.Errorf("error %v", err)
	}
	if Digest(Transforms, "mine:f") != "" {
		t.Error("a digest of a function that was not loaded")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if len(printed) != 1 {
		t.Errorf("printed %q", printed)
	}
	with = interpreter(t, `read line; echo 'a warning' >&2; echo '{"address": "unix:/nowhere:", "digest": "abc"}'; exit 3`)
	if w, err = Start(t.Context(), with, []Program{p}); err != nil {
		t.Fatal(err)
	}
	<-w.all[0].ended
	f = remote{use: Transforms, name: "mine:f", inputs: 3}
	if _, err := f.call(nil, "image"); err == nil || err.Error() != "function mine:f: its Python process ended: exit status 3 (it last printed: a warning)" {
		t.Errorf("error %v after a warning", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	f = remote{use: Transforms, name: "mine:f", inputs: 3}
	if _, err := f.call(nil, "image"); err == nil || !strings.Contains(err.Error(), "--allow-python") {
		t.Errorf("error %v without a worker", err)
	}
}

// TestCloseEndsProcesses checks that a process that ignores the end of its input is killed.
func TestCloseEndsProcesses(t *testing.T) {
	w, err := Start(t.Context(), interpreter(t, `read line; echo '{"address": "unix:/nowhere:", "digest": "abc"}'; trap "" TERM; while true; do sleep 0.1; done`),
		[]Program{{Use: Measures, Name: "mine:g"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := Digest(Measures, "mine:g"); got != "abc" {
		t.Errorf("digest %q", got)
	}
	start := time.Now()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("closing took %v", d)
	}
}

func TestTitle(t *testing.T) {
	for name, want := range map[string]string{"mine:angle": "angle", "a.b:c.angle@0f": "c.angle", "angle-0123456789": "angle"} {
		if got := Title(name); got != want {
			t.Errorf("Title(%q) = %q, want %q", name, got, want)
		}
	}
}
