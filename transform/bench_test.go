package transform

import (
	"fmt"
	"testing"

	"github.com/noether-ml/noether/internal/seed"
	"github.com/noether-ml/noether/tensor"
)

// BenchmarkApply transforms colour images of 32 x 32 and 224 x 224 pixels. The parameters are
// fixed: degrees of a rotation, the fraction of the area of a crop, the factor of the contrast, and
// standard deviations of the blur in pixels and of the noise.
func BenchmarkApply(b *testing.B) {
	for _, c := range []struct {
		name      string
		transform Transform
	}{
		{"rotate", Rotate{Angle: Fixed(30)}},
		{"rotate-reflect", Rotate{Fixed(30), Sampling{Outside: Reflection}}},
		{"rotate-90", Rotate{Angle: Fixed(90)}},
		{"crop", Crop{Size: Fixed(0.5)}},
		{"contrast", Contrast{Fixed(1.2)}},
		{"gaussian-blur", GaussianBlur{Sigma: Fixed(1)}},
		{"gaussian-noise", GaussianNoise{Fixed(0.1)}},
	} {
		for _, side := range []int{32, 224} {
			b.Run(fmt.Sprintf("%s/%d", c.name, side), func(b *testing.B) {
				// randomImage(seed, shape...), of property_test.go, has values in [0, 1).
				src, dst := randomImage(1, 3, side, side), tensor.New(3, side, side)
				op := c.transform.Draw(seed.Rand(1))
				b.ReportAllocs()
				for b.Loop() {
					op.Apply(dst, src)
				}
			})
		}
	}
}
