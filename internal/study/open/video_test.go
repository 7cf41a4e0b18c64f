package open_test

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/study"
	"github.com/noether-ml/noether/internal/study/open"
)

// writeFrames fills a folder with frames of a moving grating.
func writeFrames(t *testing.T, dir string, n int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for k := range n {
		img := image.NewGray(image.Rect(0, 0, 40, 30))
		for i := range 40 * 30 {
			img.Set(i%40, i/40, color.Gray{uint8((i%40 + i/40 + k) % 8 * 30)})
		}
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.png", k)))
		if err != nil {
			t.Fatal(err)
		}
		if err := png.Encode(f, img); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
}

// TestVideoInStudies checks the number of samples of entries of data with the keys video (patches
// of the frames of a video) and camera (patches of photographs under a simulated moving camera).
// A place is the position of a patch in all frames of a scene. The patches at a place from gamma
// frames before one to gamma frames after it are its trajectory, and -gamma, ..., gamma the amounts
// of the trajectory. cuts is the change between frames above which a new scene begins, and raw
// turns off whitening and scaling.
func TestVideoInStudies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFrames(t, filepath.Join(dir, "walk"), 12)
	writeFrames(t, filepath.Join(dir, "one"), 1)
	openEntry := func(entry string) (dataset.Source, error) {
		s, err := study.Parse(filepath.Join(dir, "s.yaml"), []byte("name: s\ndata:\n  - {name: a, "+entry+"}\nmodels: [{name: m, onnx: m.onnx}]\nmeasures: [distance]\n"), nil)
		if err != nil {
			return nil, err
		}
		return open.New(s, open.Options{}).Data(t.Context(), s.Data[0])
	}
	// For camera, each of the 12 images is a photograph: a scene of the given number of frames.
	for entry, samples := range map[string]int{
		"video: walk": 12 * 32, // frames x places, of which there are 32 by default
		"video: {files: walk, frame: [30, 20], patch: 6, places: 3, channels: 3, gamma: 2, raw: true, cuts: 1, frames: 10, seed: 3, crop: 12}": 30,
		"camera: {folder: walk, motion: object, frames: 61, places: 2, patch: 8, frame: [32, 32]}":                                             12 * 61 * 2,
		"camera: {folder: walk, motion: orbit, frames: 11, places: 2, patch: 8, frame: [32, 32], speed: 2}":                                    12 * 11 * 2,
		"camera: {folder: walk, motion: still, part: 2, of: 3, places: 5, patch: 8, frame: [32, 32]}":                                          4 * 5,
	} {
		d, err := openEntry(entry)
		if err != nil {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		if d.Len() != samples {
			t.Errorf("%s: %d samples, want %d", entry, d.Len(), samples)
		}
		// A camera that stands still has no trajectories.
		if still := strings.Contains(entry, "still"); still != (dataset.Amounts(d) == nil) {
			t.Errorf("%s: trajectories with the amounts %v", entry, dataset.Amounts(d))
		}
		if err := dataset.Close(d); err != nil {
			t.Errorf("%s: %v", entry, err)
		}
	}
	for entry, want := range map[string]string{
		"video: one":                                  "there is only one frame",
		"video: {files: walk, patch: 31}":             "do not fit into frames of 40 x 30",
		"video: {files: walk, frame: 3}":              "frame is [width, height]",
		"video: gone":                                 "no such file or folder",
		"camera: {folder: walk, motion: zoom}":        "zoom",
		"camera: {folder: walk, part: 3, of: 2}":      "part 3 of 2",
		"camera: {folder: walk, gamma: 40, patch: 8}": "the longest scene has 31 frames",
	} {
		_, err := openEntry(entry)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "s.yaml:3:") {
			t.Errorf("%s: error %v, want %q with its position", entry, err, want)
		}
	}
}
