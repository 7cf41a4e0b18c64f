package similarity

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/measure/measuretest"
	"github.com/noether-ml/noether/tensor"
)

// A plsAndGeometry holds the golden values that testdata/more.py computed for a case of
// testdata/list.json: R² by partial least squares (PLS) of X predicted from Y, and the
// statistics of the measure geometry of X, by name.
type plsAndGeometry struct {
	PLS []struct {
		Folds, Components int
		Value             float64
	}
	Geometry map[string]float64
}

// TestGoldenPLSAndGeometry compares pls-predictivity and the statistics of the measure geometry,
// which describe the vectors of one layer (such as their effective rank), with the values of
// testdata/more.py. source (see golden_test.go) returns a matrix of rows of P values.
func TestGoldenPLSAndGeometry(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Name string
		N    int
		P, Q int
		X, Y []float32
	}
	var want []plsAndGeometry
	for name, v := range map[string]any{"list": &cases, "more": &want} {
		raw, err := os.ReadFile("testdata/" + name + ".json")
		if err == nil {
			err = json.Unmarshal(raw, v)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range cases {
		for _, v := range want[i].PLS {
			s := Defaults()
			s.Folds, s.Components = v.Folds, v.Components
			got, err := Value(context.Background(), PLSPredictivity, source(t, c.X, c.P), source(t, c.Y, c.Q), s)
			if err != nil || !(math.Abs(got-v.Value) <= 1e-6*max(1, math.Abs(v.Value))) {
				t.Errorf("%s, %d folds, %d components: %.10f, %v; want %.10f", c.Name, v.Folds, v.Components, got, err, v.Value)
			}
		}
		scores := geometryOf(t, tensor.Tensor{Shape: []int{c.N, c.P}, Data: c.X}, tensor.Tensor{})
		if len(scores) != 7 {
			t.Errorf("%s: %d scores, want the seven of geometry", c.Name, len(scores))
		}
		for _, s := range scores {
			if v, ok := want[i].Geometry[s.Statistic]; ok && !(math.Abs(s.Value-v) <= 1e-6*max(1e-2, math.Abs(v))) {
				t.Errorf("%s, %s: %.10f, want %.10f", c.Name, s.Statistic, s.Value, v)
			}
		}
	}
}

// geometryMeasure returns the measure for vectors, with the default of at most 4096 samples.
func geometryMeasure(t testing.TB) measure.Measure {
	t.Helper()
	m, err := NewGeometry(GeometrySettings{Pool: "none", Samples: 4096})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// vectorSite returns a site, which is what is measured: here a layer z of p values, on n samples.
func vectorSite(n, p int) measure.Site {
	return measure.Site{Layer: tensor.Layer{Name: "z", Shape: []int{p}, Axes: "NC"}, Layout: measure.NewLayout(n), Key: measure.Key{Seed: 1, Data: "d"}}
}

// geometryOf returns the scores of the representations z on x and moved on T(x), n x p each. moved
// may be empty.
func geometryOf(t testing.TB, z, moved tensor.Tensor) []measure.Score {
	t.Helper()
	acc, err := geometryMeasure(t).New(vectorSite(z.Shape[0], z.Shape[1]))
	if err != nil {
		t.Fatal(err)
	}
	// Place is the position in the random order of reading, Index that in the data set.
	b := &measure.Batch{Clean: z, Transformed: moved}
	for i := range z.Shape[0] {
		b.Place, b.Index, b.Label = append(b.Place, i), append(b.Index, i), append(b.Label, 0)
	}
	if err := acc.Update(b); err != nil {
		t.Fatal(err)
	}
	scores, err := acc.Scores()
	if err != nil {
		t.Fatal(err)
	}
	return scores
}

// TestGeometryContract checks what accumulators (running sums) have to fulfil, such as scores that
// do not depend on the batch size, and states that can be merged, written and read.
func TestGeometryContract(t *testing.T) {
	t.Parallel()
	const n, p = 75, 4
	g := rand.New(rand.NewPCG(2, 3))
	z, moved := tensor.New(n, p), tensor.New(n, p)
	for i := range z.Data {
		z.Data[i], moved.Data[i] = float32(g.NormFloat64()), float32(g.NormFloat64()+1)
	}
	measuretest.Run(t, measuretest.Case{Measure: geometryMeasure(t), Site: vectorSite(n, p), Clean: z, Transformed: moved})
}

// TestGeometryOfKnownSets checks sets of known geometry in five dimensions: on x, samples of a
// square in a plane at the distance 100 from the origin; on T(x), samples of a line segment centred
// at the origin. The variant of the scores on T(x) is Moved, that of the others "". Magnitude is
// the length of the mean vector, and concentricity the mean cosine of a vector and that mean. The
// effective rank is of vectors that are not centred, so a distant square is nearly one direction.
// The test also checks that values lie in their intervals and that there is no null.
func TestGeometryOfKnownSets(t *testing.T) {
	t.Parallel()
	const n = 400
	g := rand.New(rand.NewPCG(5, 5))
	z, moved := tensor.New(n, 5), tensor.New(n, 5)
	for i := range n {
		z.At(i).Data[0], z.At(i).Data[1] = float32(g.Float64()), float32(g.Float64())
		z.At(i).Data[4] = 100
		moved.At(i).Data[2] = float32(g.Float64() - 0.5)
	}
	found := map[[2]string]measure.Score{}
	for _, s := range geometryOf(t, z, moved) {
		found[[2]string{s.Variant, s.Statistic}] = s
		if s.Statistic == AlphaReQ { // five variables are too few for a fit
			if !math.IsNaN(s.Value) || len(s.Warnings) == 0 {
				t.Errorf("%s alpha-req of five variables is %v, want a warning", s.Variant, s.Value)
			}
			continue
		}
		if !(s.Low <= s.Value && s.Value <= s.High) || !math.IsNaN(s.Null) {
			t.Errorf("%s %s is %v, want a value in its interval [%v, %v]; null %v, want NaN", s.Variant, s.Statistic, s.Value, s.Low, s.High, s.Null)
		}
	}
	for _, c := range []struct {
		variant, statistic string
		want, within       float64
	}{
		{"", Magnitude, 100, 0.1}, {"", Concentricity, 1, 1e-3}, {"", IntrinsicDimension, 2, 0.4}, {"", EffectiveRank, 1, 0.1},
		{Moved, Magnitude, 0, 0.05}, {Moved, IntrinsicDimension, 1, 0.2}, {Moved, EffectiveRank, 1, 1e-9}, {Moved, Concentricity, 0, 0.15},
	} {
		if got := found[[2]string{c.variant, c.statistic}].Value; math.Abs(got-c.want) > c.within {
			t.Errorf("%s %s is %v, want %v within %v", c.variant, c.statistic, got, c.want, c.within)
		}
	}
}

// TestPLSWithAllComponents checks limiting cases of partial least squares (PLS): with as many
// components as variables it is least squares, that is ridge regression without a penalty; and if y
// contains x, it predicts x exactly.
func TestPLSWithAllComponents(t *testing.T) {
	t.Parallel()
	g := rand.New(rand.NewPCG(8, 8))
	x, y := normal(g, 60, 3), normal(g, 60, 4)
	s := Defaults()
	s.Ridge = 0
	of := func(name string, a, b *mat.Dense) float64 {
		_, p := a.Dims()
		_, q := b.Dims()
		v, err := Value(context.Background(), name, source(t, a.RawMatrix().Data, p), source(t, b.RawMatrix().Data, q), s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if a, b := of(PLSPredictivity, x, y), of(RidgePredictivity, x, y); math.Abs(a-b) > 1e-9 {
		t.Errorf("PLS with all components is %v, least squares %v", a, b)
	}
	var both mat.Dense
	both.Augment(y, x)
	if v := of(PLSPredictivity, x, &both); math.Abs(v-1) > 1e-9 {
		t.Errorf("PLS from variables that contain x is %v, want 1", v)
	}
}

// TestGeometryOfBadInput checks that values that are not finite are an error that names the view
// (clean or transformed) and the sample. Sets of equal or of few samples must have values in range,
// or NaN with a warning.
func TestGeometryOfBadInput(t *testing.T) {
	t.Parallel()
	const n, p = 40, 3
	g := rand.New(rand.NewPCG(6, 6))
	random := func(n int) tensor.Tensor {
		z := tensor.New(n, p)
		for i := range z.Data {
			z.Data[i] = float32(g.NormFloat64())
		}
		return z
	}
	for i, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for j, view := range []string{"clean", "transformed"} {
			acc, err := geometryMeasure(t).New(vectorSite(n, p))
			if err != nil {
				t.Fatal(err)
			}
			views := [2]tensor.Tensor{random(1), random(1)}
			views[j].Data[i] = float32(bad)
			err = acc.Update(&measure.Batch{Place: []int{5}, Index: []int{17}, Label: []int{0}, Clean: views[0], Transformed: views[1]})
			var e *measure.NonFinite
			if !errors.As(err, &e) || e.View != view || e.Index != 17 {
				t.Errorf("%v on %s: error %v, want one of that view and index 17", bad, view, err)
			}
		}
	}
	constant := tensor.New(n, p)
	for i := range constant.Data {
		constant.Data[i] = 2
	}
	equal := random(n)
	for i := range n {
		copy(equal.At(i).Data, equal.At(i%2).Data)
	}
	for name, z := range map[string]tensor.Tensor{"zeros": tensor.New(n, p), "constant": constant, "two samples many times": equal, "two samples": random(2), "three samples": random(3)} {
		scores := geometryOf(t, z, tensor.Tensor{})
		if len(scores) != 7 {
			t.Errorf("%s: %d scores, want the seven of geometry", name, len(scores))
		}
		for _, s := range scores {
			d, _ := GeometryDescriptor().Statistic(s.Statistic)
			switch {
			case math.IsNaN(s.Value) && len(s.Warnings) == 0:
				t.Errorf("%s: %s has no value and no warning", name, s.Statistic)
			case s.Value < d.Range.Low-1e-9 || s.Value > d.Range.High+1e-9:
				t.Errorf("%s: %s is %v, outside of %v", name, s.Statistic, s.Value, d.Range)
			}
		}
	}
	for _, s := range []GeometrySettings{{Pool: "max", Samples: 40}, {Pool: "none", Samples: 3}} {
		if _, err := NewGeometry(s); err == nil {
			t.Errorf("%+v is accepted", s)
		}
	}
}

// TestGoldenSpectra compares rankme and alpha-req with the values of testdata/spectra.py, which
// computes them as the programs of the papers do, with more samples than variables and with fewer.
func TestGoldenSpectra(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/spectra.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		N, P     int
		X        []float32
		RankMe   float64 `json:"rankme"`
		AlphaReQ float64 `json:"alpha-req"`
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		seen := 0
		for _, s := range geometryOf(t, tensor.Tensor{Shape: []int{c.N, c.P}, Data: c.X}, tensor.Tensor{}) {
			want, ok := map[string]float64{RankMe: c.RankMe, AlphaReQ: c.AlphaReQ}[s.Statistic]
			if !ok {
				continue
			}
			seen++
			if math.Abs(s.Value-want) > 1e-6*want || !(s.Low < s.Value && s.Value < s.High) {
				t.Errorf("%d x %d: %s is %.9f in [%v, %v], want %.9f", c.N, c.P, s.Statistic, s.Value, s.Low, s.High, want)
			}
		}
		if seen != 2 {
			t.Errorf("%d x %d: %d of two statistics", c.N, c.P, seen)
		}
	}
}

// TestAlphaOfPowerLaw finds the exponent of samples whose variances are j^-alpha.
func TestAlphaOfPowerLaw(t *testing.T) {
	t.Parallel()
	const n, p, alpha = 600, 40, 1.2
	g := rand.New(rand.NewPCG(4, 4))
	z := tensor.New(n, p)
	for i := range z.Data {
		z.Data[i] = float32(g.NormFloat64() * math.Pow(float64(i%p+1), -alpha/2))
	}
	for _, s := range geometryOf(t, z, tensor.Tensor{}) {
		if s.Statistic == AlphaReQ && (math.Abs(s.Value-alpha) > 0.1 || s.Low > s.Value || s.High < s.Value) {
			t.Errorf("alpha-req is %v in [%v, %v], want about %v", s.Value, s.Low, s.High, alpha)
		}
	}
}
