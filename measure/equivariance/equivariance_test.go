package equivariance_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/equivariance"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

// random returns a tensor of standard normal values.
func random(seed uint64, shape ...int) tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, 1))
	t := tensor.New(shape...)
	for i := range t.Data {
		t.Data[i] = float32(r.NormFloat64())
	}
	return t
}

func apply(op transform.Op, x tensor.Tensor) tensor.Tensor {
	out := tensor.New(x.Shape...)
	op.Apply(out, x)
	return out
}

// mapsOf returns where the feature maps of a layer of the given axes and shape are.
func mapsOf(t testing.TB, axes tensor.Axes, shape ...int) tensor.Maps {
	t.Helper()
	maps, why := tensor.Layer{Shape: shape, Axes: axes}.Maps()
	if why != "" {
		t.Fatal(why)
	}
	return maps
}

// between returns the statistics of f(x) and f(Tx), both feature maps of c x h x w; op is T. With
// tau, the action of T on the maps, RelativeError is |f(Tx) - tau f(x)| / |tau f(x)|, Cosine the
// cosine of f(Tx) and tau f(x), and Floor the error |tau^-1 tau f(x) - f(x)| / |f(x)| of
// interpolation.
func between(t testing.TB, op transform.Op, s equivariance.Settings, clean, transformed tensor.Tensor) equivariance.Errors {
	t.Helper()
	e, err := equivariance.Between(mapsOf(t, "NCHW", clean.Shape...), transform.MotionOf(op), s, clean.Data, transformed.Data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// convolve returns the convolution of x, c x h x w, with kernels of k x c x 3 x 3: k x h x w. The
// padding is circular or zero.
func convolve(x, kernels tensor.Tensor, circular bool) tensor.Tensor {
	c, h, w := x.Shape[0], x.Shape[1], x.Shape[2]
	out := tensor.New(kernels.Shape[0], h, w)
	for k := range kernels.Shape[0] {
		for i := range h {
			for j := range w {
				var sum float64
				for ch := range c {
					for a := range 3 {
						for b := range 3 {
							y, z := i+a-1, j+b-1
							if circular {
								y, z = (y+h)%h, (z+w)%w
							} else if y < 0 || y >= h || z < 0 || z >= w {
								continue
							}
							sum += float64(kernels.Data[((k*c+ch)*3+a)*3+b]) * float64(x.Data[(ch*h+y)*w+z])
						}
					}
				}
				out.Data[(k*h+i)*w+j] = float32(sum)
			}
		}
	}
	return out
}

// TestCircularConvolutionUnderCircularShifts checks that a convolution with circular padding is
// equivariant under circular shifts by whole pixels, and that one with zero padding is not.
func TestCircularConvolutionUnderCircularShifts(t *testing.T) {
	t.Parallel()
	x, kernels := random(1, 3, 8, 10), random(2, 5, 3, 3, 3)
	for _, shift := range [][2]float64{{0.3, 0}, {0, 0.25}, {-0.4, 0.625}} {
		op := transform.Translate{X: transform.Fixed(shift[0]), Y: transform.Fixed(shift[1]), Sampling: transform.Sampling{Outside: transform.Wrapped}}.Draw(nil)
		e := between(t, op, equivariance.Settings{}, convolve(x, kernels, true), convolve(apply(op, x), kernels, true))
		if e.RelativeError != 0 || e.Floor != 0 || math.Abs(e.Cosine-1) > 1e-6 {
			t.Errorf("circular padding, shift %v: %+v, want no error, cosine 1 and floor 0", shift, e)
		}
		e = between(t, op, equivariance.Settings{}, convolve(x, kernels, false), convolve(apply(op, x), kernels, false))
		if e.RelativeError < 0.1 {
			t.Errorf("zero padding, shift %v: the error is %v, want at least 0.1", shift, e.RelativeError)
		}
	}
}

// rotateKernels returns kernels of k x c x 3 x 3 rotated by a quarter turn.
func rotateKernels(kernels tensor.Tensor) tensor.Tensor {
	out := tensor.New(kernels.Shape...)
	turn := transform.Rotate{Angle: transform.Fixed(90)}.Draw(nil)
	for k := range kernels.Shape[0] {
		turn.Apply(out.At(k), kernels.At(k))
	}
	return out
}

// liftingKernels returns kernels of 4 k x c x 3 x 3: each kernel in its four rotations, as in a
// lifting convolution, the first layer of a group-equivariant network.
func liftingKernels(kernels tensor.Tensor) tensor.Tensor {
	k, size := kernels.Shape[0], kernels.Len()/kernels.Shape[0]
	out := tensor.New(4*k, kernels.Shape[1], 3, 3)
	for r := range 4 {
		for i := range k {
			copy(out.Data[(4*i+r)*size:(4*i+r+1)*size], kernels.At(i).Data)
		}
		kernels = rotateKernels(kernels)
	}
	return out
}

// regularKernels returns the kernels of a later layer of such a network, 4 k x 4 c x 3 x 3, given
// those of its first rotation, k x 4 c x 3 x 3. For a rotation by r quarter turns the kernels
// rotate, and the four channels of each field of the input are permuted cyclically by r.
func regularKernels(kernels tensor.Tensor) tensor.Tensor {
	k, in := kernels.Shape[0], kernels.Shape[1]
	out := tensor.New(4*k, in, 3, 3)
	for r := range 4 {
		for i := range k {
			for c := range in {
				moved := c/4*4 + (c%4+r)%4
				copy(out.Data[((4*i+r)*in+moved)*9:][:9], kernels.Data[(i*in+c)*9:][:9])
			}
		}
		kernels = rotateKernels(kernels)
	}
	return out
}

func relu(x tensor.Tensor) tensor.Tensor {
	for i, v := range x.Data {
		x.Data[i] = max(v, 0)
	}
	return x
}

// TestGroupConvolutionUnderQuarterTurns checks that two layers of a group-equivariant network are
// equivariant under quarter turns if the setting Channels says how these permute the channels: with
// Cyclic: 4 channel c of a field moves to c + 1 for each turn, with Sense: backward to c - 1. By
// Order: outer the four channels of a field do not follow each other, which is wrong here.
func TestGroupConvolutionUnderQuarterTurns(t *testing.T) {
	t.Parallel()
	first, second := liftingKernels(random(1, 3, 2, 3, 3)), regularKernels(random(2, 2, 12, 3, 3))
	network := func(x tensor.Tensor) tensor.Tensor { return convolve(relu(convolve(x, first, false)), second, false) }
	x := random(3, 2, 7, 7)
	for _, angle := range []float64{90, 180, 270, -90} {
		op := transform.Rotate{Angle: transform.Fixed(angle)}.Draw(nil)
		z, zt := network(x), network(apply(op, x))
		permuted := between(t, op, equivariance.Settings{Channels: equivariance.Channels{Cyclic: 4}}, z, zt)
		if permuted.RelativeError > 1e-6 || permuted.Cosine < 1-1e-6 || permuted.Floor != 0 {
			t.Errorf("angle %v with its permutation of channels: %+v, want no error, cosine 1 and floor 0", angle, permuted)
		}
		for name, c := range map[string]equivariance.Channels{"none": {}, "outer": {Cyclic: 4, Order: "outer"}} {
			if e := between(t, op, equivariance.Settings{Channels: c}, z, zt); e.RelativeError < 0.3 {
				t.Errorf("angle %v with another permutation (%s): %+v, want an error of at least 0.3", angle, name, e)
			}
		}
		backward := between(t, op, equivariance.Settings{Channels: equivariance.Channels{Cyclic: 4, Sense: "backward"}}, z, zt)
		if exact := backward.RelativeError < 1e-6; exact != (angle == 180) {
			t.Errorf("angle %v backward: %+v, want an error of 0 for 180 degrees only", angle, backward)
		}
		last := tensor.Tensor{Shape: []int{7, 7, 8}, Data: channelsLast(z)}
		e, err := equivariance.Between(mapsOf(t, "NHWC", 7, 7, 8), transform.MotionOf(op), equivariance.Settings{Channels: equivariance.Channels{Cyclic: 4}}, last.Data, channelsLast(zt))
		if err != nil || e.RelativeError > 1e-6 {
			t.Errorf("channels last, angle %v: %+v, error %v; want no relative error", angle, e, err)
		}
	}
}

// gaussianBank returns the responses of n filters to an image of Gaussian blobs, n x side x side.
// The filters are the first derivatives of a Gaussian in n directions, from 0 to 360 degrees
// counter-clockwise. The responses are in closed form: a Gaussian convolved with a Gaussian has the
// sum of both variances. turn rotates the blobs about the centre of the image, in degrees.
func gaussianBank(n, side int, turn float64) tensor.Tensor {
	const variance = 9 + 4                                          // of a blob and of a filter
	blobs := [][3]float64{{6, -3, 1}, {-5, -7, -0.7}, {-2, 8, 0.5}} // right, up, weight
	out := tensor.New(n, side, side)
	sin, cos := math.Sincos(turn * math.Pi / 180)
	for k := range n {
		v, u := math.Sincos(2 * math.Pi * float64(k) / float64(n))
		for at := range side * side {
			x, y := float64(at%side)-float64(side-1)/2, float64(side-1)/2-float64(at/side)
			for _, b := range blobs {
				dx, dy := x-(cos*b[0]-sin*b[1]), y-(sin*b[0]+cos*b[1])
				out.Data[k*side*side+at] -= float32(b[2] * (u*dx + v*dy) / variance * math.Exp(-(dx*dx+dy*dy)/(2*variance)))
			}
		}
	}
	return out
}

// TestGaussianFilterBank checks that a bank of filters in eight directions is equivariant under
// rotations by 45 degrees, if its channels are permuted: exactly under quarter turns, and to the
// error of interpolation otherwise.
func TestGaussianFilterBank(t *testing.T) {
	t.Parallel()
	const n, side = 8, 41
	clean := gaussianBank(n, side, 0)
	cyclic := equivariance.Settings{Channels: equivariance.Channels{Cyclic: n}}
	for _, c := range []struct{ angle, most float64 }{{90, 1e-6}, {180, 1e-6}, {45, 0.02}, {-135, 0.02}} {
		transformed := gaussianBank(n, side, c.angle)
		op := transform.Rotate{Angle: transform.Fixed(c.angle)}.Draw(nil)
		e := between(t, op, cyclic, clean, transformed)
		if e.RelativeError > c.most || e.Cosine < 1-c.most || c.most < 1e-5 && e.Floor != 0 {
			t.Errorf("%g degrees: %+v, want an error of at most %g", c.angle, e, c.most)
		}
		if e := between(t, op, equivariance.Settings{}, clean, transformed); e.RelativeError < 0.5 {
			t.Errorf("%g degrees without the permutation: %+v, want a large error", c.angle, e)
		}
	}
}

// channelsLast returns the values of c x h x w as h x w x c.
func channelsLast(z tensor.Tensor) []float32 {
	c, plane := z.Shape[0], z.Len()/z.Shape[0]
	out := make([]float32, z.Len())
	for k := range c {
		for p := range plane {
			out[p*c+k] = z.Data[k*plane+p]
		}
	}
	return out
}

// TestAveragePoolingUnderHalfStride checks the statistics of an average pooling by 2 of a row of 8
// pixels under a shift by one pixel. That is half a position of the map, so tau, the action of the
// shift on the map, takes means of neighbours.
func TestAveragePoolingUnderHalfStride(t *testing.T) {
	t.Parallel()
	row := []float64{1, 5, 2, 8, 3, 0, 7, 4}
	x := tensor.New(1, 2, 8)
	for j, v := range row {
		x.Data[j], x.Data[8+j] = float32(v), float32(v)
	}
	pool := func(x tensor.Tensor) tensor.Tensor {
		out := tensor.New(1, 2, 4)
		for i := range 2 {
			for j := range 4 {
				out.Data[i*4+j] = (x.Data[i*8+2*j] + x.Data[i*8+2*j+1]) / 2
			}
		}
		return out
	}
	op := transform.Translate{X: transform.Fixed(1. / 8), Sampling: transform.Sampling{Outside: transform.Wrapped}}.Draw(nil)
	got := between(t, op, equivariance.Settings{}, pool(x), pool(apply(op, x)))
	// f(x) = 3, 5, 1.5, 5.5. tau f(x) are means of neighbours, circularly: 4.25, 4, 3.25, 3.5. f(Tx)
	// are the means of (4, 1), (5, 2), (8, 3) and (0, 7).
	moved, transformed := []float64{4.25, 4, 3.25, 3.5}, []float64{2.5, 3.5, 5.5, 3.5}
	var difference, norm, other, dot float64
	for j := range 4 {
		difference += (moved[j] - transformed[j]) * (moved[j] - transformed[j])
		norm += moved[j] * moved[j]
		other += transformed[j] * transformed[j]
		dot += moved[j] * transformed[j]
	}
	// tau^-1 tau f(x) = (z[i-1] + 2 z[i] + z[i+1]) / 4 = 4.125, 3.625, 3.375, 3.875
	floor := math.Sqrt((1.125*1.125 + 1.375*1.375 + 1.875*1.875 + 1.625*1.625) / (9 + 25 + 2.25 + 30.25))
	want := equivariance.Errors{RelativeError: math.Sqrt(difference / norm), Cosine: dot / math.Sqrt(norm*other), Floor: floor}
	if math.Abs(got.RelativeError-want.RelativeError) > 1e-6 || math.Abs(got.Cosine-want.Cosine) > 1e-6 || math.Abs(got.Floor-want.Floor) > 1e-6 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestConstantMaps checks the statistics of maps that are constant in each channel or zero, under
// every transformation.
func TestConstantMaps(t *testing.T) {
	t.Parallel()
	constant := tensor.New(3, 9, 9)
	for i := range constant.Data {
		constant.Data[i] = float32(1 + i/81)
	}
	zero := tensor.New(3, 9, 9)
	for name, tr := range everyTransform() {
		op := tr.Draw(rand.New(rand.NewPCG(1, 1)))
		if e := between(t, op, equivariance.Settings{}, constant, constant); e.RelativeError != 0 || e.Floor != 0 || math.Abs(e.Cosine-1) > 1e-6 {
			t.Errorf("%s of constant maps: %+v, want no error, cosine 1 and floor 0", name, e)
		}
		if e := between(t, op, equivariance.Settings{}, zero, zero); e != (equivariance.Errors{Cosine: 1}) {
			t.Errorf("%s of zeros: %+v, want no error and cosine 1", name, e)
		}
		if e := between(t, op, equivariance.Settings{}, zero, constant); e != (equivariance.Errors{RelativeError: 1}) {
			t.Errorf("%s of zeros, compared with constants: %+v, want error 1 and cosine 0", name, e)
		}
		if e := between(t, op, equivariance.Settings{}, constant, zero); e.RelativeError != 1 || e.Cosine != 0 {
			t.Errorf("%s of constants, compared with zeros: %+v, want error 1 and cosine 0", name, e)
		}
	}
}

// everyTransform returns transformations by name. Most of them move positions.
func everyTransform() map[string]transform.Transform {
	f := transform.Fixed
	return map[string]transform.Transform{
		"identity": transform.Identity{}, "flip": transform.Flip{}, "vertical flip": transform.Flip{Vertical: true},
		"quarter": transform.Rotate{Angle: f(90)}, "rotate": transform.Rotate{Angle: f(33)},
		"nearest":   transform.Rotate{Angle: f(20), Sampling: transform.Sampling{Nearest: true}},
		"translate": transform.Translate{X: f(0.2), Y: f(-0.13)}, "scale": transform.Scale{Factor: f(1.3)}, "shrink": transform.Scale{Factor: f(0.8)},
		"shear": transform.Shear{X: f(10)}, "affine": transform.Affine{Rotate: f(15), X: f(0.05), Y: f(0.1), Scale: f(0.9)},
		"crop": transform.Crop{Size: f(0.7)}, "moving crop": transform.Crop{Size: f(0.7), RandomPosition: true},
		"wrap":     transform.Translate{X: f(0.17), Sampling: transform.Sampling{Outside: transform.Wrapped}},
		"sequence": transform.Sequence{transform.Rotate{Angle: f(15)}, transform.Flip{}, transform.Brightness{Factor: f(2)}},
		"colour":   transform.Grayscale{},
	}
}

// TestTransformedMaps checks that the error is that of rounding if f(Tx) is T applied to f(x), that
// the statistics do not depend on the order of axes, and that the tokens of a grid, after a class
// token, are treated as maps.
func TestTransformedMaps(t *testing.T) {
	t.Parallel()
	for name, tr := range everyTransform() {
		z, op := random(4, 3, 12, 12), tr.Draw(rand.New(rand.NewPCG(1, 1)))
		zt := random(5, 3, 12, 12)
		if transform.OnMaps(tr) && name != "crop" && name != "moving crop" { // Apply rounds a crop's box to whole pixels, tau does not
			if e := between(t, op, equivariance.Settings{}, z, apply(op, z)); e.RelativeError > 1e-6 || e.Cosine < 1-1e-6 {
				t.Errorf("%s: %+v, want no error and cosine 1", name, e)
			}
		}
		// Margin is the fraction of the sides of a map that is left out at its border.
		for _, c := range []equivariance.Settings{{}, {Margin: 0.1}} {
			want := between(t, op, c, z, zt)
			last, err := equivariance.Between(mapsOf(t, "NHWC", 12, 12, 3), transform.MotionOf(op), c, channelsLast(z), channelsLast(zt))
			if err != nil || !near(last, want) {
				t.Errorf("%s: %+v with channels last, %+v with channels first", name, last, want)
			}
			class := make([]float32, 3) // the class token, before those of the grid of 12 x 12
			tokens, err := equivariance.Between(mapsOf(t, "NTC", 145, 3), transform.MotionOf(op), c, slices.Concat(class, channelsLast(z)), slices.Concat(class, channelsLast(zt)))
			if err != nil || !near(tokens, want) {
				t.Errorf("%s: %+v as tokens, %+v as maps", name, tokens, want)
			}
		}
	}
}

func near(a, b equivariance.Errors) bool {
	return math.Abs(a.RelativeError-b.RelativeError) < 1e-6 && math.Abs(a.Cosine-b.Cosine) < 1e-6 && math.Abs(a.Floor-b.Floor) < 1e-6
}

// TestScaleInvariance checks that multiplying both maps by a number changes no statistic, however
// large or small the number is.
func TestScaleInvariance(t *testing.T) {
	t.Parallel()
	z, zt := random(6, 4, 9, 8), random(7, 4, 9, 8)
	op := transform.Rotate{Angle: transform.Fixed(25)}.Draw(nil)
	want := between(t, op, equivariance.Settings{}, z, zt)
	rapid.Check(t, func(t *rapid.T) {
		factor := float32(math.Exp2(float64(rapid.IntRange(-100, 100).Draw(t, "power of two"))))
		a, b := tensor.New(z.Shape...), tensor.New(z.Shape...)
		for i := range a.Data {
			a.Data[i], b.Data[i] = factor*z.Data[i], factor*zt.Data[i]
		}
		e, err := equivariance.Between(tensor.Maps{Channels: 4, Grid: []int{9, 8}, ChannelStep: 72, PositionStep: 1}, transform.MotionOf(op), equivariance.Settings{}, a.Data, b.Data)
		if err != nil || !near(e, want) {
			t.Fatalf("factor %v: %+v, want %+v, error %v", factor, e, want, err)
		}
	})
}

// TestContract runs the tests that every measure must pass, such as scores that do not depend on
// batches (see measuretest.Run).
func TestContract(t *testing.T) {
	t.Parallel()
	const n = 70 // samples, in 24 blocks (see measure.Layout) of which the last is incomplete
	var label []int
	for i := range n {
		label = append(label, i%3)
	}
	for name, c := range map[string]struct {
		layer     tensor.Layer
		transform transform.Transform
	}{
		"rotations": {tensor.Layer{Shape: []int{2, 5, 4}, Axes: "NCHW"}, transform.Rotate{Angle: transform.Uniform(-40, 40)}},
		// Shifts by more than half the map leave no position that counts (see package equivariance),
		// so some samples have no value.
		"far shifts": {tensor.Layer{Shape: []int{4, 4, 3}, Axes: "NHWC"}, transform.Translate{X: transform.Uniform(-1, 1)}},
		"a flip":     {tensor.Layer{Shape: []int{10, 2}, Axes: "NTC"}, transform.Flip{}},
		"colour":     {tensor.Layer{Shape: []int{2, 5}, Axes: "NCT"}, transform.Brightness{Factor: transform.Fixed(2)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := measure.Site{Layer: c.layer, Layout: measure.NewLayout(n), Classes: []string{"a", "b", "c"}, KeepSamples: true, Motion: transform.Motions(c.transform)}
			shape := append([]int{n}, c.layer.Shape...)
			measuretest.Run(t, measuretest.Case{
				Measure: equivariance.New(equivariance.Settings{PerClass: true}), Site: site,
				Clean: random(1, shape...), Transformed: random(2, shape...), Label: label,
				Tolerance: 1e-6, // the null is computed in another order across batches
			})
		})
	}
}

// TestNoPosition checks that the scores have no value if the translation moves every position out
// of the map, and that a warning says why.
func TestNoPosition(t *testing.T) {
	t.Parallel()
	far := transform.Translate{X: transform.Fixed(0.9)}
	site := measure.Site{Layer: tensor.Layer{Shape: []int{1, 3, 3}, Axes: "NCHW"}, Layout: measure.NewLayout(3), Motion: transform.Motions(far)}
	a, err := equivariance.New(equivariance.Settings{}).New(site)
	if err != nil {
		t.Fatal(err)
	}
	b := &measure.Batch{Place: []int{0, 1, 2}, Index: []int{0, 1, 2}, Label: []int{-1, -1, -1}, Clean: random(1, 3, 1, 3, 3), Transformed: random(2, 3, 1, 3, 3)}
	for range 3 {
		b.Motions = append(b.Motions, transform.MotionOf(far.Draw(nil)))
	}
	if err := a.Update(b); err != nil {
		t.Fatal(err)
	}
	scores, err := a.Scores()
	if err != nil || len(scores) != 3 {
		t.Fatalf("%d scores, error %v; want 3 scores", len(scores), err)
	}
	for _, s := range scores {
		if !math.IsNaN(s.Value) || s.N != 0 || len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0], "3 of 3 samples are left out") {
			t.Errorf("%+v, want no value and a warning that 3 of 3 samples are left out", s)
		}
	}
}

// TestSkip checks Skip, which says why the measure is not computed for a site; "": it is computed.
// "pairs" stands for data of ready-made pairs x and T(x), where T is not known.
func TestSkip(t *testing.T) {
	t.Parallel()
	maps, turn := tensor.Layer{Shape: []int{8, 6, 6}, Axes: "NCHW"}, transform.Rotate{Angle: transform.Fixed(45)}
	four := equivariance.Settings{Channels: equivariance.Channels{Cyclic: 4}}
	for _, c := range []struct {
		name      string
		layer     tensor.Layer
		transform transform.Transform
		settings  equivariance.Settings
		want      string // start of the reason
	}{
		{"maps", maps, turn, equivariance.Settings{}, ""},
		{"vectors", tensor.Layer{Shape: []int{8}, Axes: "NC"}, turn, equivariance.Settings{}, "the layer has no positions"},
		{"one position", tensor.Layer{Shape: []int{8, 1, 1}, Axes: "NCHW"}, turn, equivariance.Settings{}, "the layer has a single position"},
		{"unknown axes", tensor.Layer{Shape: []int{8, 2, 2}, Axes: "?CHW"}, turn, equivariance.Settings{}, "its axes are not known"},
		{"pairs", maps, nil, equivariance.Settings{}, "how positions move from x to T(x) is not known"},
		{"sequence", tensor.Layer{Shape: []int{7, 8}, Axes: "NTC"}, turn, equivariance.Settings{}, "its positions are not on a grid"},
		{"sequence, gain", tensor.Layer{Shape: []int{8, 7}, Axes: "NCT"}, transform.Gain{DB: transform.Fixed(3)}, equivariance.Settings{}, ""},
		{"stretched time", tensor.Layer{Shape: []int{8, 7}, Axes: "NCT"}, transform.TimeStretch{Rate: transform.Fixed(2)}, equivariance.Settings{}, "the transformation stretches time"},
		{"no action on channels", maps, turn, four, "channels: {cyclic: 4} is defined for rotations by multiples of 90 degrees"},
		{"quarter turn", maps, transform.Rotate{Angle: transform.Fixed(90)}, four, ""},
		{"shift", maps, transform.Translate{X: transform.Fixed(0.1)}, four, ""},
	} {
		got := equivariance.New(c.settings).Skip(measure.Site{Layer: c.layer, Layout: measure.NewLayout(10), Motion: transform.Motions(c.transform)})
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
