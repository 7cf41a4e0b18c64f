package video

import (
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/testdata"
)

// BenchmarkOpen decodes, downscales and whitens a clip of 250 frames of 640 x 272 pixels, and cuts
// patches, the samples, out of the frames at fixed positions, called places.
func BenchmarkOpen(b *testing.B) {
	path := testdata.Path(b, "video", "bikes.mp4")
	frames := 0
	for b.Loop() {
		src, err := Open(b.Context(), Options{Paths: []string{path}})
		if err != nil {
			b.Fatal(err)
		}
		frames += src.Len() / src.patches.Places // a frame has one patch at each place
		src.Close()
	}
	b.ReportMetric(float64(frames)/b.Elapsed().Seconds(), "frames/s")
}

// BenchmarkCamera renders 31 frames, the default, of one image under a moving camera. The motion
// orbit is a rotation of the image's plane about an axis in it.
func BenchmarkCamera(b *testing.B) {
	folder, err := dataset.OpenFolder(b.Context(), dataset.FolderOptions{Dir: testdata.Path(b, "imagenet-samples")})
	if err != nil {
		b.Fatal(err)
	}
	one := dataset.Limit(folder, 1)
	for b.Loop() {
		src, err := OpenCamera(b.Context(), CameraOptions{Images: one, Motion: "orbit"})
		if err != nil {
			b.Fatal(err)
		}
		src.Close()
	}
	b.ReportMetric(31*float64(b.N)/b.Elapsed().Seconds(), "frames/s")
}
