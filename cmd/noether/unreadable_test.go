package main

import (
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/noether-ml/noether/internal/testmodel"
	"github.com/noether-ml/noether/scores"
)

// TestUnreadableSamplesAreLeftOut checks that a run with two corrupt images of twelve goes on
// without them and says so before its scores and in the report, and that --strict stops it.
func TestUnreadableSamplesAreLeftOut(t *testing.T) {
	dir := t.TempDir()
	testmodel.Write(t, dir, "good", testmodel.Options{})
	for i := range 12 {
		img := image.NewGray(image.Rect(0, 0, 16, 16))
		for k := range img.Pix {
			img.Pix[k] = uint8(k * (i + 1))
		}
		img.SetGray(0, 0, color.Gray{Y: 9})
		path := write(t, dir, fmt.Sprintf("photos/%02d.png", i), nil)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(f, img); err != nil {
			t.Fatal(err)
		}
		if i == 3 || i == 7 {
			if err := f.Truncate(60); err != nil {
				t.Fatal(err)
			}
		}
		f.Close()
	}
	study := write(t, dir, "study.yaml", []byte(smallStudy{data: "images: photos", measures: "distance", preprocess: ", preprocess: {channels: 3}"}.text()))
	run := filepath.Join(dir, "run")
	out, err := output(t, "run", study, "-o", run)
	if err != nil {
		t.Fatal(err)
	}
	const want = "Left out: samples that cannot be read, 2 of 12 of d (03.png, 07.png)."
	if at, scores := strings.Index(out, want), strings.Index(out, "95 % intervals"); at < 0 || at > scores {
		t.Errorf("the sentence on what is left out is at %d, the scores at %d: %s", at, scores, out)
	}
	page, err := os.ReadFile(filepath.Join(run, "report.html"))
	if err != nil || !strings.Contains(string(page), want) {
		t.Errorf("the report does not say what is left out: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join(run, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var record scores.Record
	if err := json.Unmarshal(raw, &record); err != nil || !slices.Equal(record.Data[0].Unreadable, []string{"03.png", "07.png"}) {
		t.Errorf("run.json names %v, error %v", record.Data, err)
	}
	code, message := call(t, "run", study, "-o", filepath.Join(dir, "strict"), "--strict")
	if code != 1 || !strings.Contains(message, "of 12 samples cannot be read: 03.png") || strings.Contains(message, "\n") {
		t.Errorf("with --strict: exit %d, %s", code, message)
	}
}
