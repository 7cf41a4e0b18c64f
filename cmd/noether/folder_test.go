package main

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study"
)

// TestDefaultFolderStaysInRuns checks that the default run folder of a study, which holds its
// results, is within the folder runs, whatever the study's name.
func TestDefaultFolderStaysInRuns(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"cifar rotation": "cifar rotation", "v1.2": "v1.2", "../../evil": "-..-evil", "/etc": "-etc", "..": "study", ".": "study", "": "study",
		`a\..\b`: `a-..-b`, ".hidden": "hidden",
	} {
		if got := defaultFolder(name); got != filepath.Join("runs", want) {
			t.Errorf("the folder of study %q is %s, want runs/%s", name, got, want)
		}
	}
}

// TestEarlyErrorsAreLogged checks that with --log json an error before the run becomes a
// loggedError, which is written to the log, unless it is an error of usage.
func TestEarlyErrorsAreLogged(t *testing.T) {
	t.Parallel()
	_, err := study.Load(filepath.Join(t.TempDir(), "none.yaml"), nil)
	if err == nil {
		t.Fatal("no error")
	}
	var logged *loggedError
	if got := (&observeFlags{log: "json", level: "info"}).logged(err); !asLogged(got, &logged) || !logged.log.Enabled(t.Context(), slog.LevelError) || !strings.Contains(got.Error(), "none.yaml") {
		t.Errorf("with a log: error %v, want a loggedError that names the file", got)
	}
	if got := (&observeFlags{level: "info"}).logged(err); asLogged(got, &logged) {
		t.Errorf("without a log: error %v, want no loggedError", got)
	}
	if got := (&observeFlags{log: "json", level: "info"}).logged(&usageError{nil, err}); asLogged(got, &logged) {
		t.Errorf("wrong usage: error %v, want no loggedError", got)
	}
}

// asLogged reports whether err is a loggedError, and sets target to it.
func asLogged(err error, target **loggedError) bool {
	l, ok := err.(*loggedError)
	*target = l
	return ok
}
