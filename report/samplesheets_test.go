package report_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/report"
	"github.com/noether-ml/noether/report/internal/reporttest"
	"github.com/noether-ml/noether/scores"
)

// TestSampleSheets reads the sheets of a run folder. Damaged sheets are left out with a note. A
// sheet whose image was removed is shown without images.
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
	same := func(*scores.SampleSheet) {}
	for _, name := range []string{"01.json", "02.json", "03.json"} {
		write(name, same)
	}
	damage := map[string]func(*scores.SampleSheet){
		"10.json": func(s *scores.SampleSheet) { s.Models[0].Views[1].Value = s.Models[0].Views[1].Value[:3] },
		"11.json": func(s *scores.SampleSheet) { s.Models[1].Most[0] = 99 },
		"12.json": func(s *scores.SampleSheet) { s.Samples[2].Label = 17 },
		"13.json": func(s *scores.SampleSheet) { s.Models[0].Views = s.Models[0].Views[:1] },
		"14.json": func(s *scores.SampleSheet) { s.Partings[0].B = 5 },
		"15.json": func(s *scores.SampleSheet) { s.Models[0].Views[0].Moved[0] = -7 },
		"16.json": func(s *scores.SampleSheet) { s.Parameters = nil },
		"17.json": func(s *scores.SampleSheet) { s.Tile.Right = 0 },
		"18.json": func(s *scores.SampleSheet) { s.Models[0].Confusion[0][1] = 4 },
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
	for i, want := range []string{"image/png 01.png true", "image/jpeg 02.jpg true", "  false"} {
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
