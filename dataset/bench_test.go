package dataset

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/noether-ml/noether/internal/machine"
	"github.com/noether-ml/noether/internal/testdata"
)

// BenchmarkPhotographs decodes, resizes and crops photographs of ImageNet for networks with inputs
// of 224 x 224, on one core. images/s is per second of processor time. internal/bench/photos.py
// does the same in Python. NOETHER_BENCH_PHOTOS names another folder of images.
func BenchmarkPhotographs(b *testing.B) {
	pattern := filepath.Join(os.Getenv("NOETHER_BENCH_PHOTOS"), "*")
	if os.Getenv("NOETHER_BENCH_PHOTOS") == "" {
		pattern = filepath.Join(testdata.Path(b, "imagenet-samples"), "*.JPEG")
	}
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		b.Fatalf("%d photographs, %v", len(paths), err)
	}
	photos := make([][]byte, len(paths))
	for i, path := range paths {
		if photos[i], err = os.ReadFile(path); err != nil {
			b.Fatal(err)
		}
	}
	frame := Frame{Resize: 256, Height: 224, Width: 224, Channels: 3}
	before := machine.CPUTime()
	for b.Loop() {
		for _, data := range photos {
			img, err := decodeImage(data)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := frame.Image(img); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(photos))/(machine.CPUTime()-before).Seconds(), "images/s")
}

// BenchmarkFiles reads, decodes, resizes and crops the files of photographs by as many goroutines
// as there are cores. Garbage is collected as often as in the command noether.
// internal/bench/photos.py --loader does the same in Python, with two workers.
func BenchmarkFiles(b *testing.B) {
	machine.BoundGarbage(0)
	folder, err := OpenFolder(b.Context(), FolderOptions{Dir: testdata.Path(b, "imagenet-samples")})
	if err != nil {
		b.Fatal(err)
	}
	frame := Frame{Resize: 256, Height: 224, Width: 224, Channels: 3}
	for b.Loop() {
		for _, err := range Read(b.Context(), folder, Indices(folder.Len()), frame, ReadOptions{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*folder.Len())/b.Elapsed().Seconds(), "images/s")
}
