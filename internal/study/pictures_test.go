package study_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/noether-ml/noether/internal/pictures"
	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestFewFiles checks that a complete run of many cells, transformations and shards has at most 40
// files, and the same pictures in its report as a study that asks for them. There they are files.
func TestFewFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	text := strings.Replace(studytest.Text, "distance, seis]", "equivariance-error]", 1)
	text = strings.Replace(text, "n: 150", "n: 24", 1)
	for i := range 20 {
		text = strings.Replace(text, "transforms:\n", fmt.Sprintf("transforms:\n  - {name: turn%d, rotate: {values: [%d, %d]}}\n", i, i+1, i+2), 1)
	}
	const most = 40
	many := filepath.Join(dir, "many")
	for i := range 3 {
		o := studytest.Options(t)
		o.Shard = study.Shard{Index: i + 1, Count: 3}
		studytest.Run(t, studytest.Parse(t, dir, text), many, o)
	}
	merged, err := study.Merge(t.Context(), studytest.Parse(t, dir, text), []string{many}, studytest.Options(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(merged.Record.Keys) < 100 {
		t.Errorf("the study has only %d cells", len(merged.Record.Keys))
	}
	whole := filepath.Join(dir, "whole")
	studytest.Run(t, studytest.Parse(t, dir, text), whole, studytest.Options(t))
	asking := filepath.Join(dir, "asking")
	studytest.Run(t, studytest.Parse(t, dir, text+"pictures: 6\n"), asking, studytest.Options(t))
	want := report.ReadAttachments(asking)
	if len(want.Images) < 20 || len(want.SampleSheets) < 20 || len(want.MapSheets) < 10 || len(filesOf(t, asking)) <= most {
		t.Errorf("%d images, %d sheets of samples and %d of maps in %d files", len(want.Images), len(want.SampleSheets), len(want.MapSheets), len(filesOf(t, asking)))
	}
	check := func(out string) {
		t.Helper()
		if files := filesOf(t, out); len(files) > most {
			t.Errorf("%s has %d files: %q", filepath.Base(out), len(files), files)
		}
		got := report.ReadAttachments(out)
		if d := cmp.Diff(want.Images, got.Images); d != "" {
			t.Errorf("%s has other images: %s", filepath.Base(out), d)
		}
		if d := cmp.Diff(want.MapSheets, got.MapSheets); d != "" {
			t.Errorf("%s has other feature maps: %s", filepath.Base(out), d)
		}
		if len(got.SampleSheets) != len(want.SampleSheets) || len(got.Notes) != len(want.Notes) {
			t.Errorf("%s has %d sheets of samples and the notes %q", filepath.Base(out), len(got.SampleSheets), got.Notes)
		}
	}
	check(many)
	check(whole)
	// The files become an archive, and the archive files.
	studytest.Run(t, studytest.Parse(t, dir, text), asking, studytest.Options(t))
	check(asking)
	studytest.Run(t, studytest.Parse(t, dir, text+"pictures: 6\n"), asking, studytest.Options(t))
	if d := cmp.Diff(want.MapSheets, report.ReadAttachments(asking).MapSheets); d != "" {
		t.Errorf("other feature maps: %s", d)
	}
	if _, err := os.Stat(filepath.Join(asking, pictures.Archive)); !os.IsNotExist(err) {
		t.Errorf("the archive is left: %v", err)
	}
}

// TestDamagedArchive checks that Check finds a damaged archive of pictures, and that another run
// makes the same archive again, also after Check has moved the damaged one aside.
func TestDamagedArchive(t *testing.T) {
	t.Parallel()
	text := strings.Replace(fullText, "pictures: 1\n", "", 1)
	text = strings.Replace(text, "[accuracy, ", "[accuracy, equivariance-error, ", 1)
	d := newDisturbedStudy(t, text)
	folder := d.finished(t)
	want, err := os.ReadFile(filepath.Join(folder, pictures.Archive))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutations {
		for _, fix := range []bool{false, true} {
			out := filepath.Join(d.dir, fmt.Sprintf("mutated-%x", rand.Uint64()))
			if err := os.CopyFS(out, os.DirFS(folder)); err != nil {
				t.Fatal(err)
			}
			if err := m.change(filepath.Join(out, pictures.Archive)); err != nil {
				t.Fatal(err)
			}
			found := mustCheck(t, out, fix, d.o)
			if len(found) == 0 || found[0].File != pictures.Archive || fix && found[0].Mended == "" && !found[0].Note {
				t.Errorf("%s: check finds %+v", m.name, found)
			}
			studytest.Run(t, studytest.Parse(t, d.dir, text), out, d.o)
			if got, err := os.ReadFile(filepath.Join(out, pictures.Archive)); !bytes.Equal(got, want) {
				t.Errorf("%s, fix %v: another run makes another archive, error %v", m.name, fix, err)
			}
		}
	}
}
