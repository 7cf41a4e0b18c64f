package transform_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/dataset"
	"github.com/noether-ml/noether/internal/testdata"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// TestSeveritiesGrowOnPhotos checks on real images, of colour and of grey, square and not, that each
// severity of each corruption changes them more than the one before, but where the published
// settings do not; see Corrupt.
func TestSeveritiesGrowOnPhotos(t *testing.T) {
	t.Parallel()
	folder, err := dataset.OpenFolder(t.Context(), dataset.FolderOptions{Dir: testdata.Path(t, "imagenet-samples")})
	if err != nil {
		t.Fatal(err)
	}
	const large = 96 // the side from which the settings are those for 224 pixels
	photos := map[string][]tensor.Tensor{}
	for i := 0; i < folder.Len(); i += 5 {
		s, err := folder.At(t.Context(), i, dataset.Frame{Height: 112, Width: 112})
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range [][3]int{{3, 8, 8}, {1, 8, 8}, {3, 8, 24}, {3, 16, 16}, {1, 28, 28}, {3, 28, 28}, {3, 32, 32}, {3, 64, 64}, {3, 112, 112}} {
			x, err := dataset.Frame{Channels: size[0], Height: size[1], Width: size[2]}.Tensor(s.Input)
			if err != nil {
				t.Fatal(err)
			}
			if name := fmt.Sprint(size); size[1] < 64 || len(photos[name]) < 8 {
				photos[name] = append(photos[name], x)
			}
		}
	}
	for _, kind := range transform.Corruptions() {
		for name, images := range photos {
			side := min(images[0].Shape[1], images[0].Shape[2])
			before := 0.
			for severity := 1.; severity <= 5; severity++ {
				sum, n := 0., 0
				for i, x := range images {
					y := tensor.New(x.Shape...)
					transform.Corrupt{Kind: kind, Severity: transform.Fixed(severity)}.Draw(rand.New(rand.NewPCG(uint64(i), 1))).Apply(y, x)
					for k, v := range y.Data {
						sum += math.Abs(float64(v - x.Data[k]))
					}
					n += len(x.Data)
				}
				least := 1 + 1e-6
				switch {
				case kind == "glass-blur", kind == "elastic-transform":
					least = 0
				case kind == "motion-blur" && side < large && severity == 4:
					least = 1 - 1e-6
				case kind == "snow" && side >= large && severity == 3, kind == "fog" && side >= large && severity == 4:
					least = 0.9
				}
				change := sum / float64(n)
				if !(change > least*before && change > 0.0005) {
					t.Errorf("%s: photos of %s change by %.5f at severity %g, and by %.5f at the one before", kind, name, change, severity, before)
				}
				before = change
			}
		}
	}
}
