package study_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/studytest"
	"github.com/noether-ml/noether/internal/testmodel"
)

// TestAnotherStudyInTheFolder checks that a run folder holds one study: another one is rejected or,
// with the option Replace, replaces it. A study with the same cells (units of work, see plan.Cell)
// is the same study. threeTurns (unfinished_test.go) rotates images by three angles.
func TestAnotherStudyInTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	o := studytest.Options(t)
	studytest.Run(t, studytest.Parse(t, dir, threeTurns), out, o)
	renamed := strings.Replace(threeTurns, "name: turns", "name: other\ndescription: |\n  For readers.\n\n  Two paragraphs.", 1)
	studytest.Run(t, studytest.Parse(t, dir, renamed), out, o) // the same cells under another name and description
	if r, err := study.ReadResult(out); err != nil || !strings.HasPrefix(r.Record.Description, "For readers.\n\nTwo paragraphs.") {
		t.Errorf("the description in the folder is %q: %v", r.Record.Description, err)
	}

	userFile := filepath.Join(out, "notes.txt")
	if err := os.WriteFile(userFile, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	third := strings.Replace(strings.Replace(threeTurns, "name: turns", "name: third", 1), "seed: 3", "seed: 4", 1)
	_, err := study.Run(t.Context(), studytest.Parse(t, dir, third), out, o)
	if err == nil || !strings.Contains(err.Error(), `holds the run of study "other", and this is "third"`) || !strings.Contains(err.Error(), "--replace") {
		t.Fatalf("another study: %v", err)
	}
	if r, err := study.ReadResult(out); err != nil || r.Record.Study != "other" {
		t.Errorf("the folder holds study %q, want \"other\": %v", r.Record.Study, err)
	}
	o.Replace = true
	r := studytest.Run(t, studytest.Parse(t, dir, third), out, o)
	if cells := studytest.StoredKeys(t, out, "cells"); len(cells) != r.Record.Cells {
		t.Errorf("the folder holds %d cells of %d", len(cells), r.Record.Cells)
	}
	if _, err := os.Stat(userFile); err != nil {
		t.Errorf("the user's file was removed: %v", err)
	}
}

// TestAnotherDecoderGivesAWarning checks that a run warns if an earlier run in its folder decoded
// JPEG images with another library. It does so even if, as here, all scores are there already.
func TestAnotherDecoderGivesAWarning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testmodel.Write(t, dir, "small", testmodel.Options{})
	out := filepath.Join(dir, "run")
	o := studytest.Options(t)
	for _, c := range []struct{ decoder, want string }{{"Go", ""}, {"Go", ""}, {"libturbojpeg.so.0", "from the decoder Go, further ones will be from libturbojpeg.so.0"}} {
		var warnings []string
		o.Warn = func(text string) { warnings = append(warnings, text) }
		o.Record.JPEG = c.decoder
		studytest.Run(t, studytest.Parse(t, dir, threeTurns), out, o)
		if found := strings.Join(warnings, "\n"); c.want == "" && strings.Contains(found, "decoder") || !strings.Contains(found, c.want) {
			t.Errorf("warnings %q, want %q", warnings, c.want)
		}
	}
}
