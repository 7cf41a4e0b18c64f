package transform_test

import (
	"math"
	"slices"
	"testing"

	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// TestGenerators checks that a generator is the derivative of a family of transformations T_t with
// respect to t at t = 0, where T_0 is the identity. On an image that is linear in its coordinates,
// by bilinear interpolation, (T_t x - x) / t differs from the generator by order t, here step. In
// channel c the image rises by 0.002 (c+1) per column and falls by 0.003 per row.
func TestGenerators(t *testing.T) {
	t.Parallel()
	const h, w, step = 24, 30, 1e-3
	degrees := func(tangent float64) float64 { return math.Atan(tangent) * 180 / math.Pi }
	fixed := func(v float64) transform.Distribution { return transform.Fixed(v) }
	families := map[string]transform.Transform{ // T_t with t = step, by the generator's name
		"translate-x": transform.Translate{X: fixed(step), Y: fixed(0)},
		"translate-y": transform.Translate{X: fixed(0), Y: fixed(step)},
		"rotate":      transform.Rotate{Angle: fixed(step * 180 / math.Pi)},
		"scale":       transform.Scale{Factor: fixed(1 + step)},
		"shear-x":     transform.Shear{X: fixed(degrees(step)), Y: fixed(0)},
		"shear-y":     transform.Shear{X: fixed(0), Y: fixed(degrees(step))},
		"brightness":  transform.Brightness{Factor: fixed(1 + step)},
		"contrast":    transform.Contrast{Factor: fixed(1 + step)},
		"saturation":  transform.Saturation{Factor: fixed(1 + step)},
	}
	x := tensor.New(3, h, w)
	for c := range 3 {
		for i := range h {
			for j := range w {
				x.Data[(c*h+i)*w+j] = float32(0.3 + 0.1*float64(c) + 0.002*float64(c+1)*float64(j) - 0.003*float64(i))
			}
		}
	}
	grey := func(i, j int) (sum float64) {
		for c, weight := range transform.GreyWeights(3) {
			sum += float64(weight) * float64(x.Data[(c*h+i)*w+j])
		}
		return sum
	}
	var mean float64
	for at := range h * w {
		mean += grey(at/w, at%w) / (h * w)
	}
	var names []string
	for _, g := range transform.Generators() {
		names = append(names, g.Name)
		family := families[g.Name]
		if family == nil {
			// stretch-x or stretch-y: scaling along one axis, which is no transformation of its
			// own.
			continue
		}
		moved := tensor.New(3, h, w)
		family.Draw(nil).Apply(moved, x)
		for c := range 3 {
			// Not at the border, where T_t reads values from outside of the image.
			for i := 3; i < h-3; i++ {
				for j := 3; j < w-3; j++ {
					value := float64(x.Data[(c*h+i)*w+j])
					want := (float64(moved.Data[(c*h+i)*w+j]) - value) / step
					var got float64
					switch v := g.Velocity; {
					case v != nil:
						// It moves positions; the velocity is affine in the position (px, py) from the
						// centre. By the chain rule it multiplies the image's slopes.
						px, py := float64(j)-float64(w-1)/2, float64(i)-float64(h-1)/2
						vx := v[0]*px + v[1]*py + v[2]*w
						vy := v[3]*px + v[4]*py + v[5]*h
						got = vx*0.002*float64(c+1) - vy*0.003
					// It changes colours: it returns x minus what the family leaves unchanged, which
					// Invariant names.
					case g.Invariant == transform.PixelGrey:
						got = value - grey(i, j)
					case g.Invariant == transform.MeanGrey:
						got = value - mean
					default:
						got = value
					}
					if math.Abs(got-want) > 2e-3 {
						t.Fatalf("%s at channel %d, (%d, %d): generator %g, difference %g", g.Name, c, i, j, got, want)
					}
				}
			}
		}
	}
	for name := range families {
		if !slices.Contains(names, name) {
			t.Errorf("there is no generator %s", name)
		}
	}
}
