package results

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/study/plan"
	"github.com/noether-ml/noether/internal/study/store"
)

// TestCreateRemovesTemporaryFilesOfKilledRuns checks that Create removes temporary files older than
// atomicfile.StaleAfter from all folders of a run, and leaves newer ones.
func TestCreateRemovesTemporaryFilesOfKilledRuns(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Create(dir, t.Logf); err != nil {
		t.Fatal(err)
	}
	recent := filepath.Join(dir, "cells", ".b.log.0123456789abcdef.tmp")
	var old []string
	for _, sub := range []string{"", "states", "failures", "pictures/views", "pictures/models", "cluster/1", "cluster/1/tasks"} {
		old = append(old, filepath.Join(dir, sub, ".a.0123456789abcdef.tmp"))
	}
	past := time.Now().Add(-2 * atomicfile.StaleAfter)
	for _, f := range append(old, recent) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o777), os.WriteFile(f, nil, 0o666)); err != nil {
			t.Fatal(err)
		}
		if f != recent {
			os.Chtimes(f, past, past)
		}
	}
	if _, err := Create(dir, t.Logf); err != nil {
		t.Fatal(err)
	}
	for _, f := range old {
		if _, err := os.Stat(f); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", f, err)
		}
	}
	if _, err := os.Stat(recent); err != nil {
		t.Errorf("the temporary file that a run may still write is gone: %v", err)
	}
}

// TestFinishedCellLeavesNoStates checks that the states of a finished cell are removed, also those
// of other shards, and that those of another cell stay.
func TestFinishedCellLeavesNoStates(t *testing.T) {
	t.Parallel()
	f, err := Create(t.TempDir(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	put := func(f Folder, keys ...string) {
		for _, key := range keys {
			if err := f.states.Put(store.Record{Key: key, Body: []byte("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.close(); err != nil {
			t.Fatal(err)
		}
	}
	put(open(f.dir), "c.1of2/conv", "c.2of2/conv", "c.3of4/conv")
	put(open(f.dir), "other.1of2/conv")
	w := Writer{Plan: &plan.Plan{Cells: []*plan.Cell{{Key: "c", Data: &plan.Data{Unreadable: &plan.UnreadableSamples{}}}}}, Folder: f}
	if err := w.Resume(); err != nil {
		t.Fatal(err)
	}
	w.dropStates(w.Plan.Cells[0])
	if err := f.states.Sweep(); err != nil {
		t.Fatal(err)
	}
	again := open(f.dir)
	if err := again.load(); err != nil {
		t.Fatal(err)
	}
	if left := again.states.Keys(); len(left) != 1 || left[0] != "other.1of2/conv" {
		t.Errorf("states %v, want only the other cell's", left)
	}
}

// TestOldFolderIsNotRead checks that one line says so.
func TestOldFolderIsNotRead(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cells/0123456789abcdef01234567.json", "states/0123456789abcdef01234567.all.bin"} {
		dir := t.TempDir()
		if _, err := Create(dir, t.Logf); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Unmerged(dir)
		if err == nil || !strings.Contains(err.Error(), "earlier version") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestProgressInVersions checks the versions of states: progress counts, except after a state that
// was of no use.
func TestProgressInVersions(t *testing.T) {
	t.Parallel()
	f := open(t.TempDir())
	put := func(seen int, scored bool) {
		if err := f.states.Put(store.Record{Key: "c.all/conv", Version: f.versionOf("c.all/conv", seen, scored)}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(seen int, scored bool) {
		t.Helper()
		version, _ := f.states.Version("c.all/conv")
		if gotSeen, gotScored := progressOf(version); gotScored != scored || !scored && gotSeen != seen {
			t.Errorf("progress %d, %v; want %d, %v", gotSeen, gotScored, seen, scored)
		}
	}
	put(64, false)
	put(32, false) // of a slower run of the same shard
	check(64, false)
	f.states.Drop("c.all/conv")
	put(32, false)
	check(32, false)
	put(32, true)
	put(96, false)
	check(0, true)
}
