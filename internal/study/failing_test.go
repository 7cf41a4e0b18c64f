package study_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
)

// failing runs a disturbedStudy, which powerloss_test.go declares. The n-th change of its run
// folder (a write, sync, rename, removal or new folder) fails with cause and, if persistent, so do
// all later ones, as on a disk that fails for good. It returns the run's error, and whether the run
// made n changes or more.
func (d *disturbedStudy) failing(t *testing.T, out string, n int, persistent bool, cause error) (reached bool, err error) {
	t.Helper()
	count := 0
	stop, err := filesys.Observe(out, func(c filesys.Change, do func() error) error {
		count++
		if count == n || persistent && count > n {
			return &os.PathError{Op: c.Op.String(), Path: c.Path, Err: cause}
		}
		return do()
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = study.Run(t.Context(), studytest.Parse(t, d.dir, d.text), out, d.saveAlways())
	stop()
	return count >= n, err
}

// failThenRun makes the n-th change of a run fail, and checks the error, the folder and that
// another run completes it. It reports whether the run made n changes or more.
func (d *disturbedStudy) failThenRun(t *testing.T, n int, persistent bool, cause error) bool {
	t.Helper()
	out := filepath.Join(d.dir, fmt.Sprintf("failing-%d-%v", n, persistent))
	defer os.RemoveAll(out)
	what := fmt.Sprintf("change %d fails with %q, later ones too: %v", n, cause, persistent)
	reached, err := d.failing(t, out, n, persistent, cause)
	if err != nil && (!errors.Is(err, cause) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), ".tmp")) {
		t.Errorf("%s: error %v", what, err)
	}
	if err == nil && persistent && reached && n < 10 { // near its end a run may have written all it needs
		t.Errorf("%s: no error", what)
	}
	// A cell is one measure of a model under one transformation value. A measure that fails has a
	// record in failures; an error of the disk has none.
	if failed, _ := filepath.Glob(filepath.Join(out, "failures", "*")); len(failed) > 0 {
		t.Errorf("%s: an error of the folder is recorded for cells: %v", what, failed)
	}
	if _, err := os.Stat(filepath.Join(out, "cells")); err == nil {
		d.checkResume(t, out, what) // runs again, and compares the scores with those of an undisturbed run
	}
	return reached
}

// TestFailingChanges makes every third change of a run folder fail, each in a run of its own. With
// an even number, all later ones fail too.
func TestFailingChanges(t *testing.T) {
	t.Parallel()
	d := newDisturbedStudy(t, smallText)
	causes := []error{syscall.EIO, syscall.ENOSPC, syscall.EROFS, syscall.EDQUOT, syscall.EACCES}
	n := 1
	for d.failThenRun(t, n, n%2 == 0, causes[n/3%len(causes)]) {
		n += 3
	}
	if n < 80 {
		t.Errorf("only %d changes were made, want at least 80", n)
	}
}
