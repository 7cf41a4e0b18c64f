package study_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report/html"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
)

// fullText is a study that writes every kind of file of a run folder.
const fullText = `name: full
seed: 3
data: [{name: shapes, shapes: {n: 24, size: 16, seed: 2}}]
models: [{name: a, onnx: a.onnx, layers: [conv, logits]}, {name: b, onnx: b.onnx, layers: [conv]}]
transforms: [{name: quarter, rotate: {values: [90, 180]}}]
measures: [accuracy, effective-invariance, seis, {stir: {between: [a, b], images: 2, steps: 2}}, firing]
samples: true
pictures: 1
batch: 8
`

// A mutation damages a file.
type mutation struct {
	name   string
	change func(path string) error
}

// rewrite returns a change of a file's content. It leaves an empty file empty.
func rewrite(change func(raw []byte) []byte) func(path string) error {
	return func(path string) error {
		raw, err := os.ReadFile(path)
		if err != nil || len(raw) == 0 {
			return err
		}
		return os.WriteFile(path, change(raw), 0o666)
	}
}

var mutations = []mutation{
	{"a digit altered", rewrite(func(raw []byte) []byte {
		for i := len(raw) / 3; i < len(raw); i++ {
			if raw[i] >= '1' && raw[i] < '9' {
				raw[i]++
				return raw
			}
		}
		raw[len(raw)/2]++
		return raw
	})},
	{"a bit flipped", rewrite(func(raw []byte) []byte { raw[2*len(raw)/3] ^= 1; return raw })},
	{"cut short", rewrite(func(raw []byte) []byte { return raw[:len(raw)*9/10] })},
	{"longer", rewrite(func(raw []byte) []byte { return append(raw, 'x') })},
	{"empty", rewrite(func([]byte) []byte { return nil })},
	{"removed", os.Remove},
	{"a folder in its place", func(path string) error {
		return errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "full"), 0o777))
	}},
	{"a link to itself", func(path string) error {
		return errors.Join(os.Remove(path), os.Symlink(path, path))
	}},
}

// finished returns a run folder with a finished run and its report. A disturbedStudy is a study
// whose run folder is damaged or whose run is stopped; it has the scores of an undisturbed run, and
// its options o (powerloss_test.go).
func (d *disturbedStudy) finished(t *testing.T) string {
	t.Helper()
	out := filepath.Join(d.dir, "finished")
	r := d.run(t, out, d.o)
	page, err := os.Create(filepath.Join(out, "report.html"))
	if err == nil {
		err = errors.Join(html.Run{Rows: r.Rows, Record: r.Record}.WritePage(page), page.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// stopped returns the folder of a run that was stopped when due returned true. due is called at
// each report of progress.
func (d *disturbedStudy) stopped(t *testing.T, name string, due func(p study.Progress) bool) string {
	t.Helper()
	out := filepath.Join(d.dir, name)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := d.saveAlways()
	o.Progress = func(p study.Progress) {
		if due(p) {
			cancel()
		}
	}
	if _, err := study.Run(ctx, studytest.Parse(t, d.dir, d.text), out, o); !errors.Is(err, context.Canceled) {
		t.Fatalf("the run ended with %v", err)
	}
	for _, f := range mustCheck(t, out, false, d.o) {
		t.Errorf("a run that was stopped leaves %+v", f)
	}
	return out
}

// mutate damages a file in a copy of a folder. It checks that Check finds this unless it is
// harmless, and that another run gives the same scores. With fix, Check also repairs the folder, as
// noether check --fix does.
func (d *disturbedStudy) mutate(t *testing.T, folder, file string, m mutation, fix bool) {
	t.Helper()
	out := filepath.Join(d.dir, fmt.Sprintf("mutated-%x", rand.Uint64()))
	if err := os.CopyFS(out, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	what := fmt.Sprintf("%s, %s", file, m.name)
	if err := m.change(filepath.Join(out, file)); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	// The user may remove the report. Removed states are computed again, and so is any
	// file of an unfinished run.
	harmless := m.name == "removed" && (file == "report.html" || strings.HasPrefix(file, "states") || filepath.Base(folder) != "finished")
	fix = fix || file == "report.html" // which Run does not write, so that only Check can repair it
	if found := mustCheck(t, out, fix, d.o); len(found) == 0 && !harmless {
		t.Errorf("%s: check finds nothing", what)
	}
	d.checkCompletes(t, out, what, func(o study.Options) (*study.Result, error) {
		return study.Run(t.Context(), studytest.Parse(t, d.dir, d.text), out, o)
	})
	os.RemoveAll(out)
}

// TestEveryMutationIsRepaired damages every file of a finished and of three unfinished runs, each
// by a third of the mutations, and runs the study again. The runs are stopped while samples are
// processed, in a procedure (a measure that works in steps, here STIR), and when cells are finished
// and others have saved states (unfinished work). A cell is one measure of a model and data set
// under one transformation value.
func TestEveryMutationIsRepaired(t *testing.T) {
	t.Parallel()
	d := newDisturbedStudy(t, fullText)
	folders := []string{
		d.finished(t),
		d.stopped(t, "samples", func(p study.Progress) bool { return p.Samples >= 16 }),
		d.stopped(t, "procedure", func(study.Progress) bool { // shared: results that several cells of STIR need
			return slices.ContainsFunc(studytest.StoredKeys(t, filepath.Join(d.dir, "procedure"), "states"), func(key string) bool { return strings.HasPrefix(key, "shared/") })
		}),
		d.stopped(t, "states", func(p study.Progress) bool {
			out := filepath.Join(d.dir, "states")
			return len(studytest.StoredKeys(t, out, "states")) > 0 && len(studytest.StoredKeys(t, out, "cells")) > 10
		}),
	}
	cases := 0
	for _, folder := range folders {
		for i, file := range filesOf(t, folder) {
			for j, m := range mutations {
				if (i+j)%3 > 0 {
					continue // the next file gets another third
				}
				d.mutate(t, folder, file, m, (i+j)%2 == 0)
				cases++
			}
		}
	}
	t.Logf("%d mutations", cases)
	for _, kind := range []string{"states/*.log", "cells/*.log"} {
		found := 0
		for _, folder := range folders {
			files, _ := filepath.Glob(filepath.Join(folder, kind))
			found += len(files)
		}
		if found == 0 {
			t.Errorf("no folder has %s", kind)
		}
	}
}

// TestFilesInPlaceOfFolders puts files in place of the subfolders of a run.
func TestFilesInPlaceOfFolders(t *testing.T) {
	t.Parallel()
	d := newDisturbedStudy(t, fullText)
	finished := d.finished(t)
	for i, sub := range []string{"cells", "states", "failures", "pictures", "pictures/views"} {
		replaced := mutation{"a file in its place", func(path string) error {
			return errors.Join(os.RemoveAll(path), os.WriteFile(path, nil, 0o666))
		}}
		d.mutate(t, finished, sub, replaced, i%2 == 0)
	}
}
