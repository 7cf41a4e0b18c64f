package study_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/store"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestFinishedRunIsLeftAsItIs checks that a run and a merge write nothing into a folder that has
// the finished run of the same study by the same version of the program, and that a run writes
// every file again after any change of the study, of the version or of a file. Files are recognised
// as written by their modification times.
func TestFinishedRunIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	const text = studytest.Text
	out := filepath.Join(dir, "run")
	o := studytest.Options(t)
	first := studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	if first.Unchanged {
		t.Error("the first run is unchanged")
	}
	past := time.Now().Add(-time.Hour).Truncate(time.Second)
	files := []string{"scores.csv", "scores.parquet", "samples.parquet", "run.json", "study.yaml"}
	setOldTimes := func() {
		for _, name := range files {
			if err := os.Chtimes(filepath.Join(out, name), past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	written := func() (names []string) {
		for _, name := range files {
			info, err := os.Stat(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			if !info.ModTime().Equal(past) {
				names = append(names, name)
			}
		}
		return names
	}
	again := func(o study.Options, text string) *study.Result {
		setOldTimes()
		return studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	}
	same := again(o, text)
	if names := written(); !same.Unchanged || names != nil {
		t.Errorf("unchanged: %v, written: %v", same.Unchanged, names)
	}
	studytest.SameScores(t, first.Rows, same.Rows, 0)
	if !same.Record.Finished.Equal(*first.Record.Finished) || same.Record.Resolved != first.Record.Resolved {
		t.Error("the record of the second run differs from that of the first")
	}
	setOldTimes()
	// Merge combines runs of parts of a study. Here nothing is left to combine.
	merged, err := study.Merge(t.Context(), studytest.Parse(t, dir, text), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	if names := written(); !merged.Unchanged || names != nil {
		t.Errorf("merged: unchanged %v, written: %v", merged.Unchanged, names)
	}

	otherVersion := o
	otherVersion.Version = "1.2.4"
	unknownVersion := o
	unknownVersion.Version = ""
	table := filepath.Join(out, "scores.csv")
	cell := first.Record.Keys[0]
	for name, c := range map[string]struct {
		options study.Options
		text    string
		prepare func() error
	}{
		"another version":    {otherVersion, text, nil},
		"an unknown version": {unknownVersion, text, nil},
		"another study":      {o, strings.Replace(text, "seed: 3", "seed: 3\ndescription: more", 1), nil},
		"an altered table":   {o, text, func() error { return os.WriteFile(table, []byte("x"), 0o666) }},
		"an emptied table":   {o, text, func() error { return os.WriteFile(filepath.Join(out, "samples.parquet"), nil, 0o666) }},
		"an altered cell": {o, text, func() error {
			c := studytest.StoredCell(t, out, cell)
			c.Layers[0].Scores[0].Value = 0.125
			body, err := c.MarshalJSON()
			studytest.PutRecord(t, out, "cells", store.Record{Key: cell, Body: body})
			return err
		}},
		"a missing cell": {o, text, func() error { studytest.RemoveRecord(t, out, "cells", cell); return nil }},
	} {
		studytest.Run(t, studytest.Parse(t, dir, text), out, o) // undoes the change of the previous case
		setOldTimes()
		if c.prepare != nil {
			if err := c.prepare(); err != nil {
				t.Fatal(err)
			}
		}
		if r := again(c.options, c.text); r.Unchanged || len(written()) != len(files) {
			t.Errorf("%s: unchanged %v, written: %v", name, r.Unchanged, written())
		}
	}
}
