package distance

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/noether-ml/noether/engine/ort"
	"github.com/noether-ml/noether/internal/orttest"
	"github.com/noether-ml/noether/internal/reduction"
	"github.com/noether-ml/noether/measure"
	"github.com/noether-ml/noether/onnx"
	"github.com/noether-ml/noether/tensor"
)

// TestReduction checks that scores from sums that a graph computes in float32 agree with those from
// the activations, for layers of all shapes and sizes, nearly equal and equal activations, zeros,
// and activations of different lengths.
func TestReduction(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 1))
	shapes := []tensor.Layer{{Shape: []int{5}, Axes: "NC"}, {Shape: []int{3, 17, 31}, Axes: "NCHW"}, {Shape: []int{64, 32, 32}, Axes: "NCHW"}, {Shape: []int{9, 7, 40}, Axes: "NHWC"}, {Shape: []int{50, 33}, Axes: "NTC"}}
	for _, layer := range shapes {
		for name, change := range map[string]func(clean, transformed []float32){
			"normal":       func(clean, transformed []float32) {},
			"nearly equal": func(clean, transformed []float32) { copy(transformed, clean); transformed[0] *= 1.001 },
			"equal":        func(clean, transformed []float32) { copy(transformed, clean) },
			"zeros":        func(clean, transformed []float32) { clear(clean); clear(transformed) },
			"one zero":     func(clean, transformed []float32) { clear(transformed) },
			"longer":       func(clean, transformed []float32) { scale(transformed, 1000) },
		} {
			const n = 10
			site := measure.Site{Layer: layer, Layout: measure.Layout{N: n, Block: 4, Groups: 3}, KeepSamples: true}
			if len(layer.Shape) > 1 { // activations without axes to average are needed for a projection
				site.Project = 3
			}
			b := &measure.Batch{Place: []int{0, 1, 2, 4, 5, 6, 7, 8, 9}}
			for _, p := range b.Place {
				b.Index, b.Label = append(b.Index, p), append(b.Label, -1)
			}
			k := len(b.Place)
			b.Clean, b.Transformed = tensor.New(append([]int{k}, layer.Shape...)...), tensor.New(append([]int{k}, layer.Shape...)...)
			for _, z := range []tensor.Tensor{b.Clean, b.Transformed} {
				copy(z.Data, normal(r, len(z.Data), 1))
			}
			change(b.Clean.At(0).Data, b.Transformed.At(0).Data)
			plain, reduced := scoresOf(t, site, b), scoresOf(t, site, reduce(t, site, b))
			compareScores(t, fmt.Sprintf("%v, %s", layer.Shape, name), reduced, plain)
		}
	}
}

// scoresOf returns the scores and the per-sample values of a batch.
func scoresOf(t *testing.T, site measure.Site, b *measure.Batch) (values []float64) {
	t.Helper()
	acc, err := New(Settings{}).New(site)
	if err != nil {
		t.Fatal(err)
	}
	if err := acc.Update(b); err != nil {
		t.Fatal(err)
	}
	scores, err := acc.Scores()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range scores {
		values = append(values, s.Value, s.Low, s.High, s.Null)
	}
	for _, s := range acc.(measure.Sampler).Samples() {
		values = append(values, s.Value)
	}
	return values
}

// compareScores compares values with a relative tolerance of 1e-5, and an absolute one for the
// projections, which have no larger values than these tests' activations.
func compareScores(t *testing.T, name string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) || len(got) < 16 {
		t.Fatalf("%s: %d values, want %d", name, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(got[i] - want[i]); !(d <= 1e-5*math.Abs(want[i])+1e-6) && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
			t.Errorf("%s: value %d is %v, want %v", name, i, got[i], want[i])
		}
	}
}

// reduce returns a batch with the values of the Reduction, which ONNX Runtime computes on the CPU.
func reduce(t *testing.T, site measure.Site, b *measure.Batch) *measure.Batch {
	t.Helper()
	r := New(Settings{}).(measure.Reducer).Reduction(site)
	k, rt := len(b.Place), orttest.Load(t)
	builder := onnx.NewBuilder(17)
	free := append([]int{-1}, site.Layer.Shape...)
	z, moved := builder.Input("clean", onnx.Float, free...), builder.Input("transformed", onnx.Float, free...)
	builder.Output("values", reduction.Build(builder, r, site.Layer, z, moved, builder.Input("partners", onnx.Int32, -1)))
	graph, err := builder.Model()
	if err != nil {
		t.Fatal(err)
	}
	session, err := rt.NewSession(graph, ort.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var partners []int32
	for _, p := range site.Layout.Partners(b.Place) {
		partners = append(partners, int32(p))
	}
	out := tensor.New(k, r.Width)
	clean, err1 := ort.Wrap(rt, b.Clean.Data, b.Clean.Shape...)
	transformed, err2 := ort.Wrap(rt, b.Transformed.Data, b.Transformed.Shape...)
	index, err3 := ort.Wrap(rt, partners, k)
	values, err4 := ort.Wrap(rt, out.Data, out.Shape...)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		t.Fatal(err)
	}
	for _, v := range []*ort.Value{clean, transformed, index, values} {
		defer v.Close()
	}
	if err := session.Run(t.Context(), []*ort.Value{clean, transformed, index}, []*ort.Value{values}); err != nil {
		t.Fatal(err)
	}
	return &measure.Batch{Place: b.Place, Index: b.Index, Label: b.Label, Reduced: out}
}

// TestReductionNeedsActivations checks that sums that overflow or underflow float32, or that are
// not finite, are refused.
func TestReductionNeedsActivations(t *testing.T) {
	t.Parallel()
	site := measure.Site{Layer: tensor.Layer{Shape: []int{2}, Axes: "NC"}, Layout: measure.Layout{N: 2, Block: 2, Groups: 1}}
	for name, values := range map[string][]float32{
		"overflow":   {1e30, 1, 2, 3},
		"underflow":  {1e-15, 1e-16, 1, 1},
		"NaN":        {float32(math.NaN()), 1, 1, 1},
		"difference": {1, 1 + 1e-7, 1, 1},
	} {
		b := &measure.Batch{Place: []int{0, 1}, Index: []int{0, 1}, Label: []int{-1, -1}, Clean: tensor.New(2, 2), Transformed: tensor.New(2, 2)}
		copy(b.Clean.Data, values)
		copy(b.Transformed.Data, []float32{1, 2, 3, 4})
		acc, err := New(Settings{}).New(site)
		if err != nil {
			t.Fatal(err)
		}
		refused := errors.Is(acc.Update(reduce(t, site, b)), measure.ErrNeedsActivations)
		if want := name != "difference"; refused != want {
			t.Errorf("%s: refused %v, want %v", name, refused, want)
		}
	}
}

// TestReducedColumns checks for which sums of a sample and of its partner the activations are
// needed: where one is not finite, or squares may have underflowed.
func TestReducedColumns(t *testing.T) {
	t.Parallel()
	infinite := float32(math.Inf(1))
	for _, c := range []struct {
		name            string
		sum             int // of the sample, or of its partner, that differs from 1
		value           float32
		partner, needed bool
	}{
		{"none", reducedAA, 1, false, false},
		{"|a|^2", reducedAA, infinite, false, true},
		{"|b|^2", reducedBB, infinite, false, true},
		{"directions", reducedDirections, infinite, false, true},
		{"directions", reducedDirections, float32(math.NaN()), false, true},
		{"sum |a - b|", reducedAbs, infinite, false, true},
		{"|a - b|^2", reducedSqr, infinite, false, true},
		{"small |a|^2", reducedAA, 1e-30, false, true},
		{"small |b|^2", reducedBB, 1e-30, false, true},
		{"small |a - b|^2", reducedSqr, 1e-30, false, true},
		{"zero |a - b|^2", reducedSqr, 0, false, true},
		{"zero |a|^2", reducedAA, 0, false, false},
		{"zero |b|^2", reducedBB, 0, false, false},
		{"the partner's |a|^2", reducedAA, infinite, true, true},
		{"the partner's |b|^2", reducedBB, infinite, true, false},
		{"directions with the partner", partnerDirections, infinite, false, true},
		{"sum |a - b| with the partner", partnerAbs, infinite, false, true},
		{"|a - b|^2 with the partner", partnerSqr, 1e-30, false, true},
	} {
		var sums [2][]float32 // of the sample and of its partner
		for i := range sums {
			sums[i] = []float32{1, 1, 1, 1, 1, 1, 1, 1}
			if c.partner == (i == 1) {
				sums[i][c.sum] = c.value
			}
		}
		own, shuffled := make([]float64, columns), make([]float64, columns)
		if err := reducedColumns(own, shuffled, sums[0], sums[1]); (err == measure.ErrNeedsActivations) != c.needed || !c.needed && err != nil {
			t.Errorf("%s is %v: error %v, want one: %v", c.name, c.value, err, c.needed)
		}
		if c.partner || c.sum >= partnerDirections { // without shuffled pairs, only the sample's own sums matter
			if err := reducedColumns(own, nil, sums[0], sums[1]); err != nil {
				t.Errorf("%s is %v, without shuffled pairs: %v", c.name, c.value, err)
			}
		}
	}
}

// TestReductionOfSmallAngles checks cosine distances near 0 of vectors of very different lengths,
// which are differences of nearly equal numbers if they are computed from dot products.
func TestReductionOfSmallAngles(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(4, 2))
	const n = 50_000
	site := measure.Site{Layer: tensor.Layer{Shape: []int{n}, Axes: "NC"}, Layout: measure.Layout{N: 4, Block: 2, Groups: 2}}
	b := &measure.Batch{Place: []int{0, 1, 2, 3}, Index: []int{0, 1, 2, 3}, Label: []int{-1, -1, -1, -1}, Clean: tensor.New(4, n), Transformed: tensor.New(4, n)}
	copy(b.Clean.Data, normal(r, 4*n, 1))
	for i, noise := range normal(r, 4*n, 1) {
		b.Transformed.Data[i] = 0.05*b.Clean.Data[i] + 1e-4*noise
	}
	plain, reduced := scoresOf(t, site, b), scoresOf(t, site, reduce(t, site, b))
	if want, got := plain[0], reduced[0]; !(math.Abs(got-want) <= 1e-5*want) || want > 1e-5 {
		t.Errorf("a cosine distance of %v, want %v, which is small", got, want)
	}
}
