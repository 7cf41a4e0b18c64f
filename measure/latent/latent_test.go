package latent_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/latent"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
	"github.com/noether-ml/noether/transform"
)

var (
	defaults    = latent.Settings{Ridge: 1e-3, Folds: 5}
	quarterTurn = transform.Rotate{Angle: transform.Fixed(90)}
	colour      = transform.Brightness{Factor: transform.Fixed(2)} // moves no positions
)

func random(seed uint64, shape ...int) tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, 1))
	t := tensor.New(shape...)
	for i := range t.Data {
		t.Data[i] = float32(r.NormFloat64())
	}
	return t
}

// scoresByOperator returns the scores by the operator from which r2 was computed: identity, place
// (positions move as the input does), channels and both. r2 is the fraction of the variance of the
// transformed maps that the operator predicts from the clean ones, those of the untransformed
// inputs. Place, in a batch, is the position of a sample in the order of reading; label -1 is none.
func scoresByOperator(t *testing.T, s latent.Settings, layer tensor.Layer, tr transform.Transform, clean, transformed tensor.Tensor) map[string]measure.Score {
	t.Helper()
	m, err := latent.New(s)
	if err != nil {
		t.Fatal(err)
	}
	n := clean.Shape[0]
	site := measure.Site{Layer: layer, Layout: measure.NewLayout(n), Motion: transform.Motions(tr)}
	if why := m.Skip(site); why != "" {
		t.Fatal(why)
	}
	a, err := m.New(site)
	if err != nil {
		t.Fatal(err)
	}
	b := &measure.Batch{Clean: clean, Transformed: transformed}
	for i := range n {
		b.Place, b.Index, b.Label = append(b.Place, i), append(b.Index, i), append(b.Label, -1)
		if tr != nil {
			b.Motions = append(b.Motions, transform.MotionOf(tr.Draw(nil)))
		}
	}
	if err := a.Update(b); err != nil {
		t.Fatal(err)
	}
	scores, err := a.Scores()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]measure.Score{}
	for _, s := range scores {
		out[s.Variant] = s
	}
	return out
}

// TestGolden checks that scores agree with those of testdata/golden.py, which uses NumPy and builds
// the same maps z, moved and mixed.
func TestGolden(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden map[string]float64
	if err := json.Unmarshal(text, &golden); err != nil {
		t.Fatal(err)
	}
	const n, channels, side = 40, 5, 6
	z, moved, mixed := tensor.New(n, channels, side, side), tensor.New(n, channels, side, side), tensor.New(n, channels, side, side)
	at := func(i, c, y, x int) int { return ((i*channels+c)*side+y)*side + x }
	for i := range n {
		for c := range channels {
			for y := range side {
				for x := range side {
					fi, fc, fy, fx := float64(i), float64(c), float64(y), float64(x)
					z.Data[at(i, c, y, x)] = float32(math.Sin(1.3*fi + 2.1*fc + 0.7*fy - 0.4*fx + 0.05*fi*fy*(fc+1)))
				}
			}
		}
		quarterTurn.Draw(nil).Apply(moved.At(i), z.At(i))
	}
	for i := range n {
		for c := range channels {
			for y := range side {
				for x := range side {
					noise := float64(float32(math.Cos(0.9*float64(i*(c+1)) + 1.9*float64(y) + 2.7*float64(x*(i%7)))))
					v := 0.8*float64(moved.Data[at(i, (c+channels-1)%channels, y, x)]) + 0.3*float64(z.Data[at(i, c, y, x)]) + 0.25*noise + 0.5
					mixed.Data[at(i, c, y, x)] = float32(v)
				}
			}
		}
	}
	found := scoresByOperator(t, defaults, tensor.Layer{Shape: []int{channels, side, side}, Axes: "NCHW"}, quarterTurn, z, mixed)
	if len(found) != len(golden) {
		t.Fatalf("%d scores, want %d", len(found), len(golden))
	}
	for name, want := range golden {
		if got := found[name]; math.Abs(got.Value-want) > 1e-6 || !(got.Low < got.Value && got.Value < got.High) || got.N != n {
			t.Errorf("%s: %+v, want the value %v within its interval, of %d samples", name, got, want, n)
		}
	}
}

// mix returns matrix z_p + 1 at every position p, where z_p is the vector of the channels.
func mix(z tensor.Tensor, matrix []float32) tensor.Tensor {
	out := tensor.New(z.Shape...)
	n, c, plane := z.Shape[0], z.Shape[1], z.Shape[2]*z.Shape[3]
	for i := range n {
		for k := range c {
			for p := range plane {
				sum := float32(1)
				for j := range c {
					sum += matrix[k*c+j] * z.Data[(i*c+j)*plane+p]
				}
				out.Data[(i*c+k)*plane+p] = sum
			}
		}
	}
	return out
}

// rotated returns the maps z, rotated by 90 degrees.
func rotated(z tensor.Tensor) tensor.Tensor {
	out := tensor.New(z.Shape...)
	for i := range z.Shape[0] {
		quarterTurn.Draw(nil).Apply(out.At(i), z.At(i))
	}
	return out
}

// TestKnownOperators checks that r2 is 1 for the operator that made the transformed maps, and for
// those that include it, and near 0 if they are independent of the clean maps.
func TestKnownOperators(t *testing.T) {
	t.Parallel()
	const n, c = 60, 6
	z, matrix := random(1, n, c, 7, 7), random(2, c, c).Data
	layer := tensor.Layer{Shape: []int{c, 7, 7}, Axes: "NCHW"}
	for _, k := range []struct {
		name        string
		transformed tensor.Tensor
		explain     []string // the operators with an r2 of 1
	}{
		{"identity", z, []string{"identity", "channels"}},
		{"place", rotated(z), []string{"place", "both"}},
		{"channels", mix(z, matrix), []string{"channels"}},
		{"both", mix(rotated(z), matrix), []string{"both"}},
		{"no operator", random(3, n, c, 7, 7), nil},
	} {
		found := scoresByOperator(t, latent.Settings{Ridge: 1e-6, Folds: 5}, layer, quarterTurn, z, k.transformed)
		for _, name := range []string{"identity", "place", "channels", "both"} {
			explains := false
			for _, e := range k.explain {
				explains = explains || e == name
			}
			if s := found[name]; explains && !(s.Value > 1-1e-6) || !explains && !(s.Value < 0.1) {
				t.Errorf("maps made by %s: r2 of %s is %v, want about 1: %t", k.name, name, s.Value, explains)
			}
		}
	}
}

// TestLayouts checks that tokens in a grid have the scores of maps, and that transformations that
// move no positions, given pairs of inputs, and vectors have the operators identity and channels
// only.
func TestLayouts(t *testing.T) {
	t.Parallel()
	const n, c, side = 40, 4, 5
	z, zt := random(1, n, c, side, side), random(2, n, c, side, side)
	for i := range zt.Data {
		zt.Data[i] = 0.3*zt.Data[i] + z.Data[i]
	}
	asTokens := func(z tensor.Tensor) tensor.Tensor {
		out := tensor.New(n, side*side, c)
		for i := range n {
			for k := range c {
				for p := range side * side {
					out.Data[(i*side*side+p)*c+k] = z.Data[(i*c+k)*side*side+p]
				}
			}
		}
		return out
	}
	want := scoresByOperator(t, defaults, tensor.Layer{Shape: []int{c, side, side}, Axes: "NCHW"}, quarterTurn, z, zt)
	tokens := scoresByOperator(t, defaults, tensor.Layer{Shape: []int{side * side, c}, Axes: "NTC"}, quarterTurn, asTokens(z), asTokens(zt))
	for name, w := range want {
		if g := tokens[name]; math.Abs(g.Value-w.Value) > 1e-6 || math.Abs(g.Low-w.Low) > 1e-6 {
			t.Errorf("%s: %+v as tokens, %+v as maps", name, g, w)
		}
	}
	if len(want) != 4 || !(want["identity"].Value > 0.8) {
		t.Errorf("%+v, want four operators, and an r2 of identity above 0.8", want)
	}
	for name, tr := range map[string]transform.Transform{"colour": colour, "pairs without a transformation": nil} {
		found := scoresByOperator(t, defaults, tensor.Layer{Shape: []int{c, side, side}, Axes: "NCHW"}, tr, z, zt)
		if len(found) != 2 || math.Abs(found["identity"].Value-want["identity"].Value) > 1e-6 {
			t.Errorf("%s: %+v, want two operators, and the r2 %v of identity", name, found, want["identity"].Value)
		}
	}
	v, vt := tensor.Tensor{Shape: []int{n, 100}, Data: z.Data}, tensor.Tensor{Shape: []int{n, 100}, Data: zt.Data}
	if found := scoresByOperator(t, defaults, tensor.Layer{Shape: []int{100}, Axes: "NC"}, quarterTurn, v, vt); len(found) != 2 || !(found["identity"].Value > 0.8) {
		t.Errorf("vectors: %+v, want two operators, and an r2 of identity above 0.8", found)
	}
}

// TestMargin checks that a margin leaves out the border of maps, also under a transformation that
// moves no positions: values there do not count, and a margin without positions inside leaves out
// all samples.
func TestMargin(t *testing.T) {
	t.Parallel()
	const n, c, side, border = 40, 3, 8, 2
	z, zt := random(1, n, c, side, side), random(2, n, c, side, side)
	inner, innerT := tensor.New(n, c, side-2*border, side-2*border), tensor.New(n, c, side-2*border, side-2*border)
	at := 0
	for i := range z.Data {
		zt.Data[i] = 0.5*zt.Data[i] + z.Data[i]
		if y, x := i/side%side, i%side; min(y, x) >= border && max(y, x) < side-border {
			inner.Data[at], innerT.Data[at] = z.Data[i], zt.Data[i]
			at++
		} else {
			zt.Data[i] = 5
		}
	}
	layer := func(side int) tensor.Layer { return tensor.Layer{Shape: []int{c, side, side}, Axes: "NCHW"} }
	withMargin := latent.Settings{Ridge: 1e-3, Folds: 5, Margin: 0.25}
	want := scoresByOperator(t, defaults, layer(side-2*border), colour, inner, innerT)
	for name, tr := range map[string]transform.Transform{"colour": colour, "pairs without a transformation": nil} {
		found := scoresByOperator(t, withMargin, layer(side), tr, z, zt)
		for operator, w := range want {
			if got := found[operator]; math.Abs(got.Value-w.Value) > 1e-6 || got.N != n {
				t.Errorf("%s: r2 of %s is %v with a margin, want %v, that of the maps without their border", name, operator, got.Value, w.Value)
			}
		}
	}
	tiny := random(3, n, c, 2, 2)
	for operator, s := range scoresByOperator(t, latent.Settings{Folds: 5, Margin: 0.45}, layer(2), colour, tiny, tiny) {
		if !math.IsNaN(s.Value) || s.N != 0 || len(s.Warnings) == 0 {
			t.Errorf("%s: %+v without counted positions, want no value and a warning", operator, s)
		}
	}
}

func TestConstantMaps(t *testing.T) {
	t.Parallel()
	constant := tensor.New(40, 2, 4, 4)
	for name, s := range scoresByOperator(t, defaults, tensor.Layer{Shape: []int{2, 4, 4}, Axes: "NCHW"}, quarterTurn, constant, constant) {
		if !math.IsNaN(s.Value) || len(s.Warnings) != 1 {
			t.Errorf("%s: %+v, want no value and a warning", name, s)
		}
	}
	// A constant channel does not change the fit of the others.
	z := random(1, 40, 2, 4, 4)
	for i := range z.Shape[0] {
		clear(z.At(i).Data[:16])
	}
	if s := scoresByOperator(t, latent.Settings{Folds: 5}, tensor.Layer{Shape: []int{2, 4, 4}, Axes: "NCHW"}, quarterTurn, z, z)["channels"]; !(s.Value > 1-1e-6) {
		t.Errorf("a constant channel: %+v, want an r2 of 1", s)
	}
}

// TestContract runs the checks of package measuretest: scores do not depend on how samples are
// divided into batches and into parts that are merged.
func TestContract(t *testing.T) {
	t.Parallel()
	const n = 45
	for name, c := range map[string]struct {
		layer     tensor.Layer
		transform transform.Transform
	}{
		"rotations":    {tensor.Layer{Shape: []int{3, 5, 4}, Axes: "NCHW"}, transform.Rotate{Angle: transform.Uniform(-40, 40)}},
		"large shifts": {tensor.Layer{Shape: []int{4, 4, 2}, Axes: "NHWC"}, transform.Translate{X: transform.Uniform(-1, 1)}},
		"colour":       {tensor.Layer{Shape: []int{6}, Axes: "NC"}, colour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := latent.New(defaults)
			if err != nil {
				t.Fatal(err)
			}
			shape := append([]int{n}, c.layer.Shape...)
			measuretest.Run(t, measuretest.Case{
				Measure: m, Site: measure.Site{Layer: c.layer, Layout: measure.NewLayout(n), Motion: transform.Motions(c.transform)},
				Clean: random(1, shape...), Transformed: random(2, shape...), Tolerance: 1e-4, // blocks are multiplied in float32
			})
		})
	}
}

// TestSkip checks which sites (see scoresByOperator) cannot be measured, and that invalid settings
// are errors. Folds is a number of parts of the samples, 2 to 20.
func TestSkip(t *testing.T) {
	t.Parallel()
	m, err := latent.New(defaults)
	if err != nil {
		t.Fatal(err)
	}
	maps := tensor.Layer{Shape: []int{8, 6, 6}, Axes: "NCHW"}
	for name, c := range map[string]struct {
		site measure.Site
		skip bool
	}{
		"maps":                  {measure.Site{Layer: maps, Layout: measure.NewLayout(10), Motion: transform.Motions(quarterTurn)}, false},
		"unknown axes":          {measure.Site{Layer: tensor.Layer{Shape: []int{8, 6}, Axes: "?TC"}, Layout: measure.NewLayout(10), Motion: transform.Motions(quarterTurn)}, true},
		"one sample":            {measure.Site{Layer: maps, Layout: measure.NewLayout(1), Motion: transform.Motions(quarterTurn)}, true},
		"memory of 1,000 bytes": {measure.Site{Layer: maps, Layout: measure.NewLayout(10), Motion: transform.Motions(quarterTurn), Budget: 1000}, true},
	} {
		if why := m.Skip(c.site); (why != "") != c.skip {
			t.Errorf("%s: Skip returns %q, want a reason: %t", name, why, c.skip)
		}
	}
	for _, s := range []latent.Settings{{Folds: 1}, {Folds: 21}, {Folds: 5, Ridge: math.NaN()}} {
		if _, err := latent.New(s); err == nil {
			t.Errorf("New(%+v) returns no error", s)
		}
	}
}
