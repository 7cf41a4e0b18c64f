package study_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/results"
	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

func mustCheck(t *testing.T, dir string, fix bool, o study.Options) []study.Finding {
	t.Helper()
	found, err := study.Check(t.Context(), dir, fix, o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// problemsOf returns the kinds of the findings that need a repair, by file.
func problemsOf(found []study.Finding) map[string]string {
	out := map[string]string{}
	for _, f := range found {
		if !f.Note {
			out[filepath.ToSlash(f.File)] = f.Kind
		}
	}
	return out
}

// TestCheckRepairsFolder damages a finished run folder. It checks that Check finds each problem and
// repairs it, and that another run then computes what is missing.
func TestCheckRepairsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	text := studytest.Text + "samples: true\n"
	out := filepath.Join(dir, "run")
	want := studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	if found := mustCheck(t, out, true, o); len(found) > 0 {
		t.Fatalf("findings in an undamaged folder: %+v", found)
	}
	part := o
	part.Shard = study.Shard{Index: 1, Count: 2}
	shard := filepath.Join(dir, "shard")
	studytest.Run(t, studytest.Parse(t, dir, text), shard, part)
	if found := mustCheck(t, shard, false, o); len(found) > 0 {
		t.Fatalf("findings in an undamaged shard: %+v", found)
	}

	read := func(elem ...string) []byte {
		raw, err := os.ReadFile(filepath.Join(elem...))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	write := func(raw []byte, elem ...string) {
		path := filepath.Join(elem...)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, raw, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	// logOf writes records to a new log and returns its path in the folder.
	logOf := func(sub string, records ...store.Record) string {
		before, _ := filepath.Glob(filepath.Join(out, sub, "*.log"))
		s := studytest.Stored(t, out, sub)
		if err := errors.Join(s.Put(records...), s.Close()); err != nil {
			t.Fatal(err)
		}
		after, _ := filepath.Glob(filepath.Join(out, sub, "*.log"))
		for _, file := range after {
			if !slices.Contains(before, file) {
				return sub + "/" + filepath.Base(file)
			}
		}
		t.Fatalf("no new log in %s", sub)
		return ""
	}
	keys := studytest.StoredKeys(t, out, "cells")
	cellLog, _ := filepath.Glob(filepath.Join(out, "cells", "*.log"))
	if len(keys) < 5 || len(cellLog) != 1 {
		t.Fatalf("%d cells in %v, want one log", len(keys), cellLog)
	}
	unknown0, unknown1 := strings.Repeat("0", 24), strings.Repeat("1", 24) // of no cell
	valid := studytest.StoredItem(t, out, "cells", keys[4])
	state := studytest.StoredItem(t, shard, "states", studytest.StoredKeys(t, shard, "states")[0]).Record()
	done := state
	done.Key = keys[4] + ".1of2/conv"

	studytest.DamageRecord(t, out, "cells", string(studytest.StoredItem(t, out, "cells", keys[0]).Body))
	misplaced := logOf("cells", store.Record{Key: keys[1], Body: valid.Body})
	logOf("cells", store.Record{Key: unknown1, Body: valid.Body}) // of an older study
	// A copy of the state of a cell that is done, of one whose record is damaged, and a torn log.
	doneState := logOf("states", done)
	badState := logOf("states", store.Record{Key: keys[0] + ".1of2/" + taskOf(t, shard, keys[0]), Body: []byte(`{"n": 150}`), Parts: []store.Part{{Name: "state", Data: []byte("x")}}})
	state.Key = unknown0 + ".all/"
	torn := logOf("states", state)
	raw := read(out, torn)
	write(raw[:len(raw)-1], out, torn)
	write(nil, out, "cells", "notes.txt")
	write([]byte("this is a text, and a long one at that"), out, "cells", "text.log")
	write([]byte("x"), out, "failures", unknown0+".json")         // not JSON
	write([]byte("{}"), out, "failures", keys[4]+".json")         // of a finished cell
	write(nil, out, "states", ".stale.bin.0123456789abcdef.tmp")  // gets a time in the past below
	write(nil, out, "states", ".recent.bin.0123456789abcdef.tmp") // may belong to a run in progress
	past := time.Now().Add(-2 * time.Hour)
	os.Chtimes(filepath.Join(out, "states", ".stale.bin.0123456789abcdef.tmp"), past, past)

	expected := map[string]string{
		"cells/" + filepath.Base(cellLog[0]):     results.Damaged,
		misplaced:                                results.Foreign,
		"cells/notes.txt":                        results.Foreign,
		"cells/text.log":                         results.Damaged,
		doneState:                                results.Unwanted,
		badState:                                 results.Damaged,
		torn:                                     results.Temporary,
		"failures/" + unknown0 + ".json":         results.Damaged,
		"failures/" + keys[4] + ".json":          results.Unwanted,
		"states/.stale.bin.0123456789abcdef.tmp": results.Temporary,
	}
	compare := func(what string, got map[string]string) {
		t.Helper()
		for file, kind := range expected {
			if got[file] != kind {
				t.Errorf("%s: %s is %q, want %q", what, file, got[file], kind)
			}
		}
	}
	compare("found", problemsOf(mustCheck(t, out, false, o)))
	found := mustCheck(t, out, true, o)
	compare("repaired", problemsOf(found))
	for _, f := range found {
		if !f.Note && f.Mended == "" {
			t.Errorf("not repaired: %+v", f)
		}
	}
	if !slices.ContainsFunc(found, func(f study.Finding) bool { return f.Kind == results.Old && f.Note && f.Mended == "" }) {
		t.Errorf("the cell of an older study is not reported, or was changed: %+v", found)
	}
	if after := studytest.StoredItem(t, out, "cells", keys[4]); !bytes.Equal(valid.Body, after.Body) {
		t.Error("a valid cell was changed")
	}
	if aside, _ := filepath.Glob(filepath.Join(out, "aside", "cells", "*.log")); len(aside) != 2 {
		t.Errorf("%v were moved aside, want the damaged log and the text", aside)
	}
	read(out, "states", ".recent.bin.0123456789abcdef.tmp")
	if left := problemsOf(mustCheck(t, out, false, o)); len(left) > 0 {
		t.Errorf("after the repair: %v", left)
	}
	again := studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	studytest.SameScores(t, want.Rows, again.Rows, 1e-9)

	write([]byte("study,model\n"), out, "scores.csv")
	if got := problemsOf(mustCheck(t, out, true, o)); got["scores.csv"] != results.Lacking {
		t.Errorf("a truncated table: %v", got)
	}
	if left := problemsOf(mustCheck(t, out, false, o)); len(left) > 0 {
		t.Errorf("after the repair of the table: %v", left)
	}

	// One changed bit in each of two tables: both are found, although the repair of any table
	// writes new checksums for all.
	damaged := []string{"samples.parquet", "scores.parquet"}
	for _, name := range damaged {
		raw := read(out, name)
		raw[len(raw)/2] ^= 1
		write(raw, out, name)
	}
	got := problemsOf(mustCheck(t, out, true, o))
	for _, name := range damaged {
		if got[name] != results.Damaged {
			t.Errorf("a changed bit in each of %v: findings %v, want both damaged", damaged, got)
		}
	}
}

// taskOf returns the name of the first task of a cell that has a state.
func taskOf(t *testing.T, dir, cell string) string {
	t.Helper()
	for _, key := range studytest.StoredKeys(t, dir, "states") {
		if id, task, _ := strings.Cut(key, "/"); strings.HasPrefix(id, cell) {
			return task
		}
	}
	t.Fatalf("%s has no state of cell %s", dir, cell)
	return ""
}

// TestCheckBesideARun runs check --fix again and again while runs write the folder. It must change
// nothing that they use: each run ends without an error and without warnings, and nothing is moved
// aside.
func TestCheckBesideARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	text := strings.Replace(studytest.Text, ", seis]", "]", 1) + "samples: true\nbatch: 14\nmemory: 64KiB\n"
	want := studytest.Run(t, studytest.Parse(t, dir, text), filepath.Join(dir, "whole"), o)
	o.SaveInterval, o.SaveFraction = time.Nanosecond, 1e9
	for i := range 10 {
		out := filepath.Join(dir, fmt.Sprint("run", i))
		ended := make(chan error, 1)
		mine := o
		mine.Warn = func(text string) { t.Errorf("the run warns: %s", text) }
		var rows []scores.Row
		go func() {
			r, err := study.Run(t.Context(), studytest.Parse(t, dir, text), out, mine)
			if err == nil {
				rows = r.Rows
			}
			ended <- err
		}()
		for running := true; running; {
			select {
			case err := <-ended:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
				if _, err := os.Stat(filepath.Join(out, "cells")); err == nil {
					if _, err := study.Check(t.Context(), out, true, o); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		studytest.SameScores(t, want.Rows, rows, 1e-9)
		if moved, _ := filepath.Glob(filepath.Join(out, "aside", "*", "*")); len(moved) > 0 {
			t.Errorf("files of the run were moved: %v", moved)
		}
	}
}

func TestCheckWithoutModelFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	out := filepath.Join(dir, "run")
	studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, o)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	found := mustCheck(t, out, false, o)
	if len(found) != 1 || !found[0].Note || found[0].Kind != results.Unknown || !strings.Contains(found[0].Why, "small.onnx") {
		t.Errorf("findings %+v, want a note that the model is missing", found)
	}
	if _, err := study.Check(t.Context(), dir, false, o); err == nil || !strings.Contains(err.Error(), "not a run folder") {
		t.Errorf("a folder that is no run folder: error %v, want one that says so", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := study.Check(ctx, out, false, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v, want context.Canceled", err)
	}
}
