package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/report"
	"github.com/noether-ml/noether/internal/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// TestSampleSheets reads the sample sheets of a run folder: JSON files on the samples that a
// transformation changes most and least, each with an image file of the same name. Damaged sheets
// are left out with a note. A sheet whose image file was removed has no image.
func TestSampleSheets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	folder := filepath.Join(dir, "pictures", "samples")
	if err := os.MkdirAll(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	write := func(name string, change func(*scores.SampleSheet)) {
		t.Helper()
		s := reporttest.FakeRun{Models: 2}.SampleSheet(0, "90", "180")
		// Images of 8 x 8 pixels at distances of 16.
		s.Tile = &scores.SheetTile{Width: 8, Height: 8, Right: 16, Down: 16}
		change(&s)
		text, err := json.Marshal(s)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, image := range []string{"01.png", "02.jpg", "04.png"} {
		if err := os.WriteFile(filepath.Join(folder, image), []byte(image), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	unchanged := func(*scores.SampleSheet) {}
	for _, name := range []string{"01.json", "02.json", "03.json"} {
		write(name, unchanged)
	}
	// The sheets have 12 samples, 4 classes, 2 models and 2 values of the parameter. Views hold the
	// predictions under each value, Moved those for the transformed samples, Most the samples that
	// change most, Confusion labels, predictions and their numbers, and Partings the samples that
	// model A alone classifies correctly, not model B.
	damage := map[string]func(*scores.SampleSheet){
		"10.json": func(s *scores.SampleSheet) { s.Models[0].Views[1].Value = s.Models[0].Views[1].Value[:3] }, // values of 3 of the 12 samples
		"11.json": func(s *scores.SampleSheet) { s.Models[1].Most[0] = 99 },                                    // sample 99 of 12
		"12.json": func(s *scores.SampleSheet) { s.Samples[2].Label = 17 },                                     // class 17 of 4
		"13.json": func(s *scores.SampleSheet) { s.Models[0].Views = s.Models[0].Views[:1] },                   // 1 of the 2 values
		"14.json": func(s *scores.SampleSheet) { s.Partings[0].B = 5 },                                         // model 5 of 2
		"15.json": func(s *scores.SampleSheet) { s.Models[0].Views[0].Moved[0] = -7 },                          // a negative class
		"16.json": func(s *scores.SampleSheet) { s.Parameters = nil },
		"17.json": func(s *scores.SampleSheet) { s.Tile.Right = 0 },                // less than Tile.Width
		"18.json": func(s *scores.SampleSheet) { s.Models[0].Confusion[0][1] = 4 }, // class 4 of 0 to 3
		"19.json": func(s *scores.SampleSheet) { s.Models[0].ByClass[0].Class = -9 },
	}
	for name, change := range damage {
		write(name, change)
	}
	if err := os.WriteFile(filepath.Join(folder, "20.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	a := report.ReadAttachments(dir)
	if len(a.SampleSheets) != 3 || len(a.Images) != 0 {
		t.Fatalf("%d sheets and %d other images, want 3 and 0", len(a.SampleSheets), len(a.Images))
	}
	for i, want := range []string{"image/png 01.png true", "image/jpeg 02.jpg true", "  false"} { // type, content, has a tile size
		s := a.SampleSheets[i]
		if got := strings.Join([]string{s.Type, string(s.Image), map[bool]string{true: "true", false: "false"}[s.Tile != nil]}, " "); got != want {
			t.Errorf("sheet %d: %q, want %q", i, got, want)
		}
	}
	notes := strings.Join(a.Notes, "\n")
	for name := range damage {
		if !strings.Contains(notes, name) {
			t.Errorf("no note on %s in %q", name, notes)
		}
	}
	if len(a.Notes) != len(damage)+1 {
		t.Errorf("%d notes, want %d: %q", len(a.Notes), len(damage)+1, notes)
	}
}
