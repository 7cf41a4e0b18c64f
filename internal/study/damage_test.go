package study_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/atomicfile"
	"github.com/noether-ml/noether/internal/report/html"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// filesOf returns the names of all files of a run folder.
func filesOf(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestCheckFindsEveryDamage checks that Check finds each kind of damage to each file of a run
// folder. mustCheck (check_test.go) returns its findings, without repairing the folder if the
// argument is false; problemsOf leaves out those that need no repair. The study is studyText
// (helpers_test.go).
func TestCheckFindsEveryDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	text := studytest.Text + "samples: true\n"
	out := filepath.Join(dir, "run")
	want := studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	page, err := os.Create(filepath.Join(out, "report.html"))
	if err == nil {
		err = errors.Join(html.Run{Rows: want.Rows, Record: want.Record}.WritePage(page), page.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if found := mustCheck(t, out, false, o); len(found) > 0 {
		t.Fatalf("the undamaged folder: %+v", found)
	}
	damages := map[string]func(raw []byte) []byte{
		"a digit altered": func(raw []byte) []byte {
			for i := len(raw) / 3; i < len(raw); i++ {
				if raw[i] >= '1' && raw[i] < '9' {
					raw[i]++
					break
				}
			}
			return raw
		},
		"a bit flipped": func(raw []byte) []byte { raw[2*len(raw)/3] ^= 1; return raw },
		"cut short":     func(raw []byte) []byte { return raw[:len(raw)*9/10] },
		"empty":         func([]byte) []byte { return nil },
	}
	for _, name := range filesOf(t, out) {
		path := filepath.Join(out, name)
		good, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for what, damage := range damages {
			if err := os.WriteFile(path, damage(append([]byte(nil), good...)), 0o666); err != nil {
				t.Fatal(err)
			}
			if len(problemsOf(mustCheck(t, out, false, o))) == 0 {
				t.Errorf("%s %s passes the check", name, what)
			}
		}
		if err := os.WriteFile(path, good, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if found := mustCheck(t, out, false, o); len(found) > 0 {
		t.Fatalf("the folder with all files restored: %+v", found)
	}
}

// TestRunRepairsDamage checks that another run computes damaged files again. A cell is one measure
// of one model and data set under one transformation value, in one trial (repetition).
func TestRunRepairsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	text := studytest.Text + "samples: true\n"
	out := filepath.Join(dir, "run")
	want := studytest.Run(t, studytest.Parse(t, dir, text), out, o)
	again := func(what string) {
		t.Helper()
		studytest.SameScores(t, want.Rows, studytest.Run(t, studytest.Parse(t, dir, text), out, o).Rows, 1e-9)
		if found := mustCheck(t, out, false, o); len(found) > 0 {
			t.Errorf("%s: after another run there is still %+v", what, found)
		}
	}
	sampled, _ := filepath.Glob(filepath.Join(out, "cells", "*.samples.json"))
	if len(sampled) < 2 {
		t.Fatal("no per-sample values")
	}
	raw, err := os.ReadFile(sampled[0])
	if err != nil {
		t.Fatal(err)
	}
	unequal := strings.Replace(string(raw), `"Index":[`, `"Index":[0,`, 1)
	if unequal == string(raw) {
		t.Fatalf("the per-sample values have no list Index: %.200s", raw)
	}
	damage := func(path, text string) {
		t.Helper()
		if err := atomicfile.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	damage(sampled[0], unequal)
	again("an index and values of unequal length")

	// Earlier versions wrote no checksums of files into the record of a cell (its scores, as JSON).
	record := strings.TrimSuffix(sampled[1], ".samples.json") + ".json"
	raw, err = os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	withoutChecksums, _, ok := strings.Cut(string(raw), `,"files"`)
	if !ok {
		t.Fatalf("the record has no checksums of files: %s", raw)
	}
	damage(record, withoutChecksums+"}\n")
	again("a record of an earlier version")
	damage(record, withoutChecksums+"}\n")
	damage(sampled[1], unequal)
	again("unequal lengths in a folder of an earlier version")

	for _, name := range []string{"run.json", "study.yaml", "scores.csv", "scores.parquet", "samples.parquet"} {
		damage(filepath.Join(out, name), "{")
		again(name)
	}
}

// TestDamagedStateOfAShardIsComputedAgain checks that a flipped bit in the state of a shard is
// found, and the shard computed again. A shard is a run on a part of the samples, here half of
// them. It saves its states, the accumulators (running sums) of its measures, which Merge adds up.
func TestDamagedStateOfAShardIsComputedAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	o := studytest.Options(t)
	want := studytest.Run(t, studytest.Parse(t, dir, studytest.Text), filepath.Join(dir, "whole"), o)
	out := filepath.Join(dir, "run")
	for i := 1; i <= 2; i++ {
		part := o
		part.Shard = study.Shard{Index: i, Count: 2}
		studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, part)
	}
	states, _ := filepath.Glob(filepath.Join(out, "states", "*.1of2.bin"))
	raw, err := os.ReadFile(states[0])
	if err != nil {
		t.Fatal(err)
	}
	raw[40] ^= 1 // in the state of an accumulator
	if err := os.WriteFile(states[0], raw, 0o666); err != nil {
		t.Fatal(err)
	}
	_, err = study.Merge(t.Context(), studytest.Parse(t, dir, studytest.Text), []string{out}, o)
	if err == nil || !strings.Contains(err.Error(), "1/2 (damaged)") {
		t.Fatalf("a damaged state: %v", err)
	}
	part := o
	part.Shard = study.Shard{Index: 1, Count: 2}
	studytest.Run(t, studytest.Parse(t, dir, studytest.Text), out, part)
	got, err := study.Merge(t.Context(), studytest.Parse(t, dir, studytest.Text), []string{out}, o)
	if err != nil {
		t.Fatal(err)
	}
	studytest.SameScores(t, want.Rows, got.Rows, 1e-5)
}
