package dataset

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/noether-ml/noether/tensor"
)

// drawn returns the image of f, channels x size x size. A figure of a kind (shape), such as disc,
// is white if there is one channel, on black.
func drawn(t interface{ Fatal(...any) }, f Figure, channels, size int) tensor.Tensor {
	image := tensor.New(channels, size, size)
	if err := f.Draw(image); err != nil {
		t.Fatal(err)
	}
	return image
}

// anyFigure returns a random figure inside the circle inscribed in the image, large enough to
// measure its area from pixels.
func anyFigure(t *rapid.T) Figure {
	return Figure{
		Kind:     rapid.SampledFrom(ShapeKinds()).Draw(t, "kind"),
		Scale:    rapid.Float64Range(0.35, 0.55).Draw(t, "scale"),
		Rotation: rapid.Float64Range(-360, 360).Draw(t, "rotation"),
		X:        rapid.Float64Range(-0.15, 0.15).Draw(t, "x"),
		Y:        rapid.Float64Range(-0.15, 0.15).Draw(t, "y"),
		Hue:      rapid.Float64Range(0, 360).Draw(t, "hue"),
	}
}

// TestFiguresAgreeWithNumpy compares figures with those of testdata/synthetic.py, an independent
// implementation, within 1e-3.
func TestFiguresAgreeWithNumpy(t *testing.T) {
	t.Parallel()
	for _, g := range readGolden(t).Figures {
		t.Run(g.Kind, func(t *testing.T) {
			f := Figure{Kind: g.Kind, Scale: g.Scale, Rotation: g.Rotation, X: g.X, Y: g.Y}
			near(t, drawn(t, f, 1, 16), g.Values, 1e-3)
		})
	}
}

// shapeArea returns the area of a kind whose circumscribed circle has radius 1: a Figure covers
// shapeArea * (Scale / 2)^2 of the image. It is 0 for an unknown kind.
func shapeArea(kind string) float64 {
	o, _ := findOutline(kind)
	area := math.Pi * (o.outer*o.outer - o.inner*o.inner)
	for _, c := range o.contours {
		for i, p := range c {
			q := c[(i+1)%len(c)]
			area += (p.x*q.y - q.x*p.y) / 2
		}
	}
	return area
}

func TestShapeAreas(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]float64{
		"bar":    16.0 / 17, // sides 4 : 1, the diagonal is 2
		"cross":  2,         // five squares of side 2 / sqrt(10)
		"disc":   math.Pi,
		"ring":   math.Pi * (1 - 0.36),
		"square": 2,
		// Pentagram of circumradius 1.
		"star": 10 * math.Tan(math.Pi/10) / (3 - math.Pow(math.Tan(math.Pi/10), 2)),
		// Three fifths of the square.
		"stripes":  1.2,
		"triangle": 3 * math.Sqrt(3) / 4,
		"blob":     0, // unknown
	} {
		if got := shapeArea(kind); math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: area %v, want %v", kind, got, want)
		}
	}
}

// TestAreaGrowsWithScaleSquared checks the sum of the pixels, of which those at an edge are grey.
func TestAreaGrowsWithScaleSquared(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := anyFigure(t)
		size := rapid.IntRange(64, 128).Draw(t, "size")
		sum := 0.0
		for _, v := range drawn(t, f, 1, size).Data {
			sum += float64(v)
		}
		// A right angle's blurred edge covers (1 + pi/4) / 24 pixels more than the figure, and
		// stripes have twelve right angles. The rest of the tolerance is for the sum over pixels in
		// place of the integral.
		want := shapeArea(f.Kind) * math.Pow(f.Scale*float64(size)/2, 2)
		if math.Abs(sum-want) > 6 {
			t.Fatalf("%s covers %.3f pixels, want %.3f", f.Kind, sum, want)
		}
	})
}

// TestQuarterTurnIsExact checks that a figure rotated by 90 degrees is its rotated image.
func TestQuarterTurnIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := anyFigure(t)
		turned := f
		turned.Rotation += 90
		turned.X, turned.Y = f.Y, -f.X
		if d := maxDifference(rotated90(drawn(t, f, 3, 32)), drawn(t, turned, 3, 32)); d > 1e-5 {
			t.Fatalf("a rotated image and a rotated figure differ by %g", d)
		}
	})
}

// TestRotationByAnyAngle checks that a rotated figure is close to its rotated image.
func TestRotationByAnyAngle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := anyFigure(t)
		theta := rapid.Float64Range(0, 360).Draw(t, "theta")
		sin, cos := math.Sincos(theta * math.Pi / 180)
		turned := f
		turned.Rotation += theta
		turned.X, turned.Y = cos*f.X+sin*f.Y, cos*f.Y-sin*f.X
		got, want := drawn(t, turned, 1, 64), turn(drawn(t, f, 1, 64), theta)
		// A bilinear look-up blurs an edge a second time. A rotation in the wrong direction would
		// differ by 1.
		if d := maxDifference(got, want); d > 0.5 {
			t.Fatalf("one pixel differs by %g", d)
		}
		sum, edge := 0.0, 0.0
		for i, v := range got.Data {
			sum += math.Abs(float64(v - want.Data[i]))
			if w := want.Data[i]; v > 0 && v < 1 || w > 0 && w < 1 {
				edge++
			}
		}
		if sum/edge > 0.2 {
			t.Fatalf("the mean difference over the edge is %g", sum/edge)
		}
	})
}

// turn rotates a grey square image counter-clockwise, with bilinear interpolation, filled with
// black.
func turn(src tensor.Tensor, degrees float64) tensor.Tensor {
	n := src.Shape[1]
	at := func(i, j int) float64 {
		if i < 0 || j < 0 || i >= n || j >= n {
			return 0
		}
		return float64(src.Data[i*n+j])
	}
	sin, cos := math.Sincos(degrees * math.Pi / 180)
	out, centre := tensor.New(1, n, n), float64(n-1)/2
	for i := range n {
		for j := range n {
			x, y := float64(j)-centre, float64(i)-centre
			u, v := cos*x-sin*y+centre, sin*x+cos*y+centre
			j0, i0 := int(math.Floor(u)), int(math.Floor(v))
			p, q := u-math.Floor(u), v-math.Floor(v)
			out.Data[i*n+j] = float32((1-q)*((1-p)*at(i0, j0)+p*at(i0, j0+1)) + q*((1-p)*at(i0+1, j0)+p*at(i0+1, j0+1)))
		}
	}
	return out
}

// TestWholePixelShift checks that a figure moved by whole pixels is its moved image.
func TestWholePixelShift(t *testing.T) {
	t.Parallel()
	const n = 32
	rapid.Check(t, func(t *rapid.T) {
		f := anyFigure(t)
		right, down := rapid.IntRange(-4, 4).Draw(t, "right"), rapid.IntRange(-4, 4).Draw(t, "down")
		still := drawn(t, f, 1, n)
		f.X += float64(right) / n
		f.Y += float64(down) / n
		moved := drawn(t, f, 1, n)
		for i := max(0, -down); i < n-max(0, down); i++ {
			for j := max(0, -right); j < n-max(0, right); j++ {
				if a, b := still.Data[i*n+j], moved.Data[(i+down)*n+j+right]; math.Abs(float64(a-b)) > 1e-5 {
					t.Fatalf("row %d, column %d: %g becomes %g after the shift", i, j, a, b)
				}
			}
		}
	})
}

// TestHue checks the colour of known hues, and that a figure has its hue.
func TestHue(t *testing.T) {
	t.Parallel()
	for hue, want := range map[float64][]float32{
		0: {1, 0, 0}, 60: {1, 1, 0}, 120: {0, 1, 0}, 180: {0, 1, 1}, 240: {0, 0, 1}, 300: {1, 0, 1}, 360: {1, 0, 0},
		30: {1, 0.5, 0}, 210: {0, 0.5, 1}, -60: {1, 0, 1},
	} {
		if diff := cmp.Diff(want, hueColour(hue)); diff != "" {
			t.Errorf("hue %g: %s", hue, diff)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		f := anyFigure(t)
		f.Kind, f.X, f.Y = "disc", 0, 0
		middle := 16*32 + 16 // index of a pixel inside the disc; a channel has 32 * 32 pixels
		p := drawn(t, f, 3, 32).Data
		if got := hueOf(float64(p[middle]), float64(p[1024+middle]), float64(p[2048+middle])); math.Abs(math.Remainder(got-f.Hue, 360)) > 1e-3 {
			t.Fatalf("hue %g is drawn as %g", f.Hue, got)
		}
	})
}

// hueOf returns the hue of a saturated colour, as HSV defines it, in degrees.
func hueOf(r, g, b float64) float64 {
	high, low := max(r, g, b), min(r, g, b)
	switch high {
	case r:
		return 60 * (g - b) / (high - low)
	case g:
		return 60 * (2 + (b-r)/(high-low))
	default:
		return 60 * (4 + (r-g)/(high-low))
	}
}

// TestShapesAreTheSameInAnyOrder checks that a sample depends on the seed and its index alone, and
// its factors not on the size of the image. must panics if there is an error; Frame{} keeps the
// size.
func TestShapesAreTheSameInAnyOrder(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		long := must(OpenShapes(ShapesOptions{N: 1000, Seed: seed, Size: 16}))
		short := must(OpenShapes(ShapesOptions{N: 100, Seed: seed, Size: 16}))
		large := must(OpenShapes(ShapesOptions{N: 100, Seed: seed, Size: 40}))
		first := map[int]Sample{}
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, 99), 2, 12).Draw(t, "order") {
			a, b, c := must(long.At(ctx, i, Frame{})), must(short.At(ctx, i, Frame{})), must(large.At(ctx, i, Frame{}))
			if diff := cmp.Diff(a, b); diff != "" {
				t.Fatalf("sample %d depends on N: %s", i, diff)
			}
			if diff := cmp.Diff(a.Factors, c.Factors); diff != "" {
				t.Fatalf("factors of sample %d depend on the size: %s", i, diff)
			}
			if before, ok := first[i]; ok {
				if diff := cmp.Diff(before, a); diff != "" {
					t.Fatalf("sample %d depends on what was read before: %s", i, diff)
				}
			}
			first[i] = a
		}
	})
}

func TestSeedsDiffer(t *testing.T) {
	t.Parallel()
	a, _ := must(OpenShapes(ShapesOptions{N: 1, Seed: 1})).Figure(0)
	b, _ := must(OpenShapes(ShapesOptions{N: 1, Seed: 2})).Figure(0)
	if a.Rotation == b.Rotation || a.X == b.X {
		t.Fatalf("two seeds draw the same: %+v and %+v", a, b)
	}
}

// TestFactorsAreUniformAndIndependent tests the factors of 6,000 samples and their correlations.
func TestFactorsAreUniformAndIndependent(t *testing.T) {
	t.Parallel()
	const n = 6000
	s := must(OpenShapes(ShapesOptions{N: n, Seed: 3, Size: 1}))
	ranges := map[string][]float64{"scale": {0.35, 0.55}, "rotation": {0, 360}, "x": {-0.15, 0.15}, "y": {-0.15, 0.15}, "hue": {0, 360}}
	units := map[string][]float64{} // values of each factor, scaled from its range to [0, 1]
	counts := make([]float64, len(s.Classes()))
	for i := range n {
		sample := must(s.At(context.Background(), i, Frame{}))
		if sample.Factors["shape"] != float64(sample.Label) {
			t.Fatalf("sample %d: label %d, factor %v", i, sample.Label, sample.Factors["shape"])
		}
		counts[sample.Label]++
		for name, r := range ranges {
			units[name] = append(units[name], (sample.Factors[name]-r[0])/(r[1]-r[0]))
		}
	}
	chi2, expected := 0.0, n/float64(len(counts))
	for _, c := range counts {
		chi2 += (c - expected) * (c - expected) / expected
	}
	if chi2 > 24.3 { // the critical value at level 0.1 % for 7 degrees of freedom
		t.Errorf("labels are not uniform: chi-square %.1f, counts %v", chi2, counts)
	}
	for a, u := range units {
		for b, v := range units {
			// two-sided, level 0.1 %.
			if r := correlation(u, v); a < b && math.Abs(r) > 3.3/math.Sqrt(n) {
				t.Errorf("%s and %s correlate: %.3f", a, b, r)
			}
		}
		if d := kolmogorovSmirnov(u); d > 1.95/math.Sqrt(n) { // level 0.1 %
			t.Errorf("%s is not uniform: distance %.4f", a, d)
		}
	}
}

// kolmogorovSmirnov returns the largest distance between a sample's distribution and the uniform
// one on [0, 1].
func kolmogorovSmirnov(u []float64) float64 {
	u = slices.Sorted(slices.Values(u))
	d, n := 0.0, float64(len(u))
	for i, v := range u {
		d = max(d, math.Abs(v-float64(i)/n), math.Abs(v-float64(i+1)/n))
	}
	return d
}

// correlation returns the correlation of two samples of the uniform distribution on [0, 1], from
// its known mean and variance.
func correlation(u, v []float64) float64 {
	sum := 0.0
	for i := range u {
		sum += (u[i] - 0.5) * (v[i] - 0.5)
	}
	return 12 * sum / float64(len(u))
}

// TestFixedFactors checks ranges of one value, and that grey images have no hue.
func TestFixedFactors(t *testing.T) {
	t.Parallel()
	s := must(OpenShapes(ShapesOptions{N: 20, Channels: 1, Kinds: []string{"star", "disc"}, Scale: []float64{0.5, 0.5}, X: []float64{0, 0}, Y: []float64{0, 0}, Rotation: []float64{30, 30}}))
	seen := map[string]bool{}
	for i := range s.Len() {
		f, label := s.Figure(i)
		if f.Scale != 0.5 || f.X != 0 || f.Y != 0 || f.Rotation != 30 || s.Classes()[label] != f.Kind {
			t.Fatalf("sample %d: %+v with label %d", i, f, label)
		}
		seen[f.Kind] = true
	}
	if len(seen) != 2 {
		t.Errorf("20 samples have only the figures %v", seen)
	}
	sample := must(s.At(context.Background(), 0, Frame{}))
	if got := slices.Sorted(maps.Keys(sample.Factors)); !slices.Equal(got, s.Factors()) || slices.Contains(got, "hue") {
		t.Errorf("white figures have the factors %v, and the source lists %v", got, s.Factors())
	}
}

// TestShapesAreFramed checks that a sample has the size and the channels of the frame.
func TestShapesAreFramed(t *testing.T) {
	t.Parallel()
	s := must(OpenShapes(ShapesOptions{N: 1}))
	sample := must(s.At(context.Background(), 0, Frame{Height: 20, Width: 24, Channels: 1}))
	if !slices.Equal(sample.Input.Shape, []int{1, 20, 24}) {
		t.Errorf("shape %v", sample.Input.Shape)
	}
}

// TestShapesFingerprint checks that the fingerprint, a hash of the settings, differs for any
// change, and that defaults may be given.
func TestShapesFingerprint(t *testing.T) {
	t.Parallel()
	base := ShapesOptions{N: 10, Seed: 1}
	explicit := ShapesOptions{N: 10, Seed: 1, Size: 32, Channels: 3, Kinds: ShapeKinds(), Scale: []float64{0.35, 0.55},
		Rotation: []float64{0, 360}, X: []float64{-0.15, 0.15}, Y: []float64{-0.15, 0.15}, Hue: []float64{0, 360}}
	seen := map[string]string{}
	for name, change := range map[string]func(*ShapesOptions){
		"nothing": func(*ShapesOptions) {}, "n": func(o *ShapesOptions) { o.N++ }, "seed": func(o *ShapesOptions) { o.Seed++ },
		"size": func(o *ShapesOptions) { o.Size = 33 }, "channels": func(o *ShapesOptions) { o.Channels = 1 },
		"kinds": func(o *ShapesOptions) { o.Kinds = []string{"ring", "disc"} }, "order": func(o *ShapesOptions) { o.Kinds = []string{"disc", "ring"} },
		"scale": func(o *ShapesOptions) { o.Scale = []float64{0.35, 0.5} }, "rotation": func(o *ShapesOptions) { o.Rotation = []float64{0, 90} },
		"x": func(o *ShapesOptions) { o.X = []float64{0, 0} }, "y": func(o *ShapesOptions) { o.Y = []float64{0, 0} }, "hue": func(o *ShapesOptions) { o.Hue = []float64{0, 0} },
	} {
		o := base
		change(&o)
		fingerprint := must(OpenShapes(o)).Fingerprint()
		if other, twice := seen[fingerprint]; twice {
			t.Errorf("changing %s and changing %s give the same fingerprint", name, other)
		}
		seen[fingerprint] = name
	}
	if seen[must(OpenShapes(explicit)).Fingerprint()] != "nothing" {
		t.Error("explicit defaults give another fingerprint")
	}
}

func TestShapesErrors(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]ShapesOptions{
		"shapes: n is 0": {},
		"n is 1000000000000: set it to the number": {N: 1e12},
		"size -3":                                {N: 1, Size: -3},
		"size 100000":                            {N: 1, Size: 100000},
		"channels is 4":                          {N: 1, Channels: 4},
		`unknown figure "hexagon"`:               {N: 1, Kinds: []string{"disc", "hexagon"}},
		`"disc" is listed twice`:                 {N: 1, Kinds: []string{"disc", "disc"}},
		"kinds is empty":                         {N: 1, Kinds: []string{}},
		"scale is [0.5 0.2]: a range is":         {N: 1, Scale: []float64{0.5, 0.2}},
		"x is [0.1]: a range is":                 {N: 1, X: []float64{0.1}},
		"y is [NaN 0]: a range is":               {N: 1, Y: []float64{math.NaN(), 0}},
		"scale is [0 0.5]: it must be within":    {N: 1, Scale: []float64{0, 0.5}},
		"hue is [0 +Inf]: it must be within":     {N: 1, Hue: []float64{0, math.Inf(1)}},
		"rotation is [0 1e+06]: it must be with": {N: 1, Rotation: []float64{0, 1e6}},
	} {
		_, err := OpenShapes(o)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
	s := must(OpenShapes(ShapesOptions{N: 2}))
	for _, i := range []int{-1, 2} {
		if _, err := s.At(context.Background(), i, Frame{}); err == nil || !strings.Contains(err.Error(), "there is no sample") {
			t.Errorf("sample %d: %v", i, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.At(ctx, 0, Frame{}); err != context.Canceled {
		t.Errorf("cancelled: %v, want %v", err, context.Canceled)
	}
}

// TestFigureErrors draws wrong figures, and a right one on tensors of wrong shape.
func TestFigureErrors(t *testing.T) {
	t.Parallel()
	good := Figure{Kind: "disc", Scale: 0.5}
	for want, draw := range map[string]func() error{
		"unknown figure":            func() error { return Figure{Kind: "blob", Scale: 1}.Draw(tensor.New(1, 8, 8)) },
		"1 or 3 channels":           func() error { return good.Draw(tensor.New(2, 8, 8)) },
		"not [8 8]":                 func() error { return good.Draw(tensor.New(8, 8)) },
		"the scale must be above 0": func() error { return Figure{Kind: "star"}.Draw(tensor.New(1, 8, 8)) },
		"the factors finite":        func() error { return Figure{Kind: "star", Scale: 1, X: math.NaN()}.Draw(tensor.New(1, 8, 8)) },
	} {
		if err := draw(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func BenchmarkShapes(b *testing.B) {
	s := must(OpenShapes(ShapesOptions{N: 1 << 30}))
	for i := 0; b.Loop(); i++ {
		must(s.At(context.Background(), i, Frame{}))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
}
