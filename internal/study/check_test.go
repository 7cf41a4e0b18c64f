package study_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/rundir"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

func mustCheck(t *testing.T, dir string, fix bool, o study.Options) []study.Finding {
	t.Helper()
	found, err := study.Check(t.Context(), dir, fix, o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// problemsOf returns the kinds of the findings that need a repair, by file. A foreign file is not
// one of a run, or is that of another cell than its name says. An unwanted one is left over from
// finished work, or holds samples of a cell that has no record. One is lacking if it is missing, or
// differs from the cells that it is computed from.
func problemsOf(found []study.Finding) map[string]string {
	out := map[string]string{}
	for _, f := range found {
		if !f.Note {
			out[filepath.ToSlash(f.File)] = f.Kind
		}
	}
	return out
}

// TestCheckRepairsFolder damages a finished run folder, which has a file for each cell: a measure
// for one model, data set, transformation value and trial. It checks that Check finds each problem
// and repairs it, and that another run then computes what is missing. A state file holds the
// unfinished work of a cell; here it comes from a shard, a run on half of the samples. A trial is a
// repetition of all random draws; studyText is in helpers_test.go.
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
	cells, _ := filepath.Glob(filepath.Join(out, "cells", "*.json"))
	var plain, sampled []string // keys of cells without and with a file of per-sample values
	for _, c := range cells {
		if name := filepath.Base(c); strings.HasSuffix(name, ".samples.json") {
			sampled = append(sampled, strings.TrimSuffix(name, ".samples.json"))
		}
	}
	for _, c := range cells {
		if key := strings.TrimSuffix(filepath.Base(c), ".json"); !strings.HasSuffix(key, ".samples") && !slices.Contains(sampled, key) {
			plain = append(plain, key)
		}
	}
	if len(plain) < 3 || len(sampled) < 2 {
		t.Fatalf("%d cells without samples, %d with", len(plain), len(sampled))
	}
	// Keys have 24 hexadecimal digits. No cell has these.
	unknown0, unknown1, unknown2 := strings.Repeat("0", 24), strings.Repeat("1", 24), strings.Repeat("2", 24)
	states, _ := filepath.Glob(filepath.Join(shard, "states", plain[2]+".*.bin"))
	state := read(states[0])
	stateOf := filepath.Base(states[0])

	write(read(out, "cells", plain[0]+".json")[:50], out, "cells", plain[0]+".json")              // truncated
	write(read(out, "cells", plain[2]+".json"), out, "cells", plain[1]+".json")                   // the record of another cell
	write([]byte("{"), out, "cells", sampled[0]+".samples.json")                                  // damaged samples
	write(read(out, "cells", sampled[1]+".samples.json"), out, "cells", unknown0+".samples.json") // samples of an unknown cell
	write(read(out, "cells", plain[2]+".json"), out, "cells", unknown1+".json")                   // of an older study
	write(nil, out, "cells", "notes.txt")
	// The name of a state ends in its shard, such as 1of2, or in "all" for all samples.
	write(state[:len(state)-1], out, "states", unknown0+".1of2.bin") // truncated
	write(state, out, "states", unknown2+".all.bin")                 // the state of another cell
	write(state, out, "states", stateOf)                             // of a finished cell
	write([]byte("x"), out, "failures", unknown0+".json")            // not JSON
	write([]byte("{}"), out, "failures", plain[2]+".json")           // of a finished cell
	write(nil, out, "states", ".stale.bin.0123456789abcdef.tmp")     // gets a time in the past below
	write(nil, out, "states", ".recent.bin.0123456789abcdef.tmp")    // may belong to a run in progress
	past := time.Now().Add(-2 * time.Hour)
	os.Chtimes(filepath.Join(out, "states", ".stale.bin.0123456789abcdef.tmp"), past, past)

	expected := map[string]string{
		"cells/" + plain[0] + ".json":            rundir.Damaged,
		"cells/" + plain[1] + ".json":            rundir.Foreign,
		"cells/" + sampled[0] + ".json":          rundir.Damaged, // with its samples
		"cells/" + sampled[0] + ".samples.json":  rundir.Damaged,
		"cells/" + unknown0 + ".samples.json":    rundir.Unwanted,
		"cells/notes.txt":                        rundir.Foreign,
		"states/" + unknown0 + ".1of2.bin":       rundir.Damaged,
		"states/" + unknown2 + ".all.bin":        rundir.Foreign,
		"states/" + stateOf:                      rundir.Unwanted,
		"failures/" + unknown0 + ".json":         rundir.Damaged,
		"failures/" + plain[2] + ".json":         rundir.Unwanted,
		"states/.stale.bin.0123456789abcdef.tmp": rundir.Temporary,
	}
	compare := func(what string, got map[string]string) {
		t.Helper()
		for file, kind := range expected {
			if got[file] != kind {
				t.Errorf("%s: %s is %q, want %q", what, file, got[file], kind)
			}
		}
	}
	before := read(out, "cells", plain[2]+".json")
	compare("found", problemsOf(mustCheck(t, out, false, o)))
	found := mustCheck(t, out, true, o)
	compare("repaired", problemsOf(found))
	for _, f := range found {
		if !f.Note && f.Mended == "" {
			t.Errorf("not repaired: %+v", f)
		}
	}
	if !slices.ContainsFunc(found, func(f study.Finding) bool { return f.Kind == rundir.Old && f.Note && f.Mended == "" }) {
		t.Errorf("the cell of an older study is not reported, or was changed: %+v", found)
	}
	if !bytes.Equal(before, read(out, "cells", plain[2]+".json")) {
		t.Error("a valid cell was changed")
	}
	// These files must exist: the damaged record was moved, and the recent file was left alone.
	read(out, "aside", "cells", plain[0]+".json")
	read(out, "states", ".recent.bin.0123456789abcdef.tmp")
	if left := problemsOf(mustCheck(t, out, false, o)); len(left) > 0 {
		t.Errorf("after the repair: %v", left)
	}
	again := studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	studytest.SameScores(t, want.Rows, again.Rows, 1e-9)

	write([]byte("study,model\n"), out, "scores.csv")
	if got := problemsOf(mustCheck(t, out, true, o)); got["scores.csv"] != rundir.Lacking {
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
		if got[name] != rundir.Damaged {
			t.Errorf("a changed bit in each of %v: findings %v, want both damaged", damaged, got)
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
	if len(found) != 1 || !found[0].Note || found[0].Kind != rundir.Unknown || !strings.Contains(found[0].Why, "small.onnx") {
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
