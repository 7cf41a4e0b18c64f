package study_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/filesys"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// mountDisk mounts a file system of a size such as 64k in memory. remount changes the options and
// flags of the mount. It skips the test if mounting is not allowed.
func mountDisk(t *testing.T, size string) (dir string, remount func(options string, flags uintptr)) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("no small disk can be mounted here: %v", err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
	return dir, func(options string, flags uintptr) {
		t.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|flags, options); err != nil {
			t.Fatal(err)
		}
	}
}

// assertRunFails checks that a run ends with a one-line error that contains want. No cell (the work
// on one measure, model, data set and value of a transformation) may be recorded as failed.
func assertRunFails(t *testing.T, s *study.Study, dir string, o study.Options, want string) {
	t.Helper()
	_, err := study.Run(t.Context(), s, dir, o)
	if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("error %v, want %q", err, want)
	}
	if failed, _ := filepath.Glob(filepath.Join(dir, "failures", "*")); len(failed) > 0 {
		t.Errorf("an error of writing to the folder is recorded as the failure of cells: %v", failed)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	models := t.TempDir()
	testmodel.Write(t, models, "small", testmodel.Options{})
	o := studytest.Options(t)
	want := studytest.Run(t, studytest.Parse(t, models, studytest.Text), filepath.Join(models, "uninterrupted"), o)
	// The disk is full at the start, while states (unfinished work) are saved, and while tables are
	// written.
	for _, size := range []string{"8k", "64k", "256k", "1m"} {
		t.Run(size, func(t *testing.T) {
			dir, remount := mountDisk(t, size)
			out := filepath.Join(dir, "run")
			o := o
			o.SaveInterval, o.SaveFraction = time.Nanosecond, 1e9 // save as often as possible
			assertRunFails(t, studytest.Parse(t, models, studytest.Text), out, o, "no space left on device")
			for _, f := range mustCheck(t, out, false, o) {
				t.Errorf("Check after a full disk finds %+v", f)
			}
			remount("size=64m", 0)
			studytest.SameScores(t, want.Rows, studytest.Run(t, studytest.Parse(t, models, studytest.Text), out, o).Rows, 1e-5)
			for _, f := range mustCheck(t, out, false, o) {
				t.Errorf("Check after another run finds %+v", f)
			}
		})
	}
}

func TestReadOnlyFolder(t *testing.T) {
	t.Parallel()
	models := t.TempDir()
	testmodel.Write(t, models, "small", testmodel.Options{})
	o := studytest.Options(t)
	dir, remount := mountDisk(t, "64m")
	out := filepath.Join(dir, "run")
	// studytest.Text has 150 images with four forward passes each.
	want := studytest.Run(t, studytest.Parse(t, models, studytest.Text), filepath.Join(models, "uninterrupted"), o)
	remount("", syscall.MS_RDONLY)
	assertRunFails(t, studytest.Parse(t, models, studytest.Text), out, o, "read-only file system")
	remount("", 0)
	interrupted := o // the folder becomes read-only in the middle of the run
	stop := func() {}
	interrupted.SaveInterval, interrupted.SaveFraction = time.Nanosecond, 1e9
	interrupted.Progress = func(p study.Progress) {
		if p.Done > 200 { // of 600 forward passes of a sample
			stop()
			var err error
			// A disk with an open log cannot be mounted read-only.
			if stop, err = filesys.Observe(out, func(filesys.Change, func() error) error { return syscall.EROFS }); err != nil {
				t.Error(err)
			}
		}
	}
	assertRunFails(t, studytest.Parse(t, models, studytest.Text+"batch: 16\n"), out, interrupted, "read-only file system")
	stop()
	studytest.SameScores(t, want.Rows, studytest.Run(t, studytest.Parse(t, models, studytest.Text), out, o).Rows, 1e-5)
}

// TestTruncatedCellIsDoneAgain checks that a run computes cells again whose stored results were
// truncated.
func TestTruncatedCellIsDoneAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	out := filepath.Join(dir, "run")
	want := studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, o)
	for _, share := range []int64{99, 50, 10, 0} {
		logs, _ := filepath.Glob(filepath.Join(out, "cells", "*.log"))
		if len(logs) != 1 {
			t.Fatalf("the logs %v, want one", logs)
		}
		info, err := os.Stat(logs[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(logs[0], info.Size()*share/100); err != nil {
			t.Fatal(err)
		}
		studytest.SameScores(t, want.Rows, studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, o).Rows, 1e-9)
	}
}
