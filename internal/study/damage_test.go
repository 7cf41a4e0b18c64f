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
// argument is false; problemsOf leaves out those that need no repair. The study is
// studytest.Text.
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
	studytest.DamageRecord(t, out, "cells", `"Index":[`) // per-sample values
	again("damaged per-sample values")
	studytest.DamageRecord(t, out, "cells", `{"format":1`) // scores
	again("damaged scores")
	damage := func(path, text string) {
		t.Helper()
		if err := atomicfile.Write(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
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
	for _, key := range studytest.StoredKeys(t, out, "states") {
		if strings.Contains(key, ".1of2/") {
			state, err := studytest.StoredItem(t, out, "states", key).Bytes("state")
			if err != nil {
				t.Fatal(err)
			}
			studytest.DamageRecord(t, out, "states", string(state))
			break
		}
	}
	_, err := study.Merge(t.Context(), studytest.Parse(t, dir, studytest.Text), []string{out}, o)
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
